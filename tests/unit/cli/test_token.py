from __future__ import annotations

import json
from typing import Any

import pytest

from slipway.cli.paths import TOKENS
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ID, ScriptedServer

RECORD: dict[str, Any] = {
    "id": ID,
    "name": "ci",
    "role": "operator",
    "project": "blue",
    "createdAt": "2026-01-31T10:20:30.123Z",
}
MADE = RECORD | {"token": "the-very-token"}


@pytest.fixture
def known(server: ScriptedServer) -> ScriptedServer:
    server.answer(f"POST {TOKENS}", MADE, 201)
    server.answer(f"GET {TOKENS}", [RECORD, {**RECORD, "name": "watch", "role": "reader", "project": None}])
    server.answer(f"DELETE {TOKENS}/ci", None, 204)
    return server


def test_a_token_is_printed_alone_and_a_hint_beside_it(known: ScriptedServer, slipway: Slipway) -> None:
    result = slipway("token", "add", "ci", "--role", "operator", "--project", "blue")

    assert result.exit_code == 0, result.stderr
    assert result.stdout == "the-very-token\n"  # so that a shell can take it: SLIPWAY_TOKEN=$(slipway token add ...)
    assert "the-very-token" not in result.stderr
    for word in ("ci", "operator", "project blue", "SLIPWAY_TOKEN", "--token-file", "X-Auth-Token", "once"):
        assert word in result.stderr
    assert known.sent(f"POST {TOKENS}") == [{"name": "ci", "role": "operator", "project": "blue"}]


def test_programs_get_the_whole_document_and_nothing_else(known: ScriptedServer, slipway: Slipway) -> None:
    result = slipway("token", "add", "ci", "--role", "operator", "-o", "json")

    assert json.loads(result.stdout) == MADE
    assert result.stderr == ""
    assert known.sent(f"POST {TOKENS}") == [{"name": "ci", "role": "operator"}]


def test_there_are_three_roles(known: ScriptedServer, slipway: Slipway) -> None:
    result = slipway("token", "add", "ci", "--role", "root")

    assert result.exit_code == 2
    assert all(role in result.stderr for role in ("reader", "operator", "admin"))
    assert slipway("token", "add", "ci").exit_code == 2
    assert not known.requests


def test_tokens_are_listed_without_themselves(known: ScriptedServer, slipway: Slipway) -> None:
    table = slipway("token", "list").stdout

    assert "blue" in table
    assert "(all)" in table
    assert "2026-01-31 10:20:30" in table
    assert json.loads(slipway("token", "list", "-o", "json").stdout)[0] == RECORD


def test_a_token_is_taken_back(known: ScriptedServer, slipway: Slipway) -> None:
    assert slipway("token", "remove", "ci").stdout == "Removed token ci.\n"
    refused = slipway("token", "remove", "nobody")
    assert refused.exit_code == 1
    assert "There is no" in refused.stderr


def test_who_is_no_admin_is_told_so(server: ScriptedServer, slipway: Slipway) -> None:
    server.refuse(
        f"POST {TOKENS}", 403, "POST /slipway/v1/tokens needs the role admin; your token has the role reader."
    )
    result = slipway("token", "add", "ci", "--role", "reader")

    assert result.exit_code == 3
    assert "needs the role admin" in result.stderr
