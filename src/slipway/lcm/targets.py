"""What an instance should have at given scale levels: members that stay keep their ids, new ones get new ones."""

from __future__ import annotations

from collections.abc import Iterable

from slipway.lcm.record import MADE_AT, inventory, member_of
from slipway.lcm.rules import must_be_instantiated
from slipway.model.connectivity import links_of
from slipway.model.descriptor import Flavour, Level
from slipway.model.errors import BadRequest, Conflict
from slipway.model.instance import ExtVirtualLink, InstantiatedVnfInfo, ScaleInfo, VnfcResourceInfo, VnfInstance
from slipway.model.situation import Situation
from slipway.model.target import Change, Member, Renewal, Target, new_id


def info_of(vnf: VnfInstance) -> InstantiatedVnfInfo:
    must_be_instantiated(vnf)
    if vnf.instantiated_vnf_info is None:
        raise Conflict(f"VNF instance {vnf.id} has no record of what was instantiated.")
    return vnf.instantiated_vnf_info


def scale_levels(info: InstantiatedVnfInfo) -> dict[str, int]:
    return {status.aspect_id: status.scale_level for status in info.scale_status}


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


def change_to(
    situation: Situation,
    after: Target | None,
    *,
    renewal: Renewal = Renewal(),  # noqa: B008 - frozen
    reconnects: bool = False,
    grace_seconds: int = 0,
) -> Change:
    instance = situation.instance
    return Change(
        instance_id=instance.vnf.id,
        version=instance.version,
        inventory=inventory(instance.vnf.instantiated_vnf_info),
        before=_target_before(situation),
        after=after,
        renewal=renewal,
        reconnects=reconnects,
        grace_seconds=grace_seconds,
    )


def target_now(situation: Situation, scale: dict[str, int] | None = None, renewal: Renewal | None = None) -> Target:
    """All of it, at the levels it has or at new ones."""
    info = info_of(situation.instance.vnf)
    levels = scale_levels(info) if scale is None else scale
    return target_at(situation, levels, level_of(situation), links_of(info), renewal)


def target_at(
    situation: Situation,
    scale: dict[str, int],
    level: Level,
    links: Iterable[ExtVirtualLink],
    renewal: Renewal | None = None,
) -> Target:
    flavour, renewed = situation.flavour, renewal.members if renewal else frozenset[str]()
    counts = {name: flavour.members(name, scale, level) for name in flavour.vdus}
    return Target(
        flavour=flavour,
        scale=scale,
        counts=counts,
        members=tuple(
            member
            for name, vdu in flavour.vdus.items()
            if not vdu.container
            for member in _members(situation, name, counts[name], renewed)
        ),
        links=tuple(links),
        parameters=situation.instance.parameters,
    )


def _target_before(situation: Situation) -> Target | None:
    info = situation.instance.vnf.instantiated_vnf_info
    if info is None:
        return None
    flavour = situation.flavour_before or situation.flavour
    members = tuple(member for vnfc in info.vnfc_resource_info if (member := member_of(vnfc)))
    scale = scale_levels(info)
    level = flavour.level(info.metadata.get("instantiationLevelId"))
    return Target(
        flavour=flavour,
        scale=scale,
        counts={name: flavour.members(name, scale, level) for name in flavour.vdus},
        members=members,
        links=links_of(info),
        parameters=situation.instance.parameters,
    )


def _members(situation: Situation, vdu: str, count: int, renewed: frozenset[str]) -> list[Member]:
    """The oldest stay: the newest leave first, whatever their slots. The lowest free slots are filled."""
    info, instance = situation.instance.vnf.instantiated_vnf_info, situation.instance
    there = [vnfc for vnfc in (info.vnfc_resource_info if info else ()) if vnfc.vdu_id == vdu and member_of(vnfc)]
    staying = {_slot_of(vnfc): vnfc for vnfc in sorted(there, key=_age)[:count]}
    taken = {_slot_of(vnfc) for vnfc in there}
    free = (slot for slot in range(len(there) + count) if slot not in taken)
    slots = [*staying, *(next(free) for _ in range(count - len(staying)))]

    def id_in(slot: int) -> str:
        old = staying.get(slot)
        if old is not None and old.id not in renewed:
            return old.id
        return new_id(instance.vnf.id, instance.version, "machine", f"{vdu}-{slot}")

    return [Member(id=id_in(slot), vdu=vdu, slot=slot) for slot in sorted(slots)]


def _slot_of(vnfc: VnfcResourceInfo) -> int:
    return int(vnfc.metadata["slot"])


def _age(vnfc: VnfcResourceInfo) -> tuple[int, int]:
    """Oldest first. Those made by one operation came in the order of their slots."""
    return int(vnfc.metadata.get(MADE_AT, 0)), _slot_of(vnfc)
