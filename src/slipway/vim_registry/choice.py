"""Which VIM an operation works on, and how to reach it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest, Conflict, NotFound, Unprocessable
from slipway.model.instance import Instance, InstantiationState, VimConnectionInfo, VnfInstance
from slipway.model.requests import InstantiateRequest
from slipway.model.secrets import redact
from slipway.model.vim import REGISTERED_ONLY, Vim
from slipway.model.vim_secrets import refuse_moved_secrets, same_address, same_place
from slipway.store import instances, vims
from slipway.store.secrets import Vault
from slipway.vim.drivers import Drivers

LARGEST_VIM = 256 << 10  # bytes of one as JSON, secrets in clear
DEFAULT_KEY = "vim"
VIM_KEY = "vimConnectionId"  # in instantiatedVnfInfo.metadata

PARTS = ("interfaceInfo", "accessInfo", "extra")
Parts = dict[str, dict[str, Any]]  # what is said of a VIM, by these names


def choose_vim_for_new(connection: Connection, named: dict[str, VimConnectionInfo], project: str) -> VimConnectionInfo:
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
        raise BadRequest(f"vimConnectionInfo: a VNF is on one VIM only; the request names {len(named)}.")
    key, info = next(iter(named.items()))
    if info.vim_id is None:
        if info.vim_type is None:
            raise BadRequest(f"vimConnectionInfo.{key}: either vimId, or vimType with interfaceInfo, is needed.")
        return info
    try:
        vim = vims.get_by_name(connection, info.vim_id, project)
        vims.hold(connection, vim.id)
    except NotFound as error:
        if info.vim_type and info.interface_info and info.access_info:
            return msgspec.structs.replace(info, vim_id=None)  # an id of the sender's own, beside a whole description
        raise Unprocessable(f"vimConnectionInfo.{key}.vimId: {error.detail}") from None
    _check_type(vim, info.vim_type, f"vimConnectionInfo.{key}.")
    return msgspec.structs.replace(info, vim_type=vim.vim_type, vim_id=vim.id)


def vim_key_for_new(request: InstantiateRequest) -> str:
    """The name under which the instance will know its VIM."""
    return next(iter(request.vim_connection_info), DEFAULT_KEY)


def vim_key_of(vnf: VnfInstance) -> str:
    """The name under which the instance knows the VIM it is on: management drivers may have added others."""
    info = vnf.instantiated_vnf_info
    return str(info.metadata.get(VIM_KEY, DEFAULT_KEY)) if info else DEFAULT_KEY


def vim_of_instance(instance: Instance) -> VimConnectionInfo:
    """The VIM that the instance is on."""
    if info := instance.vnf.vim_connection_info.get(vim_key_of(instance.vnf)):
        return info
    raise Conflict(f"VNF instance {instance.vnf.id} has no vimConnectionInfo; add it with a PATCH.")


def merged_connections(vnf: VnfInstance, given: dict[str, VimConnectionInfo]) -> dict[str, VimConnectionInfo]:
    """The instance's connections with changed addresses or credentials; the VIMs themselves stay."""
    connections = dict(vnf.vim_connection_info)
    for key, new in given.items():
        known = connections.get(key)
        if known is None or new.vim_id not in (None, known.vim_id) or new.vim_type not in (None, known.vim_type):
            raise BadRequest(
                f"vimConnectionInfo.{key}: this operation does not bring the VNF to another VIM; "
                f"leave it out. The VNF has: {', '.join(connections) or 'none'}."
            )
        changed = msgspec.structs.replace(
            known,
            interface_info={**known.interface_info, **new.interface_info},
            access_info={**known.access_info, **new.access_info},
            extra={**known.extra, **new.extra},
        )
        check_connection_change(key, known, changed)
        connections[key] = changed
    return connections


def check_connection_change(key: str, before: VimConnectionInfo | None, after: VimConnectionInfo) -> None:
    """BadRequest when an entry of an instance's vimConnectionInfo may not become like this."""
    place = f"vimConnectionInfo.{key}."
    check_size(after, f"vimConnectionInfo.{key}: it")
    if before is not None:
        if before.vim_type is not None and before.vim_type != after.vim_type:
            raise BadRequest(f"{place}vimType: the VIM is a {before.vim_type}, and stays one.")
        refuse_moved_secrets(msgspec.to_builtins(before), msgspec.to_builtins(after), place)
    if before != after and after.vim_type in REGISTERED_ONLY:
        _check_registered(after, place)


def check_size(document: object, what: str) -> None:
    """BadRequest when a VIM is described in too many words: it is read whenever it is used, and shown in lists."""
    if len(msgspec.json.encode(document)) > LARGEST_VIM:
        raise BadRequest(
            f"{what} is larger than {LARGEST_VIM >> 10} KiB in all. Give less in interfaceInfo, accessInfo, extra."
        )


def check_inline_sizes(request: Mapping[str, Any]) -> None:
    """The same of each VIM that a request describes, before its secrets are kept apart."""
    for key, info in (request.get("vimConnectionInfo") or {}).items():
        check_size(info, f"vimConnectionInfo.{key}: it")


def check_named(connection: Connection, patch: object, instance: Instance) -> None:
    """For a merge patch on vimConnectionInfo: VIMs that it names are the project's own, and of the type it says.

    What it says nothing of stays as it is: so another VIM in an entry is one of the entry's type.
    """
    for key, change in patch.items() if isinstance(patch, dict) else ():
        if isinstance(change, dict) and isinstance(vim_id := change.get("vimId"), str):
            try:
                vim = vims.get(connection, vim_id, instance.project)
            except NotFound as error:
                raise Unprocessable(f"vimConnectionInfo.{key}.vimId: {error.detail}") from None
            place = f"vimConnectionInfo.{key}."
            _check_type(vim, change.get("vimType"), place)
            known = instance.vnf.vim_connection_info.get(key)
            if known is not None and known.vim_type not in (None, vim.vim_type):
                raise BadRequest(
                    f"{place}vimId: VIM {vim.name!r} is a {vim.vim_type}, and the VNF is on a {known.vim_type}; "
                    "name one of the same type."
                )
            if vim.vim_type in REGISTERED_ONLY:
                _check_as_registered({name: change.get(name) for name in PARTS}, place)


def resolve_connection(
    connection: Connection,
    vault: Vault,
    info: VimConnectionInfo,
    instance_id: str,
    *,
    also_unregistered: bool = False,
    changed: Vim | None = None,
) -> VimConnection:
    """Everything an instance needs to log in. What the request says goes before what is registered.

    An instance gets at VIMs of its own project only, whatever its record says. Registered credentials go to the
    registered addresses only: who names another one brings credentials of his own. `also_unregistered`: even a VIM that
    would have to be registered today, where the instance stands on it since that could be described in a request.
    `changed`: the registered VIM as it would be after a change.
    """
    instance = instances.get(connection, instance_id)
    project = instance.project
    owners, vim_type, parts = [instance_id], info.vim_type or "", _parts(info)
    if info.vim_id is not None:
        vim = changed or vims.get(connection, info.vim_id, project)
        _check_type(vim, info.vim_type)
        owners, vim_type, registered = [instance_id, vim.id], vim.vim_type, _parts(vim)
        moved = any(parts.values()) and not same_address(registered, _merged(registered, parts))
        parts = _merged({**redact(registered), "accessInfo": {}} if moved else registered, parts)
    if vim_type in REGISTERED_ONLY and not (also_unregistered and _described_before(instance, info)):
        _check_registered(info)
    return _revealed(connection, vault, owners, vim_type, parts, info.vim_id, project)


def moved_connection(
    connection: Connection, vault: Vault, instance: Instance, connections: Mapping[str, VimConnectionInfo]
) -> VimConnection | None:
    """How the VIM of an instantiated VNF would be reached with these vimConnectionInfo; None when that is where it is.

    Where that is can't be told without an entry before, or when its VIM is registered no more.
    """
    vnf = instance.vnf
    before, after = (known.get(vim_key_of(vnf)) for known in (vnf.vim_connection_info, connections))
    if after is None or after == before or vnf.instantiated_vnf_info is None:
        return None
    reached = resolve_connection(connection, vault, after, vnf.id)
    if before is None:
        return reached
    try:
        was = resolve_connection(connection, vault, before, vnf.id, also_unregistered=True)
    except NotFound:
        return reached
    return None if same_place(was, reached) else reached


def resolve_registered(connection: Connection, vault: Vault, vim: Vim) -> VimConnection:
    """The same of a registered VIM, whether anything is on it or not."""
    return _revealed(connection, vault, [vim.id], vim.vim_type, _parts(vim), vim.id, vim.project)


def validated_vim(
    connection: Connection, vault: Vault, drivers: Drivers, info: VimConnectionInfo, instance_id: str
) -> VimConnectionInfo:
    """The VIM, after its driver has validated its connection."""
    reached = resolve_connection(connection, vault, info, instance_id)
    drivers.for_type(reached.vim_type).validate(reached)
    return info


def _revealed(
    connection: Connection,
    vault: Vault,
    owners: list[str],
    vim_type: str,
    parts: Parts,
    vim_id: str | None,
    project: str,
) -> VimConnection:
    reached: Parts = vault.decrypt_secrets(connection, owners, parts)
    return VimConnection(
        vim_type=vim_type,
        interface_info=reached["interfaceInfo"],
        access_info=reached["accessInfo"],
        extra=reached["extra"],
        vim_id=vim_id,
        project=project,
    )


def _check_type(vim: Vim, vim_type: str | None, place: str = "") -> None:
    if vim_type not in (None, vim.vim_type):
        raise BadRequest(f"{place}vimType: VIM {vim.name!r} is a {vim.vim_type}, not {vim_type}.")


def _check_registered(info: VimConnectionInfo, place: str = "vimConnectionInfo.") -> None:
    """A VIM that gives rights on our own host is used as it was registered, and not otherwise."""
    if info.vim_id is None:
        raise BadRequest(
            f"{place}vimType: a {info.vim_type} is not described in a request; name one by vimId that an admin of all "
            "projects has registered for your project."
        )
    _check_as_registered(_parts(info), place)


def _described_before(instance: Instance, info: VimConnectionInfo) -> bool:
    """Whether the instance stands on this VIM, as it is described here and nowhere else: no request can change it."""
    stands = instance.vnf.instantiation_state is InstantiationState.INSTANTIATED
    return stands and info.vim_id is None and info == instance.vnf.vim_connection_info.get(vim_key_of(instance.vnf))


def _check_as_registered(parts: Mapping[str, Any], place: str) -> None:
    for name, value in parts.items():
        if value:
            raise BadRequest(f"{place}{name}: a sandbox VIM is used as it is registered; leave {name} out.")


def _parts(one: Vim | VimConnectionInfo) -> Parts:
    return dict(zip(PARTS, (one.interface_info, one.access_info, one.extra), strict=True))


def _merged(known: Parts, given: Parts) -> Parts:
    return {name: {**known[name], **given[name]} for name in known}
