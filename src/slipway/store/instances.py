"""VNF instances: one row each, with a version that grows with every change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, Text, bindparam, cast, select

from slipway.model.errors import NotFound, PreconditionFailed
from slipway.model.instance import Instance
from slipway.store.database import RowByKey
from slipway.store.resources import summary
from slipway.store.tables import instances

_WHOLE = select(
    instances.c.doc, instances.c.project, instances.c.version, instances.c.created_at, instances.c.parameters
)
_ONE = _WHOLE.where(instances.c.id == bindparam("wanted"))
_HELD = _ONE.with_for_update()
_INSERT = instances.insert()
_UPDATE = (
    instances.update()
    .where(instances.c.id == bindparam("wanted"))
    .values({name: bindparam(name) for name in ("name", "vnfd_id", "state", "doc", "summary", "parameters")})
    .values(version=instances.c.version + 1)
    .returning(instances.c.version)
)
_STORED = RowByKey(instances.c.id, cast(instances.c.doc, Text), instances.c.version)


def insert(connection: Connection, instance: Instance) -> None:
    fixed = {
        "id": instance.vnf.id,
        "project": instance.project,
        "version": instance.version,
        "created_at": instance.created_at.timestamp(),
    }
    connection.execute(_INSERT, fixed | _changeable(instance))


def get(connection: Connection, instance_id: str) -> Instance:
    return _one(connection, _ONE, instance_id)


def _one(connection: Connection, query: Select[Any], instance_id: str) -> Instance:
    row = connection.execute(query, {"wanted": instance_id}).one_or_none()
    if row is None:
        raise _not_found(instance_id)
    return _instance(row)


def stored(connection: Connection, instance_id: str) -> tuple[str, int]:
    """The document as JSON text, and its version."""
    row = _STORED(connection, instance_id)
    if row is None:
        raise _not_found(instance_id)
    document, version = row
    return document, version


def hold(connection: Connection, instance_id: str) -> Instance:
    """Read an instance and lock it until the transaction ends."""
    return _one(connection, _HELD, instance_id)


def update(connection: Connection, instance: Instance, expected_version: int | None = None) -> Instance:
    """Store it and return it with its new version. With `expected_version`, only if it was not changed since."""
    change = _UPDATE if expected_version is None else _UPDATE.where(instances.c.version == expected_version)
    version = connection.scalar(change, {"wanted": instance.vnf.id} | _changeable(instance))
    if version is None:
        now = get(connection, instance.vnf.id).version
        raise PreconditionFailed(
            f"VNF instance {instance.vnf.id} is at version {now}, not {expected_version}: it was changed meanwhile. "
            "Read it again, and repeat the request with the new ETag."
        )
    return msgspec.structs.replace(instance, version=version)


def delete(connection: Connection, instance_id: str) -> None:
    if connection.execute(instances.delete().where(instances.c.id == instance_id)).rowcount == 0:
        raise _not_found(instance_id)


def _changeable(instance: Instance) -> dict[str, Any]:
    return {
        "name": instance.vnf.vnf_instance_name,
        "vnfd_id": instance.vnf.vnfd_id,
        "state": instance.vnf.instantiation_state.value,
        "doc": instance.vnf,
        "summary": summary(instance.vnf),
        "parameters": instance.parameters,
    }


def _instance(row: Any) -> Instance:
    created_at = datetime.fromtimestamp(row.created_at, UTC)
    return Instance(
        vnf=row.doc, project=row.project, version=row.version, created_at=created_at, parameters=row.parameters
    )


def _not_found(instance_id: str) -> NotFound:
    return NotFound(f"There is no VNF instance {instance_id}.")
