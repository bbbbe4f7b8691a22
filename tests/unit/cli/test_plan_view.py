from __future__ import annotations

from typing import Any

import pytest

from slipway.cli.output import Format, Output
from slipway.cli.plan_view import show_plan, summary, waves


def step(name: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "action": "a", "after": list(after), "effects": [], **more}


def test_steps_stand_in_the_order_they_can_run() -> None:
    steps = [step("c", "a", "b"), step("a"), step("b"), step("d", "c")]

    assert [[one["id"] for one in wave] for wave in waves(steps)] == [["a", "b"], ["c"], ["d"]]


def test_a_circle_is_shown_rather_than_waited_for() -> None:
    assert len(waves([step("a", "b"), step("b", "a")])) == 1


def test_the_summary_counts() -> None:
    assert summary({"make": ["a", "b"], "remove": ["c"]}) == "2 to make, 0 to change, 1 to remove"


def test_a_plan_shows_steps_nodes_and_effects(capsys: pytest.CaptureFixture[str]) -> None:
    gone = [{"verb": "remove", "kind": "machine", "name": "[b]w-2"}]
    plan = {"steps": [step("drain", nodes=["w-2"]), step("go", "drain", effects=gone)], "remove": ["machine w-2"]}
    show_plan(Output(Format.TABLE), plan)
    lines = capsys.readouterr().out.splitlines()

    assert lines[0] == "2 steps"
    assert any(line.endswith("drain  on w-2") for line in lines)
    assert any(line.endswith("- remove machine [b]w-2") for line in lines)
    assert lines[-1] == "Plan: 0 to make, 0 to change, 1 to remove. Nothing was changed."


def test_a_plan_with_nothing_to_do_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_plan(Output(Format.TABLE), {"steps": []})

    assert "0 to make, 0 to change, 0 to remove" in capsys.readouterr().out
