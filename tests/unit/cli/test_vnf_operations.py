from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.cli.paths import INSTANCES, OPERATIONS, PACKAGES, PLANS, STEPS
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ID, ScriptedServer
from tests.unit.cli.test_vnf import VNF

OPERATION = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
PLAN = {
    "steps": [
        {"id": "make network net", "action": "a", "nodes": [], "after": [], "effects": []},
        {
            "id": "make machine workerNode-1",
            "action": "a",
            "nodes": ["workerNode-1"],
            "after": ["make network net"],
            "effects": [{"verb": "make", "kind": "machine", "name": "workerNode-1"}],
        },
    ],
    "make": ["machine workerNode-1"],
    "change": [],
    "remove": [],
}


def step(state: str, **more: Any) -> dict[str, Any]:
    return {"id": "make machine workerNode-1", "action": "a", "nodes": ["workerNode-1"], "state": state, **more}


def journal(state: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"operationId": OPERATION, "operationState": state, "steps": list(steps)}


def occurrence(state: str, **more: Any) -> dict[str, Any]:
    return {"id": OPERATION, "operation": "SCALE", "operationState": state, "vnfInstanceId": ID, **more}


@pytest.fixture
def accepting(server: ScriptedServer) -> ScriptedServer:
    server.answer(f"GET {INSTANCES}", [VNF])
    server.answer(f"GET {INSTANCES}/{ID}", VNF, ETag='"7"')
    location = f"http://elsewhere{OPERATIONS}/{OPERATION}"
    for action in ("instantiate", "terminate", "scale", "heal", "change_ext_conn", "change_vnfpkg"):
        server.answer(f"POST {INSTANCES}/{ID}/{action}", None, 202, Location=location)
    server.answer(f"PATCH {INSTANCES}/{ID}", None, 202, Location=location)
    server.answer(f"POST {PLANS}", PLAN)
    return server


@pytest.fixture
def completing(accepting: ScriptedServer) -> ScriptedServer:
    accepting.answer(f"GET {STEPS}/{OPERATION}/steps", journal("PROCESSING", step("RUNNING", attempt=1)))
    accepting.answer(f"GET {STEPS}/{OPERATION}/steps", journal("COMPLETED", step("DONE", attempt=1, durationSeconds=2)))
    accepting.answer(f"GET {OPERATIONS}/{OPERATION}", occurrence("COMPLETED"))
    return accepting


@pytest.mark.parametrize(
    ("args", "body"),
    [
        (["instantiate", "mycluster", "--flavour", "simple"], {"flavourId": "simple"}),
        (
            ["instantiate", "mycluster", "--flavour", "ha", "--level", "large", "--vim", "lab", "--param", "n=3"],
            {
                "flavourId": "ha",
                "instantiationLevelId": "large",
                "vimConnectionInfo": {"vim": {"vimId": "lab"}},
                "additionalParams": {"n": 3},
            },
        ),
        (["terminate", "mycluster"], {"terminationType": "GRACEFUL"}),
        (
            ["terminate", "mycluster", "--graceful", "--timeout", "60"],
            {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 60},
        ),
        (["terminate", "mycluster", "--forceful"], {"terminationType": "FORCEFUL"}),
        (
            ["scale", "mycluster", "--aspect", "workers"],
            {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1},
        ),
        (
            ["scale", "mycluster", "--aspect", "workers", "--in", "--steps", "2"],
            {"type": "SCALE_IN", "aspectId": "workers", "numberOfSteps": 2},
        ),
        (["heal", "mycluster"], {}),
        (
            ["heal", "mycluster", "--all-resources", "--cause", "fire", "--param", "a=b"],
            {"cause": "fire", "additionalParams": {"a": "b", "all": True}},
        ),
    ],
)
def test_options_become_the_standards_request(
    args: list[str], body: dict[str, Any], completing: ScriptedServer, slipway: Slipway
) -> None:
    result = slipway("vnf", *args)

    assert result.exit_code == 0, result.output
    assert completing.sent(f"POST {INSTANCES}/{ID}/{args[0]}") == [body]


def test_connection_points_go_to_links_that_are_there_or_to_new_ones(
    completing: ScriptedServer, slipway: Slipway, tmp_path: Path
) -> None:
    link = {"id": "l1", "resourceHandle": {"resourceId": "net-a"}}
    connected = {**VNF, "instantiatedVnfInfo": {"extVirtualLinkInfo": [link]}}
    completing.answer(f"GET {INSTANCES}/{ID}", connected, ETag='"8"')
    file = tmp_path / "request.yaml"
    file.write_text("extVirtualLinks: [{id: l1, resourceId: net-c}]")
    assert slipway("vnf", "change-ext-conn", "mycluster", "--request", str(file), "--plan").exit_code == 0
    asked = {"extVirtualLinks": [{"id": "l1", "resourceId": "net-c"}]}
    assert completing.sent(f"POST {PLANS}") == [{"vnfInstanceId": ID, "operation": "CHANGE_EXT_CONN", "request": asked}]
    args = ["vnf", "change-ext-conn", "mycluster", "--network", "CP1=net-a", "--network", "CP2=net-b"]
    result = slipway(*args, "--network", "CP3=net-b", "--param", "n=3", "-o", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["operationState"] == "COMPLETED"
    wanted = [
        {"id": "l1", "resourceId": "net-a", "extCps": [{"cpdId": "CP1"}]},
        {"id": "net-b", "resourceId": "net-b", "extCps": [{"cpdId": "CP2"}, {"cpdId": "CP3"}]},
    ]
    where = f"POST {INSTANCES}/{ID}/change_ext_conn"
    assert completing.sent(where) == [{"extVirtualLinks": wanted, "additionalParams": {"n": 3}}]
    for wrong in ([], ["--network", "CP1=n", "--request", str(file)], ["--network", "CP1"]):
        assert slipway("vnf", "change-ext-conn", "mycluster", *wrong).exit_code == 2


def test_a_package_is_changed_to_by_the_name_it_was_given(completing: ScriptedServer, slipway: Slipway) -> None:
    package = {"id": "p2", "vnfdId": "d2", "onboardingState": "ONBOARDED", "userDefinedData": {"name": "cluster-2"}}
    completing.answer(f"GET {PACKAGES}", [package])
    result = slipway("vnf", "change-package", "mycluster", "--package", "cluster-2", "--param", "n=3")
    assert result.exit_code == 0, result.output
    wanted = {"vnfdId": "d2", "additionalParams": {"n": 3}}
    assert completing.sent(f"POST {INSTANCES}/{ID}/change_vnfpkg") == [wanted]
    shown = slipway("vnf", "change-package", "mycluster", "--package", "cluster-2", "--plan")
    assert shown.exit_code == 0, shown.output
    asked = {"vnfInstanceId": ID, "operation": "CHANGE_VNFPKG", "request": {"vnfdId": "d2"}}
    assert completing.sent(f"POST {PLANS}") == [asked]


def test_options_go_before_files(completing: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    request, params = tmp_path / "request.json", tmp_path / "params.yaml"
    request.write_text('{"flavourId": "ha", "additionalParams": {"a": 1, "b": 1, "c": 1}, "extensions": {"e": 1}}')
    params.write_text("b: 2\nc: 2\n")
    slipway("vnf", "instantiate", "mycluster", "--request", str(request), "--params", str(params), "--param", "c=3")

    assert completing.sent(f"POST {INSTANCES}/{ID}/instantiate") == [
        {"flavourId": "ha", "additionalParams": {"a": 1, "b": 2, "c": 3}, "extensions": {"e": 1}}
    ]


@pytest.mark.parametrize(
    "args",
    [
        ["instantiate", "mycluster"],
        ["terminate", "mycluster", "--forceful", "--timeout", "3"],
        ["scale", "mycluster"],
        ["scale", "mycluster", "--aspect", "a", "--steps", "0"],
        ["modify", "mycluster"],
    ],
)
def test_what_can_not_be_meant_is_a_usage_error_and_nothing_is_sent(
    args: list[str], accepting: ScriptedServer, slipway: Slipway
) -> None:
    assert slipway("vnf", *args).exit_code == 2
    assert not accepting.requests


def test_a_plan_is_shown_and_nothing_is_begun(accepting: ScriptedServer, slipway: Slipway) -> None:
    result = slipway("vnf", "scale", "mycluster", "--aspect", "workers", "--plan")

    assert result.exit_code == 0
    assert "+ make machine workerNode-1" in result.stdout
    assert "1 to make, 0 to change, 0 to remove" in result.stdout
    request = {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 1}
    assert accepting.sent(f"POST {PLANS}") == [{"vnfInstanceId": ID, "operation": "SCALE", "request": request}]
    assert accepting.sent(f"POST {INSTANCES}/{ID}/scale") == []


def test_a_plan_is_a_document_for_programs(accepting: ScriptedServer, slipway: Slipway) -> None:
    assert json.loads(slipway("vnf", "terminate", "mycluster", "--plan", "-o", "json").stdout) == PLAN


def test_waiting_prints_each_step_that_ended_and_the_end(completing: ScriptedServer, slipway: Slipway) -> None:
    result = slipway("vnf", "scale", "mycluster", "--aspect", "workers")

    assert result.stdout.splitlines() == ["✓ make machine workerNode-1  2.0 s", "SCALE COMPLETED after 0.1 s."]


def test_waiting_gives_programs_the_operation_and_nothing_else(completing: ScriptedServer, slipway: Slipway) -> None:
    result = slipway("vnf", "scale", "mycluster", "--aspect", "workers", "-o", "json")

    assert json.loads(result.stdout) == occurrence("COMPLETED")


def test_not_waiting_says_how_to_watch(accepting: ScriptedServer, slipway: Slipway) -> None:
    accepting.answer(f"GET {OPERATIONS}/{OPERATION}", occurrence("STARTING"))
    result = slipway("vnf", "scale", "mycluster", "--aspect", "workers", "--no-wait")

    assert result.exit_code == 0
    assert f"slipway op wait {OPERATION}" in result.stdout
    assert not accepting.naps


def test_a_failure_is_exit_code_1_with_its_reason_and_the_cures(accepting: ScriptedServer, slipway: Slipway) -> None:
    failed = step("FAILED", attempt=3, durationSeconds=1.5, error="quota exceeded")
    accepting.answer(f"GET {STEPS}/{OPERATION}/steps", journal("FAILED_TEMP", failed))
    error = {"status": 500, "detail": "make machine workerNode-1: quota exceeded"}
    accepting.answer(f"GET {OPERATIONS}/{OPERATION}", occurrence("FAILED_TEMP", error=error))
    result = slipway("vnf", "scale", "mycluster", "--aspect", "workers")

    assert result.exit_code == 1
    assert "✗ make machine workerNode-1  1.5 s  attempt 3  quota exceeded" in result.stdout
    assert "Error: make machine workerNode-1: quota exceeded" in result.stderr
    for cure in ("retry", "rollback", "fail"):
        assert f"slipway op {cure} {OPERATION}" in result.stderr


@pytest.mark.parametrize("state", ["FAILED", "ROLLED_BACK"])
def test_an_operation_that_did_not_complete_is_exit_code_1(
    state: str, accepting: ScriptedServer, slipway: Slipway
) -> None:
    accepting.answer(f"GET {STEPS}/{OPERATION}/steps", journal(state))
    accepting.answer(f"GET {OPERATIONS}/{OPERATION}", occurrence(state))

    assert slipway("vnf", "scale", "mycluster", "--aspect", "workers").exit_code == 1


def test_ctrl_c_ends_the_watch_and_not_the_operation(accepting: ScriptedServer, slipway: Slipway) -> None:
    accepting.answer(f"GET {STEPS}/{OPERATION}/steps", journal("PROCESSING"))
    accepting.breaks(f"GET {STEPS}/{OPERATION}/steps", KeyboardInterrupt())
    result = slipway("vnf", "scale", "mycluster", "--aspect", "workers")

    assert result.exit_code == 130
    assert f"slipway op wait {OPERATION}" in result.stderr
    assert not accepting.sent(f"POST {OPERATIONS}/{OPERATION}/cancel")


def test_a_server_that_restarts_is_waited_for(accepting: ScriptedServer, slipway: Slipway) -> None:
    route = f"GET {STEPS}/{OPERATION}/steps"
    accepting.answer(route, journal("PROCESSING"))
    accepting.breaks(route, httpx.ConnectError("refused"))
    accepting.answer(route, journal("COMPLETED"))
    accepting.answer(f"GET {OPERATIONS}/{OPERATION}", occurrence("COMPLETED"))

    assert slipway("vnf", "scale", "mycluster", "--aspect", "workers").exit_code == 0


def test_a_server_that_stays_away_is_given_up(accepting: ScriptedServer, slipway: Slipway) -> None:
    route = f"GET {STEPS}/{OPERATION}/steps"
    accepting.answer(route, journal("PROCESSING"))
    accepting.breaks(route, httpx.ConnectError("refused"))

    assert slipway("vnf", "scale", "mycluster", "--aspect", "workers").exit_code == 3
    assert 60 < sum(accepting.naps) < 62


def test_a_modification_is_made_only_to_what_was_read(completing: ScriptedServer, slipway: Slipway) -> None:
    args = ["--name", "new", "--metadata", "a=null", "--property", "p=1", "--description", ""]
    result = slipway("vnf", "modify", "mycluster", *args)

    assert result.exit_code == 0, result.stderr
    patch = next(request for request in completing.requests if request.method == "PATCH")
    assert patch.headers["If-Match"] == '"7"'
    assert json.loads(patch.content) == {
        "vnfInstanceName": "new",
        "vnfInstanceDescription": "",
        "metadata": {"a": None},
        "vnfConfigurableProperties": {"p": 1},
    }


def test_a_vnfc_is_healed_by_its_machines_name_or_its_id(server: ScriptedServer, slipway: Slipway) -> None:
    info = {
        "vnfcResourceInfo": [{"id": "r1", "vduId": "w", "metadata": {"name": "workerNode-1"}}],
        "vnfcInfo": [{"id": "w-r1", "vduId": "w", "vnfcState": "STARTED", "vnfcResourceInfoId": "r1"}],
    }
    server.answer(f"GET {INSTANCES}/{ID}", {**VNF, "instantiatedVnfInfo": info})
    server.answer(f"POST {PLANS}", PLAN)
    for name in ("workerNode-1", "w-r1", "r1"):
        assert slipway("vnf", "heal", ID, "--vnfc", name, "--plan").exit_code == 0
    chosen = [sent["request"]["vnfcInstanceId"] for sent in server.sent(f"POST {PLANS}")]
    assert chosen == [["w-r1"], ["w-r1"], ["r1"]]
    unknown = slipway("vnf", "heal", ID, "--vnfc", "workerNode-9", "--plan")
    assert unknown.exit_code == 1
    assert "it has: workerNode-1" in unknown.stderr
