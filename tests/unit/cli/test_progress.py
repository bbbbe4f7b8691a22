from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from slipway.cli.output import Format, Output
from slipway.cli.paths import OPERATIONS, STEPS
from slipway.cli.progress import LONGEST, SHORTEST, PlainView, watch
from slipway.cli.session import ServerAddress, Session
from slipway.cli.step_view import LiveView, line, steps_table, visible
from tests.unit.cli.scripted_server import ScriptedServer
from tests.unit.cli.test_vnf_operations import OPERATION, journal, occurrence, step


def steps_of(count: int, state: str) -> list[dict[str, Any]]:
    return [step(state, id=f"{state} {number}") for number in range(count)]


def test_it_asks_often_while_things_happen_and_seldom_while_nothing_does(server: ScriptedServer) -> None:
    route = f"GET {STEPS}/{OPERATION}/steps"
    for _ in range(15):
        server.answer(route, journal("PROCESSING", step("RUNNING")))
    for number in range(10):
        server.answer(route, journal("PROCESSING", step("RUNNING", attempt=number)))
    server.answer(route, journal("COMPLETED"))
    server.answer(f"GET {OPERATIONS}/{OPERATION}", occurrence("COMPLETED"))

    assert watch(Session(ServerAddress(), Output(Format.JSON), server.environment()), OPERATION) == 0
    assert server.naps[0] == SHORTEST
    assert server.naps[14] == LONGEST
    assert server.naps[-1] == SHORTEST


def test_a_journal_that_has_not_changed_is_not_sent_again(server: ScriptedServer) -> None:
    route = f"GET {STEPS}/{OPERATION}/steps"
    server.answer(route, journal("PROCESSING"), ETag='"1"')
    server.answer(route, None, 304, ETag='"1"')
    server.answer(route, journal("COMPLETED"), ETag='"2"')
    server.answer(f"GET {OPERATIONS}/{OPERATION}", occurrence("COMPLETED"))

    watch(Session(ServerAddress(), Output(Format.JSON), server.environment()), OPERATION)

    assert [request.headers.get("If-None-Match") for request in server.requests[:3]] == [None, '"1"', '"1"']


def test_plain_lines_are_said_once_for_each_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView()
    for attempt, state in ((1, "RUNNING"), (1, "FAILED"), (1, "FAILED"), (2, "RUNNING"), (2, "DONE")):
        view.show(journal("PROCESSING", step(state, attempt=attempt)))

    assert [printed[0] for printed in capsys.readouterr().out.splitlines()] == ["✗", "✓"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (step("DONE", durationSeconds=0.44, attempt=1), "✓ make machine workerNode-1  0.4 s"),
        (step("FAILED", error="a\x1b[2J\nb", attempt=2), "✗ make machine workerNode-1  attempt 2  a[2J b"),
        (step("UNDONE", id="join", nodes=["n1"]), "↺ join  on n1  undone"),
        (
            step("UNDONE", id="change stack", nodes=["n1", "n2", "n3", "n4", "n5"]),
            "↺ change stack  on n1, n2, n3 and 2 more  undone",
        ),
        (step("NEW_STATE", id="join", nodes=[]), "? join"),
        (step("RUNNING", id="upload", nodes=[], progress="3 of 9 MiB"), "› upload  3 of 9 MiB"),
    ],
)
def test_a_step_is_a_line(given: dict[str, Any], expected: str) -> None:
    assert line(given) == expected


def test_what_does_not_fit_is_what_matters_least() -> None:
    steps = [*steps_of(50, "DONE"), *steps_of(2, "RUNNING"), *steps_of(1, "FAILED"), *steps_of(50, "WAITING")]
    shown = visible(steps, 5)

    assert [one["state"] for one in shown] == ["DONE", "DONE", "RUNNING", "RUNNING", "FAILED"]
    assert visible(steps, 500) == steps


def test_on_a_terminal_the_steps_are_drawn_with_running_times() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=10, markup=False)
    times = iter([0.0, 2.5])
    with LiveView(console, lambda: next(times)) as view:
        view.show(journal("PROCESSING", step("RUNNING", id="[red]make", attempt=1), *steps_of(30, "WAITING")))
        view.show(journal("PROCESSING", step("RUNNING", id="[red]make", attempt=1), *steps_of(30, "DONE")))
    assert isinstance(console.file, io.StringIO)
    drawn = console.file.getvalue()

    assert "30 of 31 steps, 25 not shown" in drawn
    assert "› [red]make" in drawn
    assert "2.5 s" in drawn


def test_the_table_of_steps_names_the_nodes_that_each_touches() -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(steps_table([step("DONE", id="change stack", nodes=["workerNode-1", "workerNode-2"])]))
    assert isinstance(console.file, io.StringIO)
    assert "workerNode-1, workerNode-2" in console.file.getvalue()
