"""Names reserved for VIMs: a cluster that is being instantiated becomes a VIM of that name at the end.

Whoever is about to take a name holds the project first (`hold_project`), so that no two find it free at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from slipway.cluster.parameters import NAME
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.errors import Unprocessable
from slipway.model.situation import Situation
from slipway.store import operations, vims


def requested_vim_name(additional_params: Mapping[str, Any]) -> str | None:
    """The VIM name that a request to instantiate gives to its cluster. Without one it gets a unique name."""
    given = additional_params.get(NAME)
    name = given.get("vim_name") if isinstance(given, dict) else None
    return name if isinstance(name, str) else None


def reserved_by(connection: Connection, name: str, project: str, but: str | None = None) -> str | None:
    """The instance, other than `but`, that is being instantiated and will be a VIM of this name."""
    for operation in operations.instantiations(connection, project):
        user = operation.vnf_instance_id
        if user != but and requested_vim_name(operation.operation_params.get("additionalParams", {})) == name:
            return user
    return None


def refuse_taken_names(connection: Connection, management: ManagementDrivers, situation: Situation) -> None:
    """Unprocessable when the VIM name of a cluster is taken or reserved."""
    instance = situation.instance
    for field, name in management.vim_names(situation):
        taken = vims.id_by_name(connection, name, instance.project)
        if taken not in (None, vim_id_of(instance.vnf.id)):
            raise Unprocessable(
                f"{field}: VIM {taken} of this project has the name {name!r} already; give another vim_name, or remove "
                "that VIM."
            )
        if user := reserved_by(connection, name, instance.project, but=instance.vnf.id):
            raise Unprocessable(
                f"{field}: VNF instance {user}, which is being instantiated, will be registered as {name!r}; give "
                "another vim_name."
            )


def vim_id_of(instance_id: str) -> str:
    return str(uuid.uuid5(uuid.UUID(instance_id), "vim"))
