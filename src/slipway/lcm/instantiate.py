"""Instantiate: from an identifier to a running VNF."""

from __future__ import annotations

import dataclasses
from typing import Any

from msgspec.structs import replace

from slipway.lcm.rules import Rules
from slipway.lcm.targets import change_to, check_links, highest_levels, target_at
from slipway.lcm.unsupported import refuse_unsupported
from slipway.lcm.vim_choice import KEY, key_for_new
from slipway.model.connectivity import recorded_links
from slipway.model.errors import Conflict
from slipway.model.instance import InstantiatedVnfInfo, InstantiationState, ScaleInfo, VnfInstance
from slipway.model.merge import check_bounds
from slipway.model.operation import OperationType
from slipway.model.requests import InstantiateRequest
from slipway.model.situation import Situation
from slipway.model.target import Change


def check(situation: Situation, request: InstantiateRequest) -> None:
    vnf = situation.instance.vnf
    if vnf.instantiation_state is InstantiationState.INSTANTIATED:
        raise Conflict(f"VNF instance {vnf.id} is instantiated already; terminate it first.")
    situation.flavour.level(request.instantiation_level_id)
    refuse_unsupported(request)
    check_links(request.ext_virtual_links, situation.flavour)
    check_bounds(_kept(vnf, request) | {"additional_params": request.additional_params})


def _kept(vnf: VnfInstance, request: InstantiateRequest) -> dict[str, dict[str, Any]]:
    """What the instance keeps of the request as it is."""
    return {
        "extensions": {**vnf.extensions, **request.extensions},
        "vnf_configurable_properties": {**vnf.vnf_configurable_properties, **request.vnf_configurable_properties},
    }


def change(situation: Situation, request: InstantiateRequest) -> Change:
    level = situation.flavour.level(request.instantiation_level_id)
    after = target_at(situation, dict(level.scale), level, request.ext_virtual_links)
    return change_to(situation, dataclasses.replace(after, parameters=request.additional_params))


def complete(situation: Situation, request: InstantiateRequest) -> VnfInstance:
    vnf, flavour = situation.instance.vnf, situation.flavour
    level = flavour.level(request.instantiation_level_id)
    info = InstantiatedVnfInfo(
        flavour_id=request.flavour_id,
        vnf_state="STARTED",
        scale_status=tuple(ScaleInfo(aspect_id=name, scale_level=level.scale.get(name, 0)) for name in flavour.aspects),
        max_scale_levels=highest_levels(flavour),
        localization_language=request.localization_language,
        ext_virtual_link_info=recorded_links(request.ext_virtual_links, key_for_new(request)),
        metadata={KEY: key_for_new(request)} | ({"instantiationLevelId": level.name} if level.name else {}),
    )
    return replace(
        vnf,
        instantiation_state=InstantiationState.INSTANTIATED,
        instantiated_vnf_info=info,
        **_kept(vnf, request),
    )


RULES = Rules(OperationType.INSTANTIATE, InstantiateRequest, "instantiate", check, complete, change)
