"""Operations: one at a time for each instance, held by a unique index; owned by one worker, held by an epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from slipway.model.access import DEFAULT_PROJECT
from slipway.model.errors import Conflict, LeaseLost, NotFound
from slipway.model.grant import Granting
from slipway.model.instance import VimConnectionInfo
from slipway.model.operation import HOLDING, CancelMode, Operation, OperationType
from slipway.store.column_types import database_now
from slipway.store.database import RowByKey
from slipway.store.resources import summary
from slipway.store.tables import HOLDS_INSTANCE, IS_RUNNING, operations, workers

_ONE = select(operations.c.doc).where(operations.c.id == bindparam("wanted"))
_UNLESS_HELD = {
    "sqlite": sqlite.insert(operations).on_conflict_do_nothing().returning(operations.c.id),
    "postgresql": postgresql.insert(operations).on_conflict_do_nothing().returning(operations.c.id),
}
_FENCED = (
    select(operations.c.doc, operations.c.vim, operations.c.planned)
    .where(operations.c.id == bindparam("wanted"), operations.c.epoch == bindparam("held"))
    .with_for_update()
)
_FENCE = _FENCED.with_only_columns(operations.c.id)
_SAVE = (
    update(operations)
    .where(operations.c.id == bindparam("wanted"))
    .values({name: bindparam(name) for name in ("state", "doc", "summary")})
)
_VIM = select(operations.c.vim).where(operations.c.id == bindparam("wanted"))
_PLANNED = update(operations).where(operations.c.id == bindparam("wanted")).values(planned=True)
_CLAIM = (
    update(operations)
    .where(operations.c.id == bindparam("wanted"))
    .values(worker_id=bindparam("by"), epoch=bindparam("next"))
)
_STORED = RowByKey(operations.c.id, cast(operations.c.doc, Text))


@dataclass(frozen=True)
class ClaimedOperation:
    """An operation that a worker has claimed, with the epoch of that claim."""

    operation: Operation
    vim: VimConnectionInfo | None
    planned: bool
    epoch: int


def accept(
    connection: Connection, operation: Operation, vim: VimConnectionInfo | None, project: str = DEFAULT_PROJECT
) -> None:
    """Begin an operation, or Conflict when the instance has one that has not ended. The database decides which."""
    accepted = connection.scalar(
        _UNLESS_HELD[connection.dialect.name],
        {
            "id": operation.id,
            "project": project,
            "instance_id": operation.vnf_instance_id,
            "operation": operation.operation.value,
            "state": operation.operation_state.value,
            "started_at": operation.start_time.timestamp(),
            "doc": operation,
            "summary": summary(operation),
            "vim": vim,
            "planned": False,
            "epoch": 1,
        },
    )
    if accepted is None:
        raise Conflict(_what_holds(connection, operation.vnf_instance_id))


def _what_holds(connection: Connection, instance_id: str) -> str:
    row = connection.execute(
        select(operations.c.id, operations.c.operation, operations.c.state)
        .where(operations.c.instance_id == instance_id)
        .order_by(operations.c.started_at.desc())
        .limit(1)
    ).first()
    if row is None:
        return f"VNF instance {instance_id} has another operation under way; try again when it has ended."
    cure = "retry, roll back or fail it first" if row.state == "FAILED_TEMP" else "wait until it has ended"
    return f"VNF instance {instance_id} has operation {row.operation} {row.id} in state {row.state}: {cure}."


def get(connection: Connection, operation_id: str) -> Operation:
    return _one(connection, _ONE, operation_id)


def stored(connection: Connection, operation_id: str) -> str:
    """The document as JSON text."""
    row = _STORED(connection, operation_id)
    if row is None:
        raise _not_found(operation_id)
    document: str = row[0]
    return document


def lock(connection: Connection, operation_id: str) -> Operation:
    """Read an operation and lock it until the transaction ends."""
    return _one(connection, _ONE.with_for_update(), operation_id)


def _one(connection: Connection, query: Select[Any], operation_id: str) -> Operation:
    operation: Operation | None = connection.scalar(query, {"wanted": operation_id})
    if operation is None:
        raise _not_found(operation_id)
    return operation


def _not_found(operation_id: str) -> NotFound:
    return NotFound(f"There is no LCM operation occurrence {operation_id}.")


def project_of(connection: Connection, operation_id: str) -> str:
    project: str = connection.execute(select(operations.c.project).where(operations.c.id == operation_id)).scalar_one()
    return project


def vim_of(connection: Connection, operation_id: str) -> VimConnectionInfo | None:
    vim: VimConnectionInfo | None = connection.scalar(_VIM, {"wanted": operation_id})
    return vim


def grant_of(connection: Connection, operation_id: str) -> Granting | None:
    grant: Granting | None = connection.scalar(select(operations.c.grant).where(operations.c.id == operation_id))
    return grant


def keep_grant(
    connection: Connection, operation: Operation, granting: Granting, vim: VimConnectionInfo | None
) -> Operation:
    """The operation, which is locked, was granted; `vim` is the one that it is to be on."""
    granted = msgspec.structs.replace(operation, grant_id=granting.grant.id)
    connection.execute(
        update(operations)
        .where(operations.c.id == operation.id)
        .values(doc=granted, summary=summary(granted), grant=granting, vim=vim)
    )
    return granted


def held_by(connection: Connection, instance_id: str) -> bool:
    """Whether an operation of the instance has not ended."""
    return bool(
        connection.execute(
            select(operations.c.id).where(operations.c.instance_id == instance_id, HOLDS_INSTANCE)
        ).first()
    )


def save(connection: Connection, operation: Operation) -> None:
    """Write the operation as it now is."""
    state = operation.operation_state.value
    connection.execute(_SAVE, {"wanted": operation.id, "state": state, "doc": operation, "summary": summary(operation)})


def hand_over(connection: Connection, operation_id: str) -> None:
    """Release an operation from its worker, so that any worker may claim it."""
    connection.execute(
        update(operations)
        .where(operations.c.id == operation_id)
        .values(worker_id=None, epoch=operations.c.epoch + 1, cancel_mode=None)
    )


def ask_cancel(connection: Connection, operation: Operation, mode: CancelMode) -> Operation:
    asked = msgspec.structs.replace(operation, is_cancel_pending=True, cancel_mode=mode)
    connection.execute(
        update(operations)
        .where(operations.c.id == operation.id)
        .values(doc=asked, summary=summary(asked), cancel_mode=mode.value)
    )
    return asked


def mark_planned(connection: Connection, operation_id: str) -> None:
    connection.execute(_PLANNED, {"wanted": operation_id})


def fenced(connection: Connection, operation_id: str, epoch: int) -> ClaimedOperation:
    """The operation, locked for this transaction, or LeaseLost when another worker has claimed it since."""
    row = connection.execute(_FENCED, {"wanted": operation_id, "held": epoch}).first()
    if row is None:
        raise _lost(operation_id)
    return ClaimedOperation(row.doc, row.vim, row.planned, epoch)


def fence(connection: Connection, operation_id: str, epoch: int) -> None:
    """The same, without reading the operation."""
    if connection.execute(_FENCE, {"wanted": operation_id, "held": epoch}).first() is None:
        raise _lost(operation_id)


def _lost(operation_id: str) -> LeaseLost:
    return LeaseLost(f"Operation {operation_id} belongs to another worker now.")


def _claimable(worker_id: str, running: Collection[str], *, orphans: bool) -> ColumnElement[bool]:
    """Operations with work to do that no worker runs: unclaimed, claimed by us but not running here, or, with
    `orphans`, claimed by a worker whose lease has ended."""
    lost = and_(operations.c.worker_id == worker_id, operations.c.id.not_in(running))
    free = or_(operations.c.worker_id.is_(None), lost)
    if orphans:
        alive = exists().where(workers.c.id == operations.c.worker_id, workers.c.lease_until > database_now())
        free = or_(free, and_(operations.c.worker_id != worker_id, ~alive))
    return and_(IS_RUNNING, free)


def instantiations(connection: Connection, project: str) -> Iterator[Operation]:
    """Those of a project that have not ended."""
    kind = operations.c.operation == OperationType.INSTANTIATE.value
    yield from connection.scalars(select(operations.c.doc).where(HOLDS_INSTANCE, operations.c.project == project, kind))


def any_claimable(connection: Connection, worker_id: str, running: Collection[str], *, orphans: bool) -> bool:
    query = select(operations.c.id).where(_claimable(worker_id, running, orphans=orphans)).limit(1)
    return connection.execute(query).first() is not None


def claim(
    connection: Connection, worker_id: str, running: Collection[str], limit: int, share: int, *, orphans: bool
) -> list[ClaimedOperation]:
    """At most `limit`, and so many that no project has more than `share` of those that the worker runs."""
    held = select(operations.c.project, func.count()).where(IS_RUNNING, operations.c.worker_id == worker_id)
    counts = Counter[str]()
    for project, count in connection.execute(held.group_by(operations.c.project)):
        counts[project] = count
    full = [project for project, count in counts.items() if count >= share]
    found = connection.execute(
        select(
            operations.c.id,
            operations.c.doc,
            operations.c.vim,
            operations.c.planned,
            operations.c.epoch,
            operations.c.project,
        )
        .where(_claimable(worker_id, running, orphans=orphans), operations.c.project.not_in(full))
        .order_by(operations.c.started_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    rows = []
    for row in found:
        if counts[row.project] < share:
            counts[row.project] += 1
            rows.append(row)
    if rows:
        connection.execute(_CLAIM, [{"wanted": row.id, "by": worker_id, "next": row.epoch + 1} for row in rows])
    return [ClaimedOperation(row.doc, row.vim, row.planned, row.epoch + 1) for row in rows]


def release(connection: Connection, operation_id: str, epoch: int) -> None:
    """Give a claimed operation back, unless it was taken already."""
    connection.execute(
        update(operations)
        .where(operations.c.id == operation_id, operations.c.epoch == epoch)
        .values(worker_id=None, epoch=epoch + 1)
    )


def cancels(connection: Connection, worker_id: str) -> dict[str, CancelMode]:
    """The worker's running operations that are to be cancelled, and how."""
    rows = connection.execute(
        select(operations.c.id, operations.c.cancel_mode).where(
            IS_RUNNING,
            operations.c.worker_id == worker_id,
            operations.c.cancel_mode.is_not(None),
        )
    )
    return {row.id: CancelMode(row.cancel_mode) for row in rows}


def count_open(connection: Connection) -> dict[tuple[str, ...], float]:
    """Those that have not ended, by operation and state; 0 where there is none, so that a graph has no holes."""
    found: dict[tuple[str, ...], float] = {(o.value, s.value): 0 for o in OperationType for s in sorted(HOLDING)}
    rows = connection.execute(
        select(operations.c.operation, operations.c.state, func.count())
        .where(HOLDS_INSTANCE)
        .group_by(operations.c.operation, operations.c.state)
    )
    return found | {(operation, state): number for operation, state, number in rows}


def count_unclaimed(connection: Connection) -> int:
    """Those with work to do that no live worker has."""
    alive = exists().where(workers.c.id == operations.c.worker_id, workers.c.lease_until > database_now())
    waiting = or_(operations.c.worker_id.is_(None), ~alive)
    number: int = connection.execute(
        select(func.count()).select_from(operations).where(IS_RUNNING, waiting)
    ).scalar_one()
    return number
