from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from slipway.cli.paths import INSTANCES
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ScriptedServer


@pytest.fixture
def listing(server: ScriptedServer) -> ScriptedServer:
    server.answer(f"GET {INSTANCES}", [])
    return server


def token_sent(server: ScriptedServer) -> str | None:
    token: str | None = server.requests[0].headers.get("X-Auth-Token")
    return token


def write_token(directory: Path, token: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "token").write_text(token + "\n")
    return directory


def test_the_token_of_a_server_on_this_machine_is_found_by_itself(
    listing: ScriptedServer, slipway: Slipway, tmp_path: Path
) -> None:
    write_token(tmp_path / "home" / "slipway", "found")

    assert slipway("vnf", "list").exit_code == 0
    assert token_sent(listing) == "found"


def test_the_local_token_is_not_sent_to_another_machine_unasked(
    listing: ScriptedServer, slipway: Slipway, tmp_path: Path
) -> None:
    home = write_token(tmp_path / "home" / "slipway", "found")

    slipway("vnf", "list", "--url", "http://vnfm.example")
    assert token_sent(listing) is None
    listing.requests.clear()
    slipway("vnf", "list", "--url", "http://vnfm.example", "--data-dir", str(home))
    assert token_sent(listing) == "found"


def test_what_is_named_goes_before_what_is_found(listing: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    data = write_token(tmp_path / "data", "from data dir")
    file = tmp_path / "mine"
    file.write_text("from file\n")

    slipway("vnf", "list", "--token-file", str(file), "--data-dir", str(data), SLIPWAY_TOKEN="from environment")
    slipway("vnf", "list", SLIPWAY_TOKEN="from environment", SLIPWAY_DATA_DIR=str(data))
    slipway("vnf", "list", SLIPWAY_DATA_DIR=str(data))
    slipway("vnf", "list")

    sent = [request.headers.get("X-Auth-Token") for request in listing.requests]
    assert sent == ["from file", "from environment", "from data dir", None]


def test_the_environment_names_the_server(listing: ScriptedServer, slipway: Slipway) -> None:
    slipway("vnf", "list", SLIPWAY_URL="http://10.1.2.3:80")

    assert listing.requests[0].url.host == "10.1.2.3"


def test_a_token_file_that_is_not_there_is_said(slipway: Slipway, tmp_path: Path) -> None:
    result = slipway("vnf", "list", "--token-file", str(tmp_path / "none"))

    assert result.exit_code == 1
    assert "token can't be read" in result.stderr


def test_no_server_is_exit_code_3_with_the_cure(server: ScriptedServer, slipway: Slipway) -> None:
    server.breaks(f"GET {INSTANCES}", httpx.ConnectError("Connection refused"))
    result = slipway("vnf", "list")

    assert result.exit_code == 3
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "slipway serve" in result.stderr


def test_an_unknown_token_is_exit_code_3_with_the_cure(server: ScriptedServer, slipway: Slipway) -> None:
    server.refuse(f"GET {INSTANCES}", 401, "A token is missing.")
    result = slipway("vnf", "list")

    assert result.exit_code == 3
    assert "--token-file" in result.stderr


def test_errors_are_problem_documents_for_programs(server: ScriptedServer, slipway: Slipway) -> None:
    server.refuse(f"GET {INSTANCES}", 400, "The filter is wrong.")
    result = slipway("vnf", "list", "-o", "json")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert json.loads(result.stderr) == {"status": 400, "title": "No", "detail": "The filter is wrong."}


@pytest.mark.parametrize("url", ["ftp://x", "http://[", "nonsense"])
def test_an_impossible_address_is_a_usage_error(url: str, slipway: Slipway) -> None:
    result = slipway("vnf", "list", "--url", url)

    assert result.exit_code == 2
    assert "--url" in result.stderr


@pytest.mark.parametrize("args", [["vnf", "list", "-o", "xml"], ["vnf", "nothing"], ["vnf", "show"]])
def test_a_wrong_command_line_is_exit_code_2(args: list[str], slipway: Slipway) -> None:
    assert slipway(*args).exit_code == 2


def test_a_data_directory_without_a_token_is_a_server_without_authentication(
    listing: ScriptedServer, slipway: Slipway, tmp_path: Path
) -> None:
    assert slipway("vnf", "list", "--data-dir", str(tmp_path)).exit_code == 0
    assert token_sent(listing) is None
