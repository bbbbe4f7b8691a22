"""Names reserved for VIMs: a cluster that is being instantiated becomes a VIM of that name at the end.

Whoever is about to take a name holds the project first (`hold_project`), so that no two find it free at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from slipway.cluster import parameters
from slipway.cluster.cluster_api import parameters as workload
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.errors import Unprocessable
from slipway.model.situation import Situation
from slipway.store import operations, vims

NAMED_BY = ((parameters.NAME, "vim_name"), (workload.NAME, "register_vim", "name"))  # in additionalParams


def requested_vim_names(additional_params: Mapping[str, Any]) -> tuple[str, ...]:
    """The VIM names that a request to instantiate gives to its cluster. Without one it gets a unique name."""
    found = []
    for path in NAMED_BY:
        value: Any = additional_params
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        found += [value] if isinstance(value, str) else []
    return tuple(found)


def reserved_by(connection: Connection, name: str, project: str, but: str | None = None) -> str | None:
    """The instance, other than `but`, that is being instantiated and will be a VIM of this name."""
    for operation in operations.instantiations(connection, project):
        user = operation.vnf_instance_id
        if user != but and name in requested_vim_names(operation.operation_params.get("additionalParams", {})):
            return user
    return None


def refuse_taken_names(connection: Connection, management: ManagementDrivers, situation: Situation) -> None:
    """Unprocessable when the VIM name of a cluster is taken or reserved."""
    instance = situation.instance
    for field, name in management.vim_names(situation):
        taken, other = vims.id_by_name(connection, name, instance.project), f"another {field.rpartition('.')[2]}"
        if taken not in (None, vim_id_of(instance.vnf.id)):
            raise Unprocessable(
                f"{field}: VIM {taken} of this project has the name {name!r} already; give {other}, or remove that VIM."
            )
        if user := reserved_by(connection, name, instance.project, but=instance.vnf.id):
            raise Unprocessable(
                f"{field}: VNF instance {user}, which is being instantiated, will be registered as {name!r}; give "
                f"{other}."
            )


def vim_id_of(instance_id: str) -> str:
    return str(uuid.uuid5(uuid.UUID(instance_id), "vim"))
