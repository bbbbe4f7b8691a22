"""Retry, roll back, fail and cancel operations, as SOL003 has it. A worker then does the work (worker.py)."""

from __future__ import annotations

from sqlalchemy import Connection

from slipway.engine.interfaces import OperationHandler
from slipway.model.errors import Conflict
from slipway.model.journal import UNTOUCHED, StepRecord
from slipway.model.operation import RUNNING, CancelMode, Event, Operation, after, entered
from slipway.store import operations, steps


def retry(connection: Connection, operation_id: str) -> Operation:
    """Go on from what failed."""
    operation = _decided(connection, operation_id, Event.RETRY)
    steps.wait_again(connection, operation_id)
    operations.hand_over(connection, operation_id)
    return operation


def roll_back(connection: Connection, operation_id: str) -> Operation:
    """Undo what was done, newest first, unless something was done that can't be undone."""
    operation = _decided(connection, operation_id, Event.ROLLBACK)
    for record in steps.journal(connection, operation_id):
        if record.irreversible and record.state not in UNTOUCHED:
            raise Conflict(
                f"Operation {operation_id} can't be rolled back: step '{record.id}' began and can't be undone. "
                "Retry it to go on, or fail it."
            )
    operations.hand_over(connection, operation_id)
    return operation


def fail(connection: Connection, operation_id: str, handler: OperationHandler) -> Operation:
    """Give up. The records then say what was made and what was not."""
    operation = _decided(connection, operation_id, Event.FAIL)
    settled = handler.settle(connection, operation, steps.journal(connection, operation_id))
    operations.save(connection, settled)
    return settled


def cancel(connection: Connection, operation_id: str, mode: CancelMode) -> Operation:
    """Ask the worker to stop. It does so between steps (GRACEFUL) or at once (FORCEFUL)."""
    operation = operations.lock(connection, operation_id)
    if operation.operation_state not in RUNNING:
        after(operation.operation_state, Event.CANCELLED)  # raises, and says in which states it is possible
    return operations.ask_cancel(connection, operation, mode)


def progress(connection: Connection, operation_id: str) -> list[StepRecord]:
    """Every step: state, node, attempt, start, end and error, while it runs and afterwards."""
    operations.get(connection, operation_id)
    return steps.journal(connection, operation_id)


def _decided(connection: Connection, operation_id: str, event: Event) -> Operation:
    operation = operations.lock(connection, operation_id)
    decided = entered(operation, after(operation.operation_state, event))
    operations.save(connection, decided)
    return decided
