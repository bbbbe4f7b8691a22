"""Which VIM an operation works on, and how to reach it."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection as DatabaseConnection

from slipway.model.action import Connection
from slipway.model.errors import BadRequest, Conflict, NotFound, Unprocessable
from slipway.model.instance import Instance, VimConnectionInfo, VnfInstance
from slipway.model.requests import InstantiateRequest
from slipway.store import instances, vims
from slipway.store.secrets import Vault

DEFAULT_KEY = "vim"
KEY = "vimConnectionId"  # in instantiatedVnfInfo.metadata


def chosen_for_new(
    connection: DatabaseConnection, named: dict[str, VimConnectionInfo], project: str
) -> VimConnectionInfo:
    """For an instantiation: what the request names, or the project's default VIM."""
    if not named:
        default = vims.default(connection, project)
        if default is None:
            raise BadRequest(
                "vimConnectionInfo: the request names no VIM and there is no default one; "
                "name one, or register one with `slipway vim add --default`."
            )
        vims.hold(connection, default.id)
        return VimConnectionInfo(vim_type=default.vim_type, vim_id=default.id)
    if len(named) > 1:
        raise BadRequest(f"vimConnectionInfo: one VIM for a VNF is possible; the request names {len(named)}.")
    key, info = next(iter(named.items()))
    if info.vim_id is None:
        if info.vim_type is None:
            raise BadRequest(f"vimConnectionInfo.{key}: either vimId, or vimType with interfaceInfo, is needed.")
        return info
    try:
        vim = vims.get_by_name(connection, info.vim_id, project)
        vims.hold(connection, vim.id)
    except NotFound as error:
        raise Unprocessable(f"vimConnectionInfo.{key}.vimId: {error.detail}") from None
    if info.vim_type not in (None, vim.vim_type):
        raise BadRequest(f"vimConnectionInfo.{key}.vimType: VIM {vim.name!r} is a {vim.vim_type}, not {info.vim_type}.")
    return msgspec.structs.replace(info, vim_type=vim.vim_type, vim_id=vim.id)


def key_for_new(request: InstantiateRequest) -> str:
    """The name under which the instance will know its VIM."""
    return next(iter(request.vim_connection_info), DEFAULT_KEY)


def key_of(vnf: VnfInstance) -> str:
    """The name under which the instance knows the VIM it is on: management drivers may have added others."""
    info = vnf.instantiated_vnf_info
    return str(info.metadata.get(KEY, DEFAULT_KEY)) if info else DEFAULT_KEY


def chosen_before(instance: Instance) -> VimConnectionInfo:
    """For all that comes later: the VIM the instance is on."""
    if info := instance.vnf.vim_connection_info.get(key_of(instance.vnf)):
        return info
    raise Conflict(f"VNF instance {instance.vnf.id} has no vimConnectionInfo; add it with a PATCH.")


def connections_with(vnf: VnfInstance, given: dict[str, VimConnectionInfo]) -> dict[str, VimConnectionInfo]:
    """How VIMs are reached may change, not which they are."""
    connections = dict(vnf.vim_connection_info)
    for key, new in given.items():
        known = connections.get(key)
        if known is None or new.vim_id not in (None, known.vim_id) or new.vim_type not in (None, known.vim_type):
            raise BadRequest(
                f"vimConnectionInfo.{key}: this operation does not bring the VNF to another VIM; "
                f"leave it out. The VNF has: {', '.join(connections) or 'none'}."
            )
        connections[key] = msgspec.structs.replace(
            known,
            interface_info={**known.interface_info, **new.interface_info},
            access_info={**known.access_info, **new.access_info},
            extra={**known.extra, **new.extra},
        )
    return connections


def check_named(connection: DatabaseConnection, patch: object, project: str) -> None:
    """For a merge patch on vimConnectionInfo: VIMs that it names are the project's own."""
    for key, change in patch.items() if isinstance(patch, dict) else ():
        if isinstance(change, dict) and isinstance(vim_id := change.get("vimId"), str):
            try:
                vims.get(connection, vim_id, project)
            except NotFound as error:
                raise Unprocessable(f"vimConnectionInfo.{key}.vimId: {error.detail}") from None


def in_clear(connection: DatabaseConnection, vault: Vault, info: VimConnectionInfo, instance_id: str) -> Connection:
    """Everything needed to log in. What the request says goes before what is registered.

    An instance gets at VIMs of its own project only, whatever its record says. Registered credentials go to the
    registered address only: who names another one brings credentials of his own.
    """
    parts: dict[str, dict[str, Any]] = {
        "interface_info": info.interface_info,
        "access_info": info.access_info,
        "extra": info.extra,
    }
    owners = [instance_id]
    if info.vim_id is not None:
        project = None if info.vim_id == instance_id else instances.get(connection, instance_id).project
        vim = vims.get(connection, info.vim_id, project)
        owners.append(vim.id)
        there = all(vim.interface_info.get(name) == value for name, value in info.interface_info.items())
        parts = {
            "interface_info": {**vim.interface_info, **info.interface_info},
            "access_info": {**(vim.access_info if there else {}), **info.access_info},
            "extra": {**vim.extra, **info.extra},
        }
    return Connection(vim_type=info.vim_type or "", vim_id=info.vim_id, **vault.reveal(connection, owners, parts))
