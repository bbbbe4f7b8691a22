"""What an instantiated VNF is, for the operations that change it: its level, its aspects, its outside networks."""

from __future__ import annotations

from slipway.lcm.rules import must_be_instantiated
from slipway.lcm.wanted import Renewal, wanted_at
from slipway.model.descriptor import Level
from slipway.model.errors import Conflict
from slipway.model.instance import ExtVirtualLink, InstantiatedVnfInfo, VnfInstance
from slipway.model.machine import Wanted
from slipway.model.situation import Situation


def info_of(vnf: VnfInstance) -> InstantiatedVnfInfo:
    must_be_instantiated(vnf)
    if vnf.instantiated_vnf_info is None:
        raise Conflict(f"VNF instance {vnf.id} has no record of what was instantiated.")
    return vnf.instantiated_vnf_info


def scale_levels(info: InstantiatedVnfInfo) -> dict[str, int]:
    return {status.aspect_id: status.scale_level for status in info.scale_status}


def wanted_now(situation: Situation, scale: dict[str, int] | None = None, renewal: Renewal | None = None) -> Wanted:
    """All of it, at the levels it has or at new ones."""
    info = info_of(situation.instance.vnf)
    return wanted_at(
        situation,
        scale_levels(info) if scale is None else scale,
        level_of(situation),
        _ext_links(info),
        renewal or Renewal(),
    )


def level_of(situation: Situation) -> Level:
    """The instantiation level it was made at: counts given outright hold from there."""
    return situation.flavour.level(info_of(situation.instance.vnf).metadata.get("instantiationLevelId"))


def _ext_links(info: InstantiatedVnfInfo) -> tuple[ExtVirtualLink, ...]:
    return tuple(
        ExtVirtualLink(
            id=link.id,
            resource_id=link.resource_handle.resource_id,
            vim_connection_id=link.resource_handle.vim_connection_id,
            ext_cps=link.current_vnf_ext_cp_data,
        )
        for link in info.ext_virtual_link_info
    )
