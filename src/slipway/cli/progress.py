"""Watching an operation until it ends or needs a person: lines that move on a terminal, plain lines elsewhere.

It asks often while things happen and seldom while nothing does, and a server that restarts does not end the watch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from shlex import quote
from typing import Any, Protocol

from slipway.cli.errors import NotReachable
from slipway.cli.output import clean
from slipway.cli.paths import OPERATIONS, STEPS, item_path
from slipway.cli.session import Session
from slipway.cli.step_view import LiveView, line

SHORTEST, LONGEST = 0.05, 1.0
UNREACHABLE_SECONDS = 60.0  # seconds that a server may stay away
RESTING_STATES = frozenset({"COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK"})
ENDED_STEPS = frozenset({"DONE", "FAILED", "UNDONE", "UNDO_FAILED"})
INTERRUPTED = 130


class View(Protocol):
    def __enter__(self) -> View: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, journal: dict[str, Any]) -> None: ...


class PlainView:
    """One line for each step that ended, for logs and pipes."""

    def __init__(self) -> None:
        self._printed: set[tuple[str, str, int]] = set()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, journal: dict[str, Any]) -> None:
        for step in journal["steps"]:
            said = (step["id"], step["state"], step.get("attempt") or 0)
            if step["state"] in ENDED_STEPS and said not in self._printed:
                self._printed.add(said)
                print(line(step), flush=True)


class SilentView(PlainView):
    def show(self, journal: dict[str, Any]) -> None:
        pass


def watch(session: Session, operation_id: str, wanted: frozenset[str] = frozenset({"COMPLETED"})) -> int:
    """The exit code: 0 when the operation ends as wanted, 130 when the watcher, not the operation, was interrupted."""
    started = session.environment.clock()
    try:
        with _view(session) as view:
            for journal in _journals(session, operation_id):
                view.show(journal)
    except KeyboardInterrupt:
        session.output.note(f"The operation goes on. Look at it again: slipway op wait {quote(operation_id)}")
        return INTERRUPTED
    operation = session.client.get(item_path(OPERATIONS, operation_id)).body
    seconds = session.environment.clock() - started
    if session.output.for_people:
        session.output.say(f"{operation['operation']} {operation['operationState']} after {seconds:.1f} s.")
        for sentence in outcome(operation):
            session.output.note(sentence)
    else:
        session.output.show(operation, lambda: "")
    return 0 if operation["operationState"] in wanted else 1


def outcome(operation: dict[str, Any]) -> list[str]:
    """Why it did not complete and what can be done about it."""
    sentences = []
    if detail := (operation.get("error") or {}).get("detail"):
        sentences.append(f"Error: {clean(detail)}")
    if operation["operationState"] == "FAILED_TEMP":
        sentences += [f"  {cure}" for cure in cures(operation["id"])]
    return sentences


def cures(operation_id: str) -> list[str]:
    """Quoted: people paste them into a shell, and ids come from the server."""
    named = quote(operation_id)
    return [
        f"slipway op retry {named}     # go on from what failed",
        f"slipway op rollback {named}  # undo what was done, unless something irreversible began",
        f"slipway op fail {named}      # give up and leave it as it is",
    ]


def _view(session: Session) -> View:
    if not session.output.for_people:
        return SilentView()
    if sys.stdout.isatty():
        return LiveView(session.output.console(), session.environment.clock)
    return PlainView()


def _journals(session: Session, operation_id: str) -> Iterator[dict[str, Any]]:
    """The journal each time it has changed, the last one when the operation stands."""
    path = item_path(STEPS, operation_id, "steps")
    sleep, clock = session.environment.sleep, session.environment.clock
    etag, last, pause, heard = None, None, SHORTEST, clock()
    while True:
        asked = clock()
        try:
            answer = session.client.get(path, etag=etag)
        except NotReachable:
            if last is None or clock() - heard > UNREACHABLE_SECONDS:
                raise
            answer = None
        if answer is not None:
            heard = clock()
            journal = last if answer.unchanged else answer.body
            changed, last, etag = journal != last, journal, answer.etag
            if journal is not None:
                yield journal
                if journal["operationState"] in RESTING_STATES:
                    return
            pause = max(SHORTEST, pause / 2) if changed else min(LONGEST, pause * 1.5)
        # A slow server is not asked without a break.
        sleep(max(pause, clock() - asked))
