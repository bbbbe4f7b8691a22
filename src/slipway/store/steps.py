"""The journal's rows: one for each step of each plan."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from slipway.model.journal import StepRecord, StepState
from slipway.model.operation import ENDED
from slipway.model.plan import Plan
from slipway.store.column_types import without_zero
from slipway.store.tables import operations, steps

_WRITTEN = ("state", "attempt", "started_at", "ended_at", "error", "outcome", "progress")  # while it runs
_UPDATE = (
    update(steps)
    .where(steps.c.operation_id == bindparam("of"), steps.c.position == bindparam("at"))
    .values({name: bindparam(name) for name in _WRITTEN})
)
_SELECT = select(*(column for column in steps.c if column.name != "operation_id")).order_by(steps.c.position)
_JOURNAL = _SELECT.where(steps.c.operation_id == bindparam("of"))


def write_plan(connection: Connection, operation_id: str, plan: Plan) -> list[StepRecord]:
    """Store a plan, in place of an earlier one, and return its journal, in which all steps are waiting."""
    connection.execute(delete(steps).where(steps.c.operation_id == operation_id))
    records = [
        StepRecord(
            position=position,
            id=step.id,
            action=step.action,
            args=step.args,
            nodes=step.nodes,
            timeout=step.timeout,
            after=step.after,
            effects=step.effects,
            irreversible=step.irreversible,
        )
        for position, step in enumerate(plan.steps)
    ]
    if records:
        connection.execute(insert(steps), [_row(operation_id, record) for record in records])
    return records


def journal(connection: Connection, operation_id: str) -> list[StepRecord]:
    return [_record(row) for row in connection.execute(_JOURNAL, {"of": operation_id})]


def note(connection: Connection, operation_id: str, record: StepRecord) -> None:
    """Write the present state of a step."""
    connection.execute(
        _UPDATE,
        {
            "of": operation_id,
            "at": record.position,
            "state": record.state.value,
            "attempt": record.attempt,
            "started_at": record.started_at,
            "ended_at": record.ended_at,
            "error": None if record.error is None else without_zero(record.error),
            "outcome": record.outcome,
            "progress": record.progress,
        },
    )


def wait_again(connection: Connection, operation_id: str) -> None:
    """For a retry: all steps that are not done are waiting again."""
    connection.execute(
        update(steps)
        .where(steps.c.operation_id == operation_id, steps.c.state != StepState.DONE.value)
        .values(state=StepState.WAITING.value, error=None, started_at=None, ended_at=None, outcome=None, progress=None)
    )


def prune(connection: Connection, ended_before: float) -> int:
    """Delete the journals of ended operations that began before then. Returns the number of rows."""
    old = select(operations.c.id).where(
        operations.c.started_at < ended_before, operations.c.state.in_([state.value for state in ENDED])
    )
    return connection.execute(delete(steps).where(steps.c.operation_id.in_(old))).rowcount


def _row(operation_id: str, record: StepRecord) -> dict[str, Any]:
    return {
        "operation_id": operation_id,
        "position": record.position,
        "id": record.id,
        "action": record.action,
        "nodes": record.nodes,
        "timeout": record.timeout,
        "args": record.args,
        "after": record.after,
        "effects": record.effects,
        "irreversible": record.irreversible,
        "state": record.state.value,
        "attempt": record.attempt,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "error": record.error,
        "outcome": record.outcome,
        "progress": record.progress,
    }


def _record(row: Row[Any]) -> StepRecord:
    values = dict(row._mapping)
    return StepRecord(**{**values, "state": StepState(values["state"])})
