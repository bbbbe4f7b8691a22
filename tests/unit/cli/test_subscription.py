from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ID, ScriptedServer

V1, V2, PACKAGES = "/vnflcm/v1/subscriptions", "/vnflcm/v2/subscriptions", "/vnfpkgm/v1/subscriptions"
URI = "http://noc.example/told"
SUBSCRIPTION = {"id": ID, "callbackUri": URI, "filter": {"operationStates": ["FAILED_TEMP"]}}


@pytest.fixture
def known(server: ScriptedServer) -> ScriptedServer:
    server.answer(f"GET {V1}", [])
    server.answer(f"GET {V2}", [SUBSCRIPTION])
    server.answer(f"GET {PACKAGES}", [])
    server.answer(f"POST {V2}", SUBSCRIPTION, 201)
    server.answer(f"DELETE {V2}/{ID}", None, 204)
    return server


def test_all_interfaces_are_listed(known: ScriptedServer, slipway: Slipway) -> None:
    result = slipway("subscription", "list", "-o", "json")
    assert json.loads(result.stdout) == [{"interface": "vnflcm/v2", **SUBSCRIPTION}]
    assert URI in slipway("subscription", "list").stdout


def test_what_went_wrong_with_a_subscriber_is_shown(server: ScriptedServer, slipway: Slipway) -> None:
    delivery = {"pending": 3, "delivered": 7, "givenUp": 1, "failuresInARow": 2, "lastError": f"{URI} answered 500."}
    server.answer(f"GET /slipway/v1/subscriptions/{ID}/delivery", delivery)
    shown = slipway("subscription", "show", ID).stdout
    for part in ("Waiting", "3", "7", "1", f"{URI} answered 500."):
        assert part in shown
    assert json.loads(slipway("subscription", "show", ID, "-o", "json").stdout) == delivery


def test_one_is_added_with_a_filter_and_a_password_that_nobody_sees(
    known: ScriptedServer, slipway: Slipway, tmp_path: Path
) -> None:
    wanted, password = tmp_path / "filter.yaml", tmp_path / "password"
    wanted.write_text("operationStates: [FAILED_TEMP]\n")
    password.write_text("s3cret\n")
    arguments = ("--filter-file", str(wanted), "--user", "me", "--password-file", str(password))
    result = slipway("subscription", "add", URI, *arguments)
    assert result.exit_code == 0, result.stderr
    assert "s3cret" not in result.output
    assert known.sent(f"POST {V2}") == [
        {
            "callbackUri": URI,
            "filter": {"operationStates": ["FAILED_TEMP"]},
            "authentication": {"authType": ["BASIC"], "paramsBasic": {"userName": "me", "password": "s3cret"}},
        }
    ]


def test_one_is_removed_wherever_it_is(known: ScriptedServer, slipway: Slipway) -> None:
    assert slipway("subscription", "remove", ID).stdout == f"Removed subscription {ID}.\n"
    result = slipway("subscription", "remove", "another")
    assert result.exit_code == 1
    assert "There is no subscription another" in result.stderr


@pytest.mark.parametrize("wrong", [("--interface", "vnfind/v1"), ("--user", "me")])
def test_a_wrong_command_line_sends_nothing(known: ScriptedServer, slipway: Slipway, wrong: tuple[str, ...]) -> None:
    assert slipway("subscription", "add", URI, *wrong).exit_code == 2
    assert known.sent(f"POST {V2}") == []
