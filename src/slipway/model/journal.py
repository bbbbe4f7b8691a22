"""What happened to each step of a plan: readable while it runs and afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from slipway.model.machine import Outcome
from slipway.model.plan import Effect


class StepState(StrEnum):
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    UNDOING = "UNDOING"
    UNDONE = "UNDONE"
    UNDO_FAILED = "UNDO_FAILED"


# In a step's data: what a script of the package leaves for those that run after a failure.
ERROR_DATA = "userScriptErrHandlingData"

# The world may have been changed by a step in any state but these.
UNTOUCHED = frozenset({StepState.WAITING, StepState.UNDONE})


class StepRecord(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A step of a plan and how it went. `position` is its place in the plan."""

    position: int
    id: str
    action: str
    args: dict[str, Any]
    nodes: tuple[str, ...] = ()
    timeout: float | None = None
    after: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    irreversible: bool = False
    state: StepState = StepState.WAITING
    attempt: int = 0
    started_at: float | None = None
    ended_at: float | None = None
    error: str | None = None
    outcome: Outcome | None = None
    progress: str | None = None  # what it is at while it runs: "312 of 1024 MiB"


def error_data(journal: Iterable[StepRecord]) -> dict[str, Any] | None:
    """The latest that a script left."""
    left = [record for record in journal if record.outcome and ERROR_DATA in record.outcome.data]
    latest = max(left, key=lambda record: record.ended_at or 0.0, default=None)
    return latest.outcome.data[ERROR_DATA] if latest and latest.outcome else None
