"""Filters on VNF instances that name what only v1 has, in the core's words. All other names are the same."""

from __future__ import annotations

from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.model.errors import BadRequest, NotFound
from slipway.store import packages
from slipway.store.filters import Filter, Operator

LEVEL = ("instantiatedVnfInfo", "instantiationLevelId")
_BY_EQUALITY = (Operator.EQ, Operator.NEQ, Operator.IN, Operator.NIN)
_NO_VNFD = ""  # no VNFD has this id


def in_the_core(connection: Connection, wanted: Filter, project: str | None) -> Filter:
    """`project` is that of the caller; None for all."""
    match wanted.path:
        case ("vnfPkgId",):
            return _by_package(connection, wanted, project)
        case ("vimConnectionInfo", "id"):
            return replace(wanted, path=("vimConnectionInfo",), by_key=True)
        case path if path == LEVEL:
            return replace(wanted, path=("instantiatedVnfInfo", "metadata", "instantiationLevelId"))
    return wanted


def _by_package(connection: Connection, wanted: Filter, project: str | None) -> Filter:
    """An instance knows its package by the VNFD."""
    if wanted.operator not in _BY_EQUALITY:
        raise BadRequest(f"filter vnfPkgId: it can't be compared by {wanted.operator}; use eq, neq, in or nin.")
    vnfds = tuple(_vnfd_of(connection, package_id, project) for package_id in wanted.values)
    return replace(wanted, path=("vnfdId",), values=vnfds)


def _vnfd_of(connection: Connection, package_id: str, project: str | None) -> str:
    try:
        return packages.get(connection, package_id, project).vnfd_id or _NO_VNFD
    except NotFound:
        return _NO_VNFD
