"""Subscriptions, and the notifications that wait to be delivered: in order, by one process at a time."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update

from slipway.model.clock import utcnow
from slipway.model.errors import NotFound
from slipway.model.subscription import Interface, Subscription
from slipway.store.column_types import database_now
from slipway.store.tables import notifications, subscriptions

_PENDING = select(func.count()).where(notifications.c.subscription_id == subscriptions.c.id).scalar_subquery()
_OF_PROJECT = select(subscriptions.c.doc).where(
    subscriptions.c.project == bindparam("of"), subscriptions.c.interface.in_(bindparam("wanted", expanding=True))
)
_WAITS = select(notifications.c.position).where(notifications.c.subscription_id == subscriptions.c.id).exists()
_DUE = or_(subscriptions.c.retry_at.is_(None), subscriptions.c.retry_at <= database_now())


@dataclass(frozen=True)
class PendingNotification:
    """A notification that is not delivered yet."""

    position: int
    age: float  # seconds
    body: str


class Delivery(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Statistics of the deliveries to a subscriber."""

    pending: int
    delivered: int
    given_up: int
    failures_in_a_row: int = 0
    last_error: str | None = None


def insert_one(connection: Connection, subscription: Subscription, project: str) -> None:
    connection.execute(
        insert(subscriptions).values(
            id=subscription.id,
            project=project,
            interface=subscription.interface.value,
            created_at=subscription.created_at.timestamp(),
            doc=subscription,
            failures=0,
            given_up=0,
            delivered=0,
        )
    )


def get(connection: Connection, subscription_id: str, interface: Interface | None = None) -> Subscription:
    query = select(subscriptions.c.doc).where(subscriptions.c.id == subscription_id)
    if interface is not None:
        query = query.where(subscriptions.c.interface == interface.value)
    found: Subscription | None = connection.scalar(query)
    if found is None:
        raise NotFound(f"There is no subscription {subscription_id}.")
    return found


def of_project(connection: Connection, project: str, interfaces: Collection[Interface]) -> list[Subscription]:
    wanted = [interface.value for interface in interfaces]
    return list(connection.scalars(_OF_PROJECT, {"of": project, "wanted": wanted}))


def count(connection: Connection, project: str) -> int:
    """Of all interfaces."""
    query = select(func.count()).select_from(subscriptions).where(subscriptions.c.project == project)
    return connection.scalar(query) or 0


def project_of(connection: Connection, subscription_id: str) -> str:
    project: str | None = connection.scalar(
        select(subscriptions.c.project).where(subscriptions.c.id == subscription_id)
    )
    if project is None:
        raise NotFound(f"There is no subscription {subscription_id}.")
    return project


def delete_one(connection: Connection, subscription_id: str, interface: Interface) -> None:
    """With all that waits for it."""
    get(connection, subscription_id, interface)
    connection.execute(delete(notifications).where(notifications.c.subscription_id == subscription_id))
    connection.execute(delete(subscriptions).where(subscriptions.c.id == subscription_id))


def delivery(connection: Connection, subscription_id: str) -> Delivery:
    row = connection.execute(
        select(subscriptions, _PENDING.label("pending")).where(subscriptions.c.id == subscription_id)
    ).one_or_none()
    if row is None:
        raise NotFound(f"There is no subscription {subscription_id}.")
    return Delivery(
        pending=row.pending,
        delivered=row.delivered,
        given_up=row.given_up,
        failures_in_a_row=row.failures,
        last_error=row.last_error,
    )


def enqueue(connection: Connection, told: Iterable[tuple[Subscription, dict[str, Any]]]) -> None:
    rows = []
    now = utcnow()
    for subscription, content in told:
        notice_id = str(uuid.uuid4())
        head = {"id": notice_id, "subscriptionId": subscription.id, "timeStamp": now}
        body = msgspec.json.encode(head | content).decode()
        rows.append({"id": notice_id, "subscription_id": subscription.id, "created_at": now.timestamp(), "body": body})
    connection.execute(insert(notifications), rows)


def claim(
    connection: Connection, worker_id: str, lease: float, limit: int, busy: Collection[str]
) -> list[Subscription]:
    """Claim subscribers with pending notifications that no process delivers to, for `lease` seconds.

    Never one of `busy`: its delivery may have released it already and not have ended yet.
    """
    free = or_(subscriptions.c.lease_until.is_(None), subscriptions.c.lease_until <= database_now())
    mine = subscriptions.c.worker_id == worker_id
    rows = connection.execute(
        select(subscriptions.c.id, subscriptions.c.doc)
        .where(_WAITS, _DUE, or_(free, mine), subscriptions.c.id.not_in(busy))
        .order_by(subscriptions.c.created_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    claimed = [row.id for row in rows]
    if claimed:
        lasting = {"worker_id": worker_id, "lease_until": database_now() + lease}
        connection.execute(update(subscriptions).where(subscriptions.c.id.in_(claimed)).values(**lasting))
    return [row.doc for row in rows]


def any_due(connection: Connection) -> bool:
    """Whether something waits whose time has come."""
    return connection.execute(select(subscriptions.c.id).where(_WAITS, _DUE).limit(1)).first() is not None


def next_waiting(connection: Connection, subscription_id: str, limit: int) -> list[PendingNotification]:
    """The oldest notifications of one subscription.

    `between` instead of `==`, and both columns in the order: for `==` PostgreSQL may walk the primary key from its
    start, through all that waits for others. This order only the index (subscription_id, position) has.
    """
    rows = connection.execute(
        select(
            notifications.c.position, notifications.c.body, (database_now() - notifications.c.created_at).label("age")
        )
        .where(notifications.c.subscription_id.between(subscription_id, subscription_id))
        .order_by(notifications.c.subscription_id, notifications.c.position)
        .limit(limit)
    )
    return [PendingNotification(row.position, row.age, row.body) for row in rows]


def arrived(connection: Connection, subscription_id: str, positions: Collection[int], lease: float) -> None:
    _gone(connection, subscription_id, positions)
    connection.execute(
        update(subscriptions)
        .where(subscriptions.c.id == subscription_id)
        .values(
            delivered=subscriptions.c.delivered + len(positions),
            failures=0,
            last_error=None,
            retry_at=None,
            lease_until=database_now() + lease,
        )
    )


def given_up(connection: Connection, subscription_id: str, positions: Collection[int]) -> None:
    _gone(connection, subscription_id, positions)
    connection.execute(
        update(subscriptions)
        .where(subscriptions.c.id == subscription_id)
        .values(given_up=subscriptions.c.given_up + len(positions))
    )


def failed(connection: Connection, subscription_id: str, error: str, wait: float) -> None:
    connection.execute(
        update(subscriptions)
        .where(subscriptions.c.id == subscription_id)
        .values(
            failures=subscriptions.c.failures + 1,
            last_error=error,
            retry_at=database_now() + wait,
            worker_id=None,
            lease_until=None,
        )
    )


def failures_of(connection: Connection, subscription_id: str) -> int:
    return connection.scalar(select(subscriptions.c.failures).where(subscriptions.c.id == subscription_id)) or 0


def release(connection: Connection, subscription_id: str) -> None:
    connection.execute(
        update(subscriptions).where(subscriptions.c.id == subscription_id).values(worker_id=None, lease_until=None)
    )


def release_all(connection: Connection, worker_id: str) -> None:
    connection.execute(
        update(subscriptions).where(subscriptions.c.worker_id == worker_id).values(worker_id=None, lease_until=None)
    )


def counts(connection: Connection) -> tuple[int, int]:
    """Notifications that wait, and subscribers that don't answer."""
    pending = connection.scalar(select(func.count()).select_from(notifications)) or 0
    failing = connection.scalar(select(func.count()).select_from(subscriptions).where(subscriptions.c.failures > 0))
    return pending, failing or 0


def _gone(connection: Connection, subscription_id: str, positions: Collection[int]) -> None:
    connection.execute(
        delete(notifications).where(
            notifications.c.subscription_id == subscription_id, notifications.c.position.in_(positions)
        )
    )
