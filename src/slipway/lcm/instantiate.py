"""Instantiate: from an identifier to a running VNF."""

from __future__ import annotations

from msgspec.structs import replace

from slipway.lcm.rules import Rules, hooked
from slipway.lcm.vim_choice import KEY, key_for_new
from slipway.lcm.wanted import wanted_at
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.descriptor import Flavour
from slipway.model.errors import BadRequest, Conflict
from slipway.model.instance import (
    ExtVirtualLinkInfo,
    InstantiatedVnfInfo,
    InstantiationState,
    ScaleInfo,
    VnfInstance,
)
from slipway.model.operation import OperationType, ResourceHandle
from slipway.model.plan import Plan
from slipway.model.requests import InstantiateRequest
from slipway.model.situation import Situation
from slipway.vim.contract import VimDriver


def check(situation: Situation, request: InstantiateRequest) -> None:
    vnf = situation.instance.vnf
    if vnf.instantiation_state is InstantiationState.INSTANTIATED:
        raise Conflict(f"VNF instance {vnf.id} is instantiated already; terminate it first.")
    situation.flavour.level(request.instantiation_level_id)
    points = situation.flavour.connection_points
    for at, link in enumerate(request.ext_virtual_links):
        for cp in link.ext_cps:
            if cp.cpd_id not in points:
                raise BadRequest(
                    f"extVirtualLinks[{at}].extCps: flavour {situation.flavour.id!r} has no connection point "
                    f"{cp.cpd_id!r}; it has: {', '.join(points) or 'none'}."
                )


def plan(situation: Situation, request: InstantiateRequest, driver: VimDriver, management: ManagementDrivers) -> Plan:
    level = situation.flavour.level(request.instantiation_level_id)
    wanted = wanted_at(situation, dict(level.scale), level, request.ext_virtual_links)
    return hooked(situation, wanted, "instantiate", driver, management)


def complete(situation: Situation, request: InstantiateRequest) -> VnfInstance:
    vnf, flavour = situation.instance.vnf, situation.flavour
    level = flavour.level(request.instantiation_level_id)
    info = InstantiatedVnfInfo(
        flavour_id=request.flavour_id,
        vnf_state="STARTED",
        scale_status=tuple(ScaleInfo(aspect_id=name, scale_level=level.scale.get(name, 0)) for name in flavour.aspects),
        max_scale_levels=_highest(flavour),
        localization_language=request.localization_language,
        ext_virtual_link_info=tuple(
            ExtVirtualLinkInfo(
                id=link.id,
                resource_handle=ResourceHandle(resource_id=link.resource_id, vim_connection_id=link.vim_connection_id),
                current_vnf_ext_cp_data=link.ext_cps,
            )
            for link in request.ext_virtual_links
        ),
        metadata={KEY: key_for_new(request)} | ({"instantiationLevelId": level.name} if level.name else {}),
    )
    return replace(
        vnf,
        instantiation_state=InstantiationState.INSTANTIATED,
        instantiated_vnf_info=info,
        extensions={**vnf.extensions, **request.extensions},
        vnf_configurable_properties={**vnf.vnf_configurable_properties, **request.vnf_configurable_properties},
    )


def _highest(flavour: Flavour) -> tuple[ScaleInfo, ...]:
    return tuple(ScaleInfo(aspect_id=aspect.name, scale_level=aspect.max_level) for aspect in flavour.aspects.values())


RULES = Rules(OperationType.INSTANTIATE, InstantiateRequest, check, plan, complete)
