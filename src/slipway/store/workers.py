"""Leases: a worker is alive while its row says so, by the database's clock."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from slipway.store.column_types import database_now
from slipway.store.tables import workers


def renew_lease(connection: Connection, worker_id: str, lease: float) -> bool:
    """Renew the lease. False when it had ended: then others may have taken what this worker ran."""
    renewed = connection.execute(
        update(workers)
        .where(workers.c.id == worker_id, workers.c.lease_until > database_now())
        .values(lease_until=database_now() + lease)
    ).rowcount
    if renewed:
        return True
    release_lease(connection, worker_id)
    connection.execute(insert(workers).values(id=worker_id, lease_until=database_now() + lease))
    return False


def release_lease(connection: Connection, worker_id: str) -> None:
    connection.execute(delete(workers).where(workers.c.id == worker_id))


def forget_dead(connection: Connection) -> None:
    """Rows whose lease has ended say the same as no row."""
    connection.execute(delete(workers).where(workers.c.lease_until <= database_now()))


def forget_all(connection: Connection) -> None:
    """For a process that knows it is alone with its database."""
    connection.execute(delete(workers))


def alive(connection: Connection) -> list[str]:
    return list(connection.execute(select(workers.c.id).where(workers.c.lease_until > database_now())).scalars())
