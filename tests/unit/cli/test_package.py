from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.cli.paths import PACKAGE_WARNINGS, PACKAGES
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ID, ScriptedServer
from tests.unit.package.csars import varied, written

SAMPLE = Path(__file__).parents[3] / "samples" / "cluster-simulated"
ONE = f"{PACKAGES}/{ID}"
WARNINGS = f"{PACKAGE_WARNINGS}/{ID}/warnings"
WARNING = {"file": "Definitions/vnfd.yaml", "line": 7, "what": "The aspect is unknown: ignored.", "cure": "remove it."}


def package(state: str, **more: Any) -> dict[str, Any]:
    own = {"name": "cluster"}
    return {
        "id": ID,
        "onboardingState": state,
        "operationalState": "DISABLED",
        "usageState": "NOT_IN_USE",
        "userDefinedData": own,
        **more,
    }


@pytest.fixture
def csar(tmp_path: Path) -> Path:
    file = tmp_path / "x.csar"
    file.write_bytes(b"PK content")
    return file


def test_a_package_is_built_and_checked_here(slipway: Slipway, server: ScriptedServer, tmp_path: Path) -> None:
    target = tmp_path / "cluster.csar"

    assert slipway("package", "build", str(SAMPLE), "-o", str(target)).exit_code == 0
    checked = json.loads(slipway("package", "check", str(target), "-o", "json").stdout)
    assert checked["vnfProductName"] == "Sample cluster"
    assert set(checked["flavours"]) == {"simple", "ha"}
    assert "Flavour ha" in slipway("package", "check", str(target)).stdout
    assert not server.requests


@pytest.mark.parametrize("content", [None, b"no zip"])
def test_a_broken_package_is_exit_code_1_with_the_reason(
    content: bytes | None, slipway: Slipway, tmp_path: Path
) -> None:
    file = tmp_path / "x.csar"
    if content is not None:
        file.write_bytes(content)
    result = slipway("package", "check", str(file))

    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")


def test_a_package_that_can_not_be_written_is_said(slipway: Slipway, tmp_path: Path) -> None:
    result = slipway("package", "build", str(SAMPLE), "-o", str(tmp_path / "none" / "x.csar"))

    assert result.exit_code == 1
    assert "none" in result.stderr


def test_an_upload_creates_sends_and_waits(server: ScriptedServer, slipway: Slipway, csar: Path) -> None:
    server.answer(f"POST {PACKAGES}", package("CREATED"), 201)
    server.answer(f"PUT {ONE}/package_content", None, 202)
    server.answer(f"GET {ONE}", package("PROCESSING"))
    server.answer(f"GET {ONE}", package("ONBOARDED", vnfdId="vnfd-1"))
    server.answer(f"GET {WARNINGS}", [WARNING])
    result = slipway("package", "upload", str(csar), "--name", "cluster", "--data", "stage=test")

    assert result.exit_code == 0, result.stderr
    assert "vnfd-1" in result.stdout
    assert "Definitions/vnfd.yaml:7: The aspect is unknown: ignored. Cure: remove it." in result.stdout
    assert server.sent(f"POST {PACKAGES}") == [{"userDefinedData": {"stage": "test", "name": "cluster"}}]
    put = next(request for request in server.requests if request.method == "PUT")
    assert put.content == b"PK content"
    assert put.headers["Content-Type"] == "application/zip"
    assert server.naps


def test_a_refused_package_is_removed_and_its_reason_printed(
    server: ScriptedServer, slipway: Slipway, csar: Path
) -> None:
    server.answer(f"POST {PACKAGES}", package("CREATED"), 201)
    server.answer(f"PUT {ONE}/package_content", None, 202)
    reason = {"status": 422, "detail": "TOSCA.meta: This is missing."}
    server.answer(f"GET {ONE}", package("CREATED", onboardingFailureDetails=reason))
    server.answer(f"DELETE {ONE}", None, 204)
    result = slipway("package", "upload", str(csar))

    assert (result.exit_code, result.stderr) == (1, "Error: TOSCA.meta: This is missing.\n")
    assert server.requests[-1].method == "DELETE"


def test_a_refused_upload_is_removed_even_if_the_removal_fails(
    server: ScriptedServer, slipway: Slipway, csar: Path
) -> None:
    server.answer(f"POST {PACKAGES}", package("CREATED"), 201)
    server.refuse(f"PUT {ONE}/package_content", 413, "It is too large.")
    server.refuse(f"DELETE {ONE}", 500, "Not now.")
    result = slipway("package", "upload", str(csar))

    assert result.exit_code == 1
    assert "stays behind: Not now." in result.stderr
    assert "Error: It is too large." in result.stderr


def test_an_upload_whose_end_is_not_known_is_not_removed(server: ScriptedServer, slipway: Slipway, csar: Path) -> None:
    server.answer(f"POST {PACKAGES}", package("CREATED"), 201)
    server.answer(f"PUT {ONE}/package_content", None, 202)
    server.breaks(f"GET {ONE}", httpx.ReadError("gone"))
    result = slipway("package", "upload", str(csar))

    assert result.exit_code == 3
    assert f"slipway package show {ID}" in result.stderr
    assert not any(request.method == "DELETE" for request in server.requests)


def test_a_file_that_is_not_there_is_a_usage_error(server: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    assert slipway("package", "upload", str(tmp_path / "none")).exit_code == 2
    assert not server.requests


def test_a_package_comes_from_an_address(server: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hush\n")
    server.answer(f"POST {PACKAGES}", package("CREATED"), 201)
    server.answer(f"POST {ONE}/package_content/upload_from_uri", None, 202)
    for state in ("UPLOADING", "PROCESSING", "ONBOARDED"):
        server.answer(f"GET {ONE}", package(state, vnfdId="vnfd-1"))
    server.answer(f"GET {WARNINGS}", [])
    where = ("--from", "https://files.example/x.csar", "--user", "ada")
    result = slipway("package", "upload", "--name", "cluster", *where, "--password-file", str(tmp_path / "password"))

    assert result.exit_code == 0, result.stderr
    assert "vnfd-1" in result.stdout
    assert "hush" not in result.output
    assert server.sent(f"POST {PACKAGES}") == [{"userDefinedData": {"name": "cluster"}}]
    body = {"addressInformation": "https://files.example/x.csar", "userName": "ada", "password": "hush"}
    assert server.sent(f"POST {ONE}/package_content/upload_from_uri") == [body]
    assert len(server.naps) == 2


def test_a_password_is_asked_for(server: ScriptedServer, slipway: Slipway) -> None:
    server.answer(f"POST {PACKAGES}", package("CREATED"), 201)
    server.answer(f"POST {ONE}/package_content/upload_from_uri", None, 202)
    server.answer(f"GET {ONE}", package("ONBOARDED"))
    server.answer(f"GET {WARNINGS}", [])
    where = ("--from", "https://files.example/x", "--user", "ada", "--password-file", "-")

    assert slipway("package", "upload", *where, input="hush\n").exit_code == 0
    assert server.sent(f"POST {ONE}/package_content/upload_from_uri")[0]["password"] == "hush"


@pytest.mark.parametrize("given", [(), ("cluster",)])
def test_what_could_not_be_fetched_is_said(given: tuple[str, ...], server: ScriptedServer, slipway: Slipway) -> None:
    reason = {"status": 502, "detail": "addressInformation: files.example answered 404 Not Found."}
    server.answer(f"POST {PACKAGES}", package("CREATED"), 201)
    server.answer(f"GET {PACKAGES}", [package("CREATED", onboardingFailureDetails={"status": 1, "detail": "old"})])
    server.answer(f"POST {ONE}/package_content/upload_from_uri", None, 202)
    server.answer(f"GET {ONE}", package("UPLOADING"))
    server.answer(f"GET {ONE}", package("CREATED", onboardingFailureDetails=reason))
    server.answer(f"DELETE {ONE}", None, 204)
    result = slipway("package", "upload", *given, "--from", "https://files.example/x")

    assert result.exit_code == 1
    assert f"Error: {reason['detail']}" in result.stderr
    removed = any(request.method == "DELETE" for request in server.requests)
    assert removed == (not given), "only what this command made is removed again"


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--user", "ada"),
        ("--password-file", "x"),
        ("--from", "https://files.example/x", "--password-file", "x"),
        ("--from", "https://files.example/x", "--user", "ada", "--password-file", "/none"),
        ("cluster", "--from", "https://files.example/x", "--name", "other"),
        ("cluster", "--from", "https://files.example/x", "--data", "a=b"),
    ],
)
def test_options_that_do_not_go_together(args: tuple[str, ...], server: ScriptedServer, slipway: Slipway) -> None:
    assert slipway("package", "upload", *args).exit_code == 2
    assert not server.requests


@pytest.mark.parametrize(("command", "state"), [("enable", "ENABLED"), ("disable", "DISABLED")])
def test_a_package_is_enabled_and_disabled(command: str, state: str, server: ScriptedServer, slipway: Slipway) -> None:
    server.answer(f"GET {PACKAGES}", [package("ONBOARDED")])
    server.answer(f"PATCH {ONE}", {"operationalState": state})

    assert state in slipway("package", command, "cluster").stdout
    assert server.sent(f"PATCH {ONE}") == [{"operationalState": state}]


def test_packages_are_listed_shown_and_deleted(server: ScriptedServer, slipway: Slipway) -> None:
    found = package("ONBOARDED", vnfdId="vnfd-1")
    server.answer(f"GET {PACKAGES}", [found])
    server.answer(f"GET {ONE}", found)
    server.answer(f"GET {WARNINGS}", [])
    server.answer(f"DELETE {ONE}", None, 204)

    assert "vnfd-1" in slipway("package", "list").stdout
    assert json.loads(slipway("package", "show", "vnfd-1", "-o", "json").stdout) == found
    assert "Deleted" in slipway("package", "delete", "cluster").stdout
    assert slipway("package", "show", "nobody").exit_code == 1


def test_warnings_are_shown_with_the_package(server: ScriptedServer, slipway: Slipway) -> None:
    server.answer(f"GET {ONE}", package("ONBOARDED"))
    server.answer(f"GET {WARNINGS}", [WARNING, {**WARNING, "what": "Another."}])

    assert [line for line in slipway("package", "show", ID).stdout.splitlines() if line.startswith("Warning ")] == [
        "Warning            Definitions/vnfd.yaml:7: The aspect is unknown: ignored. Cure: remove it.",
        "Warning            Definitions/vnfd.yaml:7: Another. Cure: remove it.",
    ]
    assert json.loads(slipway("package", "show", ID, "-o", "json").stdout)["warnings"][0] == WARNING


def test_a_check_shows_warnings_and_is_passed(slipway: Slipway, tmp_path: Path) -> None:
    file = written(varied("aspect: out", "aspect: sideways"), tmp_path)
    result = slipway("package", "check", str(file))

    assert result.exit_code == 0
    assert "Warning         Definitions/vnfd.yaml:76: The policy 'deltas' is for" in result.stdout
    (warning,) = json.loads(slipway("package", "check", str(file), "-o", "json").stdout)["warnings"]
    assert (warning["file"], warning["line"]) == ("Definitions/vnfd.yaml", 76)


def test_a_download_is_written_where_it_was_asked_for(server: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    server.answer(f"GET {ONE}", package("ONBOARDED"))
    server.answer(f"GET {ONE}/package_content", "content")
    target = tmp_path / "y.csar"

    assert slipway("package", "download", ID, "--to", str(target)).exit_code == 0
    assert target.read_text() == '"content"'
    assert slipway("package", "download", ID, "--to", str(tmp_path / "none" / "y")).exit_code == 1
