from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from slipway.cli.paths import INSTANCES, OPERATIONS, PACKAGES
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ID, OTHER_ID, ScriptedServer

VNF: dict[str, Any] = {
    "id": ID,
    "vnfInstanceName": "mycluster",
    "vnfdId": "vnfd-1",
    "vnfProvider": "Slipway",
    "vnfProductName": "Sample [red]cluster",
    "vnfSoftwareVersion": "1.0",
    "instantiationState": "NOT_INSTANTIATED",
}


@pytest.fixture
def known(server: ScriptedServer) -> ScriptedServer:
    """A server that knows one VNF by name and id."""
    server.answer(f"GET {INSTANCES}", [VNF])
    server.answer(f"GET {INSTANCES}/{ID}", VNF, ETag='"7"')
    return server


def test_a_list_is_a_table_or_the_documents(known: ScriptedServer, slipway: Slipway) -> None:
    assert "Sample [red]cluster" in slipway("vnf", "list").stdout
    assert json.loads(slipway("vnf", "list", "-o", "json").stdout) == [VNF]
    assert yaml.safe_load(slipway("vnf", "list", "-o", "yaml").stdout) == [VNF]


def test_a_vnf_is_found_by_name_with_a_filter(known: ScriptedServer, slipway: Slipway) -> None:
    result = slipway("vnf", "show", "mycluster", "-o", "json")

    assert json.loads(result.stdout) == VNF
    assert known.requests[0].url.params["filter"] == "(eq,vnfInstanceName,mycluster)"


def test_a_vnf_is_found_by_id_at_once(known: ScriptedServer, slipway: Slipway) -> None:
    assert slipway("vnf", "show", ID).exit_code == 0
    assert len(known.requests) == 1


def test_a_name_that_looks_like_an_id_is_found_too(known: ScriptedServer, slipway: Slipway) -> None:
    assert slipway("vnf", "show", OTHER_ID).exit_code == 0


def test_an_ambiguous_name_lists_the_ids(server: ScriptedServer, slipway: Slipway) -> None:
    server.answer(f"GET {INSTANCES}", [VNF, {**VNF, "id": OTHER_ID}])
    result = slipway("vnf", "terminate", "mycluster")

    assert result.exit_code == 1
    assert ID in result.stderr
    assert OTHER_ID in result.stderr


def test_an_unknown_name_says_where_to_look(server: ScriptedServer, slipway: Slipway) -> None:
    server.answer(f"GET {INSTANCES}", [])
    result = slipway("vnf", "show", "nobody")

    assert result.exit_code == 1
    assert "slipway vnf list" in result.stderr


def test_a_vnf_is_created_from_a_package(server: ScriptedServer, slipway: Slipway) -> None:
    package = {"id": OTHER_ID, "vnfdId": "vnfd-1", "userDefinedData": {"name": "cluster"}, "onboardingState": "X"}
    server.answer(f"GET {PACKAGES}", [package, {"id": ID, "vnfdId": "other"}])
    server.answer(f"POST {INSTANCES}", VNF, 201)
    result = slipway("vnf", "create", "mycluster", "--package", "cluster", "--metadata", "size=3")

    assert result.exit_code == 0, result.stderr
    assert ID in result.stdout
    assert server.sent(f"POST {INSTANCES}") == [
        {"vnfdId": "vnfd-1", "vnfInstanceName": "mycluster", "metadata": {"size": 3}}
    ]


@pytest.mark.parametrize("choice", [[], ["--package", "a", "--vnfd", "b"]])
def test_a_vnf_is_created_from_exactly_one_thing(choice: list[str], slipway: Slipway) -> None:
    result = slipway("vnf", "create", "mycluster", *choice)

    assert result.exit_code == 2
    assert "--package / --vnfd" in result.stderr


def test_a_package_without_a_vnfd_makes_no_vnf(server: ScriptedServer, slipway: Slipway) -> None:
    server.answer(f"GET {PACKAGES}/{ID}", {"id": ID, "onboardingState": "PROCESSING"})
    result = slipway("vnf", "create", "mycluster", "--package", ID)

    assert result.exit_code == 1
    assert "PROCESSING" in result.stderr


def test_a_vnf_is_deleted(known: ScriptedServer, slipway: Slipway) -> None:
    known.answer(f"DELETE {INSTANCES}/{ID}", None, 204)

    assert "Deleted" in slipway("vnf", "delete", "mycluster").stdout


def test_a_refused_deletion_prints_the_detail(known: ScriptedServer, slipway: Slipway) -> None:
    known.refuse(f"DELETE {INSTANCES}/{ID}", 409, "It is instantiated; terminate it first.")
    result = slipway("vnf", "delete", "mycluster")

    assert result.exit_code == 1
    assert result.stderr == "Error: It is instantiated; terminate it first.\n"


def test_names_from_the_server_do_not_reach_the_terminal_as_escapes(server: ScriptedServer, slipway: Slipway) -> None:
    evil = {**VNF, "vnfInstanceName": "a\x1b[2Jb\x9b31mc"}
    server.answer(f"GET {INSTANCES}", [evil])
    server.answer(f"GET {INSTANCES}/{ID}", evil)
    server.answer(f"GET {OPERATIONS}", [])
    for command in (["vnf", "list"], ["vnf", "show", ID], ["vnf", "describe", ID]):
        for form in ("table", "json", "yaml"):
            output = slipway(*command, "-o", form).output
            assert "\x1b" not in output
            assert "\x9b" not in output


def test_describe_gives_programs_the_vnf_and_its_operations_newest_first(
    known: ScriptedServer, slipway: Slipway
) -> None:
    old = {"id": "1", "operation": "SCALE", "operationState": "COMPLETED", "startTime": "2026-01-01T00:00:00Z"}
    new = {**old, "id": "2", "startTime": "2026-01-02T00:00:00Z"}
    known.answer(f"GET {OPERATIONS}", [old, new])
    shown = json.loads(slipway("vnf", "describe", "mycluster", "-o", "json").stdout)

    assert shown == {"vnfInstance": VNF, "operations": [new, old]}
    assert known.requests[-1].url.params["filter"] == f"(eq,vnfInstanceId,{ID})"
