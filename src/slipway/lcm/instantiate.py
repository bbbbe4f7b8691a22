"""Instantiate: from an identifier to a running VNF."""

from __future__ import annotations

import dataclasses
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.lcm.link_checks import check_links, check_managed_links, check_named_ports
from slipway.lcm.operation_rules import OperationRules
from slipway.lcm.targets import change_to, target_at
from slipway.lcm.unsupported import refuse_links_elsewhere, refuse_unsupported_links
from slipway.model.connectivity import recorded_links, recorded_managed_links
from slipway.model.errors import Conflict
from slipway.model.instance import (
    INSTANTIATION_LEVEL,
    Instance,
    InstantiatedVnfInfo,
    InstantiationState,
    VimConnectionInfo,
    VnfInstance,
)
from slipway.model.json_documents import check_bounds
from slipway.model.operation import OperationType
from slipway.model.requests import InstantiateRequest
from slipway.model.situation import Situation
from slipway.model.target import Change
from slipway.vim_registry.choice import VIM_KEY, choose_vim_for_new, vim_key_for_new
from slipway.vim_registry.names import requested_vim_names


def check(situation: Situation, request: InstantiateRequest) -> None:
    vnf = situation.instance.vnf
    if vnf.instantiation_state is InstantiationState.INSTANTIATED:
        raise Conflict(f"VNF instance {vnf.id} is instantiated already; terminate it first.")
    situation.flavour.level(request.instantiation_level_id)
    refuse_unsupported_links(request.ext_virtual_links, request.ext_managed_virtual_links)
    check_links(request.ext_virtual_links, situation.flavour)
    check_named_ports(request.ext_virtual_links, request.ext_virtual_links)
    check_managed_links(request.ext_managed_virtual_links, situation.flavour)
    check_bounds(_kept(vnf, request) | {"additional_params": request.additional_params})


def _kept(vnf: VnfInstance, request: InstantiateRequest) -> dict[str, dict[str, Any]]:
    """What the instance keeps of the request as it is."""
    return {
        "extensions": {**vnf.extensions, **request.extensions},
        "vnf_configurable_properties": {**vnf.vnf_configurable_properties, **request.vnf_configurable_properties},
    }


def change(situation: Situation, request: InstantiateRequest) -> Change:
    level = situation.flavour.level(request.instantiation_level_id)
    managed = recorded_managed_links(request.ext_managed_virtual_links, vim_key_for_new(request))
    after = target_at(situation, dict(level.scale), level, request.ext_virtual_links, managed)
    return change_to(situation, dataclasses.replace(after, parameters=request.additional_params))


def complete(situation: Situation, request: InstantiateRequest) -> VnfInstance:
    vnf, flavour = situation.instance.vnf, situation.flavour
    level = flavour.level(request.instantiation_level_id)
    info = InstantiatedVnfInfo(
        flavour_id=request.flavour_id,
        vnf_state="STARTED",
        scale_status=flavour.scale_status(level.scale),
        max_scale_levels=flavour.max_scale_levels,
        localization_language=request.localization_language,
        ext_virtual_link_info=recorded_links(request.ext_virtual_links, vim_key_for_new(request)),
        ext_managed_virtual_link_info=recorded_managed_links(
            request.ext_managed_virtual_links, vim_key_for_new(request)
        ),
        metadata={VIM_KEY: vim_key_for_new(request)} | ({INSTANTIATION_LEVEL: level.name} if level.name else {}),
    )
    return replace(
        vnf,
        instantiation_state=InstantiationState.INSTANTIATED,
        instantiated_vnf_info=info,
        **_kept(vnf, request),
    )


def _check_vim(vnf: VnfInstance, vim: VimConnectionInfo, request: InstantiateRequest) -> None:
    refuse_links_elsewhere(request, vim_key_for_new(request), vim)


def _chosen_vim(connection: Connection, instance: Instance, request: InstantiateRequest) -> VimConnectionInfo:
    return choose_vim_for_new(connection, request.vim_connection_info, instance.project)


def _grant_attributes(situation: Situation, request: InstantiateRequest) -> dict[str, Any]:
    return {"instantiation_level_id": situation.flavour.level(request.instantiation_level_id).name or None}


RULES = OperationRules(
    operation=OperationType.INSTANTIATE,
    request=InstantiateRequest,
    hook="instantiate",
    check=check,
    check_vim=_check_vim,
    choose_vim=_chosen_vim,
    vim_names=lambda request: requested_vim_names(request.additional_params),
    flavour_id=lambda request: str(request.flavour_id),
    change=change,
    grant_attributes=_grant_attributes,
    complete=complete,
    parameters=lambda instance, request: dict(request.additional_params),
    completes_partly=True,
)
