"""How many there are of what has not ended: for whoever watches, answered by the indexes of operations under way."""

from __future__ import annotations

from sqlalchemy import Connection, exists, func, or_, select

from slipway.model.operation import HOLDING, OperationType
from slipway.store.columns import database_now
from slipway.store.tables import HOLDS_INSTANCE, IS_RUNNING, operations, workers


def open_operations(connection: Connection) -> dict[tuple[str, ...], float]:
    """Those that have not ended, by operation and state; 0 where there is none, so that a graph has no holes."""
    found: dict[tuple[str, ...], float] = {(o.value, s.value): 0 for o in OperationType for s in sorted(HOLDING)}
    rows = connection.execute(
        select(operations.c.operation, operations.c.state, func.count())
        .where(HOLDS_INSTANCE)
        .group_by(operations.c.operation, operations.c.state)
    )
    return found | {(operation, state): number for operation, state, number in rows}


def unclaimed_operations(connection: Connection) -> int:
    """Those with work to do that no live worker has."""
    alive = exists().where(workers.c.id == operations.c.worker_id, workers.c.lease_until > database_now())
    waiting = or_(operations.c.worker_id.is_(None), ~alive)
    number: int = connection.execute(
        select(func.count()).select_from(operations).where(IS_RUNNING, waiting)
    ).scalar_one()
    return number
