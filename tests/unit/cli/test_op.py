from __future__ import annotations

import json

import pytest

from slipway.cli.paths import INSTANCES, OPERATIONS, STEPS
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ID, ScriptedServer
from tests.unit.cli.test_vnf import VNF
from tests.unit.cli.test_vnf_operations import OPERATION, journal, occurrence, step

ONE = f"{OPERATIONS}/{OPERATION}"


def stands(server: ScriptedServer, state: str) -> None:
    server.answer(f"GET {STEPS}/{OPERATION}/steps", journal(state))
    server.answer(f"GET {ONE}", occurrence(state))


def test_operations_are_listed_newest_first_of_one_vnf_in_one_state(server: ScriptedServer, slipway: Slipway) -> None:
    server.answer(f"GET {INSTANCES}", [VNF])
    server.answer(f"GET {INSTANCES}/{ID}", VNF)
    old = occurrence("FAILED_TEMP", id="old", startTime="2026-01-01T00:00:00Z", error={"detail": "quota"})
    server.answer(f"GET {OPERATIONS}", [old, occurrence("FAILED_TEMP", id="new", startTime="2026-01-02T00:00:00Z")])
    result = slipway("op", "list", "--vnf", "mycluster", "--state", "failed_temp")

    lines = result.stdout.splitlines()
    assert lines[1].startswith("new")
    assert lines[2].startswith("old")
    assert "quota" in lines[2]
    query = server.requests[-1].url.params
    assert query["filter"] == f"(eq,vnfInstanceId,{ID});(eq,operationState,FAILED_TEMP)"
    assert "error" not in query["exclude_fields"]


def test_a_long_error_is_cut_in_tables_and_whole_elsewhere(server: ScriptedServer, slipway: Slipway) -> None:
    told = "quota of the project " + "x" * 500
    server.answer(f"GET {OPERATIONS}", [occurrence("FAILED_TEMP", error={"detail": told})])
    server.answer(f"GET {ONE}", occurrence("FAILED_TEMP", error={"detail": told}))
    server.answer(f"GET {STEPS}/{OPERATION}/steps", journal("FAILED_TEMP", step("FAILED", error=told)))
    for table in (slipway("op", "list").stdout, slipway("op", "steps", OPERATION).stdout):
        assert "quota of the project" in table
        assert "x…" in table
        assert told not in table
    for whole in (("op", "list", "-o", "json"), ("op", "show", OPERATION), ("op", "steps", OPERATION, "-o", "json")):
        assert told in slipway(*whole).stdout


def test_an_operation_is_shown_with_its_error_first(server: ScriptedServer, slipway: Slipway) -> None:
    server.answer(f"GET {ONE}", occurrence("FAILED_TEMP", error={"detail": "quota"}, isCancelPending=True))

    assert slipway("op", "show", OPERATION).stdout.splitlines()[0].split() == ["Error", "quota"]


def test_steps_are_a_table(server: ScriptedServer, slipway: Slipway) -> None:
    done = step("DONE", attempt=1, durationSeconds=2.25)
    failed = step("FAILED", id="drain", attempt=2, error="pod web-0 can't be evicted")
    server.answer(f"GET {STEPS}/{OPERATION}/steps", journal("FAILED_TEMP", done, failed))
    table = slipway("op", "steps", OPERATION).stdout

    assert "✓ make machine workerNode-1" in table
    assert "pod web-0 can't be evicted" in table
    assert len(json.loads(slipway("op", "steps", OPERATION, "-o", "json").stdout)["steps"]) == 2


@pytest.mark.parametrize(
    ("command", "state", "code"),
    [
        ("retry", "COMPLETED", 0),
        ("retry", "FAILED_TEMP", 1),
        ("rollback", "ROLLED_BACK", 0),
        ("rollback", "FAILED_TEMP", 1),
        ("cancel", "FAILED_TEMP", 0),
        ("cancel", "ROLLED_BACK", 0),
        ("cancel", "COMPLETED", 1),
        ("fail", "FAILED", 0),
    ],
)
def test_a_decision_is_exit_code_0_when_it_ends_as_it_was_meant(
    command: str, state: str, code: int, server: ScriptedServer, slipway: Slipway
) -> None:
    server.answer(f"POST {ONE}/{command}", None, 202)
    stands(server, state)

    assert slipway("op", command, OPERATION).exit_code == code


@pytest.mark.parametrize(("option", "mode"), [([], "GRACEFUL"), (["--forceful"], "FORCEFUL")])
def test_a_cancellation_says_how(option: list[str], mode: str, server: ScriptedServer, slipway: Slipway) -> None:
    server.answer(f"POST {ONE}/cancel", None, 202)
    stands(server, "PROCESSING")

    assert slipway("op", "cancel", OPERATION, "--no-wait", *option).exit_code == 0
    assert server.sent(f"POST {ONE}/cancel") == [{"cancelMode": mode}]


def test_waiting_for_an_operation_that_has_ended_returns_at_once(server: ScriptedServer, slipway: Slipway) -> None:
    stands(server, "COMPLETED")

    assert slipway("op", "wait", OPERATION).exit_code == 0
    assert not server.naps


def test_a_decision_that_is_not_possible_prints_why(server: ScriptedServer, slipway: Slipway) -> None:
    server.refuse(f"POST {ONE}/retry", 409, "The operation is in state COMPLETED.")
    result = slipway("op", "retry", OPERATION)

    assert (result.exit_code, result.stderr) == (1, "Error: The operation is in state COMPLETED.\n")
