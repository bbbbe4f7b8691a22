from __future__ import annotations

import json
from pathlib import Path

import pytest

from slipway.cli.paths import VIMS
from slipway.cli.sim import parse_rule
from slipway.vim.fault_rules import read_rules
from tests.unit.cli.conftest import Slipway
from tests.unit.cli.scripted_server import ScriptedServer

RULES = f"{VIMS}/lab/rules"
OLD = {"call": "find", "kind": "latency", "seconds": 1.0}


@pytest.fixture
def known(server: ScriptedServer) -> ScriptedServer:
    server.answer(f"GET {RULES}", [OLD])
    server.answer(f"PUT {RULES}", [])
    server.answer(f"DELETE {RULES}", None, 204)
    return server


def test_a_rule_is_what_the_simulated_vim_understands() -> None:
    text = "call=make_machine,machine=workerNode-*,kind=error,fault=temporary,nth=2,times=1,message=no, not now"
    rule = parse_rule(text, "--add")

    assert rule["message"] == "no, not now"
    assert (rule["nth"], rule["times"]) == (2, 1)
    assert read_rules([rule])[0].machine == "workerNode-*"


def test_rules_are_shown(known: ScriptedServer, slipway: Slipway) -> None:
    assert "seconds=1.0" in slipway("sim", "rules", "lab").stdout
    assert json.loads(slipway("sim", "rules", "lab", "-o", "json").stdout) == [OLD]


def test_rules_are_added_to_those_there_are(known: ScriptedServer, slipway: Slipway) -> None:
    slipway("sim", "rules", "lab", "--add", "call=find,kind=error", "--add", "kind=error")

    assert known.sent(f"PUT {RULES}") == [[OLD, {"call": "find", "kind": "error"}, {"kind": "error"}]]


def test_rules_are_replaced_from_a_file(known: ScriptedServer, slipway: Slipway, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text("- {call: find, kind: error}\n")
    slipway("sim", "rules", "lab", "--set", str(file))
    file.write_text("call: find\n")

    assert known.sent(f"PUT {RULES}") == [[{"call": "find", "kind": "error"}]]
    assert slipway("sim", "rules", "lab", "--set", str(file)).exit_code == 2


def test_rules_are_cleared(known: ScriptedServer, slipway: Slipway) -> None:
    assert slipway("sim", "rules", "lab", "--clear").exit_code == 0
    assert known.requests[0].method == "DELETE"


def test_one_change_at_a_time(known: ScriptedServer, slipway: Slipway) -> None:
    assert slipway("sim", "rules", "lab", "--clear", "--add", "kind=error").exit_code == 2
    assert not known.requests
