"""Names that VIMs will have: a cluster that is being instantiated becomes a VIM at the end, and nobody takes its name.

Whoever is about to take a name holds the project first (`hold_project`), so that no two find it free at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from slipway.cluster.parameters import NAME
from slipway.store import operations


def name_in(additional_params: Mapping[str, Any]) -> str | None:
    """The name that a request to instantiate gives to its cluster. The one it has otherwise is nobody else's."""
    given = additional_params.get(NAME)
    name = given.get("vim_name") if isinstance(given, dict) else None
    return name if isinstance(name, str) else None


def reserved_by(connection: Connection, name: str, project: str, but: str | None = None) -> str | None:
    """The instance, other than `but`, that is being instantiated and will be a VIM of this name."""
    for operation in operations.instantiations(connection, project):
        user = operation.vnf_instance_id
        if user != but and name_in(operation.operation_params.get("additionalParams", {})) == name:
            return user
    return None
