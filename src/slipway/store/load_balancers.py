"""Load balancers of clusters: one row each, changed by one operation at a time, whichever instance it is of.

Who holds one does so as long as its operation runs in a worker that lives; nobody has to clean up after a crash. Each
time it is taken, its revision grows. What is written with an older one is refused, here and on the machine itself.
"""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, exists, select

from slipway.store.column_types import database_now
from slipway.store.tables import IS_RUNNING, instances, load_balancers, operations, workers

_HOLDER_LIVES = exists().where(
    operations.c.id == load_balancers.c.holder,
    IS_RUNNING,
    workers.c.id == operations.c.worker_id,
    workers.c.lease_until > database_now(),
)
_FREE = load_balancers.c.holder.is_(None) | (load_balancers.c.holder == bindparam("by")) | ~_HOLDER_LIVES
_TAKE = (
    load_balancers.update()
    .where(load_balancers.c.cluster_id == bindparam("of"), _FREE)
    .values(holder=bindparam("by"), revision=load_balancers.c.revision + 1)
    .returning(load_balancers.c.revision, load_balancers.c.doc)
)
_HELD = (load_balancers.c.cluster_id == bindparam("of")) & (load_balancers.c.revision == bindparam("at"))
_SAVE = load_balancers.update().where(_HELD).values(doc=bindparam("new"), holder=None)
_RELEASE = load_balancers.update().where(_HELD).values(holder=None)


class HeldBalancer(msgspec.Struct, frozen=True):
    revision: int
    doc: dict[str, Any]


def ensure(connection: Connection, cluster_id: str, vim_id: str) -> None:
    """A row for the cluster's balancer, in the project of its instance."""
    if connection.scalar(select(load_balancers.c.cluster_id).where(load_balancers.c.cluster_id == cluster_id)):
        return
    project = connection.scalar(select(instances.c.project).where(instances.c.id == cluster_id))
    row = {"cluster_id": cluster_id, "vim_id": vim_id, "project": project}
    connection.execute(load_balancers.insert().values(**row, revision=0, doc={}))


def take(connection: Connection, cluster_id: str, operation_id: str) -> HeldBalancer | None:
    """For an operation; None when another one has it, or there is none."""
    row = connection.execute(_TAKE, {"of": cluster_id, "by": operation_id}).one_or_none()
    return HeldBalancer(row.revision, row.doc) if row else None


def save(connection: Connection, cluster_id: str, revision: int, doc: dict[str, Any]) -> bool:
    """And give it back. False when it was taken by another one meanwhile: then nothing is changed."""
    return bool(connection.execute(_SAVE, {"of": cluster_id, "at": revision, "new": doc}).rowcount)


def release(connection: Connection, cluster_id: str, revision: int) -> None:
    connection.execute(_RELEASE, {"of": cluster_id, "at": revision})


def holder_of(connection: Connection, cluster_id: str) -> str | None:
    holder: str | None = connection.scalar(
        select(load_balancers.c.holder).where(load_balancers.c.cluster_id == cluster_id)
    )
    return holder


def cluster_behind(connection: Connection, vim_id: str, project: str) -> str | None:
    """The cluster that is the VIM, if it has a balancer and is the project's own."""
    query = select(load_balancers.c.cluster_id).where(
        load_balancers.c.vim_id == vim_id, load_balancers.c.project == project
    )
    cluster_id: str | None = connection.scalar(query)
    return cluster_id


def get(connection: Connection, cluster_id: str) -> dict[str, Any] | None:
    doc: dict[str, Any] | None = connection.scalar(
        select(load_balancers.c.doc).where(load_balancers.c.cluster_id == cluster_id)
    )
    return doc


def existing(connection: Connection, instance_ids: list[str]) -> set[str]:
    """Those of the instances that are still there."""
    return set(connection.scalars(select(instances.c.id).where(instances.c.id.in_(instance_ids))))


def delete(connection: Connection, cluster_id: str) -> None:
    connection.execute(load_balancers.delete().where(load_balancers.c.cluster_id == cluster_id))
