"""What an instantiated VNF is, for the operations that change it: its level and its aspects."""

from __future__ import annotations

from collections.abc import Iterable

from slipway.lcm.rules import must_be_instantiated
from slipway.lcm.wanted import Renewal, wanted_at
from slipway.model.connectivity import links_of
from slipway.model.descriptor import Flavour, Level
from slipway.model.errors import BadRequest, Conflict
from slipway.model.instance import ExtVirtualLink, InstantiatedVnfInfo, ScaleInfo, VnfInstance
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
        links_of(info),
        renewal or Renewal(),
    )


def level_of(situation: Situation) -> Level:
    """The instantiation level it was made at: counts given outright hold from there."""
    return situation.flavour.level(info_of(situation.instance.vnf).metadata.get("instantiationLevelId"))


def highest_levels(flavour: Flavour) -> tuple[ScaleInfo, ...]:
    return tuple(ScaleInfo(aspect_id=aspect.name, scale_level=aspect.max_level) for aspect in flavour.aspects.values())


def check_links(links: Iterable[ExtVirtualLink], flavour: Flavour) -> None:
    points = flavour.connection_points
    for at, link in enumerate(links):
        for cp in link.ext_cps:
            if cp.cpd_id not in points:
                raise BadRequest(
                    f"extVirtualLinks[{at}].extCps: flavour {flavour.id!r} has no connection point "
                    f"{cp.cpd_id!r}; it has: {', '.join(points) or 'none'}."
                )
