"""Modify: a merge patch (RFC 7396) on what a person may change.

A VIM is touched in one case: `metadata.configmap_secret_paths` names manifests of a CNF whose ConfigMaps and Secrets
are to be as the package has them, which may be another one from now on (`vnfdId`). What uses them is started anew.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.lcm.change_package import check_levels
from slipway.lcm.operation_rules import OperationRules, made_from, must_be_instantiated
from slipway.lcm.targets import change_to, info_of, target_now
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.instance import Instance, InstantiationState, VimConnectionInfo, VnfInstance
from slipway.model.json_documents import bounded, merge_patch
from slipway.model.operation import OperationType
from slipway.model.requests import ModifyRequest
from slipway.model.situation import Situation
from slipway.model.target import CONFIGURATION_PATHS, Change
from slipway.model.vim import KUBERNETES
from slipway.vim_registry.choice import check_connection_change, check_named, vim_key_of

MERGED = {
    "vnf_configurable_properties": "vnfConfigurableProperties",
    "metadata": "metadata",
    "extensions": "extensions",
}


def check(situation: Situation, request: ModifyRequest) -> None:
    vnf = situation.instance.vnf
    if _touches_vim(request):
        _configuration_paths(request)
        check_levels(situation, info_of(vnf))
    if request.vim_connection_info is not UNSET and vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED:
        raise BadRequest("vimConnectionInfo: the VNF is not instantiated, so it has none to change.")
    if request.vnfc_info_modifications is not UNSET:
        must_be_instantiated(vnf)
        known = {vnfc.id for vnfc in vnf.instantiated_vnf_info.vnfc_info} if vnf.instantiated_vnf_info else set()
        for at, change in enumerate(request.vnfc_info_modifications):
            if change.id not in known:
                raise BadRequest(f"vnfcInfoModifications[{at}].id: the VNF has no VNFC {change.id!r}.")
    _connections(vnf, request)
    _merged(vnf, request)
    info = _with_vnfc_properties(vnf, request).instantiated_vnf_info
    for vnfc in info.vnfc_info if info and request.vnfc_info_modifications is not UNSET else ():
        bounded(vnfc.vnfc_configurable_properties, f"vnfcConfigurableProperties of {vnfc.id}")


def change(situation: Situation, request: ModifyRequest) -> Change:
    changed = change_to(situation, target_now(situation))
    return dataclasses.replace(changed, configuration_files=_configuration_paths(request))


def complete(situation: Situation, request: ModifyRequest) -> VnfInstance:
    vnf = situation.instance.vnf
    changes: dict[str, Any] = {"vim_connection_info": _connections(vnf, request)}
    if request.vnf_instance_name is not UNSET:
        changes["vnf_instance_name"] = request.vnf_instance_name
    if request.vnf_instance_description is not UNSET:
        changes["vnf_instance_description"] = request.vnf_instance_description
    changes |= _merged(vnf, request)
    changed = replace(_with_vnfc_properties(vnf, request), **changes)
    return changed if request.vnfd_id is UNSET else made_from(changed, situation.descriptor)


def _touches_vim(request: ModifyRequest) -> bool:
    return isinstance(request.metadata, dict) and request.metadata.get(CONFIGURATION_PATHS) is not None


def _configuration_paths(request: ModifyRequest) -> tuple[str, ...]:
    given = request.metadata.get(CONFIGURATION_PATHS) if isinstance(request.metadata, dict) else None
    if not isinstance(given, list) or not given or not all(isinstance(one, str) and one for one in given):
        raise BadRequest(f"metadata.{CONFIGURATION_PATHS}: it must be a list of paths of manifests in the package.")
    return tuple(given)


def _check_vim(vnf: VnfInstance, vim: VimConnectionInfo, request: ModifyRequest) -> None:
    if vim.vim_type != KUBERNETES:
        raise Unprocessable(
            f"metadata.{CONFIGURATION_PATHS}: the VNF is on a VIM of type {vim.vim_type}, which has no ConfigMaps and "
            "no Secrets; leave it out."
        )


def _merged(vnf: VnfInstance, request: ModifyRequest) -> dict[str, Any]:
    given = {name: getattr(request, name) for name in MERGED}
    return {
        name: bounded(merge_patch(getattr(vnf, name), patch) or {}, MERGED[name])
        for name, patch in given.items()
        if patch is not UNSET
    }


def _with_vnfc_properties(vnf: VnfInstance, request: ModifyRequest) -> VnfInstance:
    if request.vnfc_info_modifications is UNSET or vnf.instantiated_vnf_info is None:
        return vnf
    patches = {change.id: change.vnfc_configurable_properties for change in request.vnfc_info_modifications}
    vnfcs = tuple(
        replace(vnfc, vnfc_configurable_properties=merge_patch(vnfc.vnfc_configurable_properties, patches[vnfc.id]))
        if vnfc.id in patches
        else vnfc
        for vnfc in vnf.instantiated_vnf_info.vnfc_info
    )
    return replace(vnf, instantiated_vnf_info=replace(vnf.instantiated_vnf_info, vnfc_info=vnfcs))


def _connections(vnf: VnfInstance, request: ModifyRequest) -> dict[str, VimConnectionInfo]:
    if request.vim_connection_info is UNSET:
        return vnf.vim_connection_info
    merged = merge_patch(msgspec.to_builtins(vnf.vim_connection_info), request.vim_connection_info)
    bounded(merged, "vimConnectionInfo")
    try:
        connections = msgspec.convert(merged, dict[str, VimConnectionInfo])
    except msgspec.ValidationError as error:
        raise BadRequest(f"vimConnectionInfo: {error}") from None
    for key, changed in connections.items():
        check_connection_change(key, vnf.vim_connection_info.get(key), changed)
    own = vim_key_of(vnf)
    if own in vnf.vim_connection_info and own not in connections:
        raise BadRequest(
            f"vimConnectionInfo.{own}: the VNF is on this VIM, and nothing could be done to it without; change the "
            "entry, or terminate the VNF."
        )
    if own in connections and connections[own].vim_type is None:
        raise BadRequest(f"vimConnectionInfo.{own}.vimType: it is missing; say of which type the VIM is.")
    return connections


def _check_vims(connection: Connection, instance: Instance, request: ModifyRequest) -> None:
    check_named(connection, request.vim_connection_info, instance)


def _report(before: VnfInstance, after: VnfInstance, request: ModifyRequest) -> dict[str, Any]:
    return {"changed_info": msgspec.to_builtins(request)}


RULES = OperationRules(
    operation=OperationType.MODIFY_INFO,
    request=ModifyRequest,
    hook="modify_information",
    check=check,
    check_stored=_check_vims,
    connections=_connections,
    check_vim=_check_vim,
    change=change,
    touches_vim=_touches_vim,
    is_granted=False,
    vnfd_id=lambda request: None if request.vnfd_id is UNSET else str(request.vnfd_id),
    complete=complete,
    report=_report,
)
