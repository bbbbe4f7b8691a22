"""What an instance should have at given scale levels: members that stay keep their ids, new ones get new ones."""

from __future__ import annotations

from collections.abc import Iterable

from slipway.lcm.operation_rules import must_be_instantiated
from slipway.lcm.record import MADE_AT, inventory, member_of
from slipway.model.connectivity import links_of, managed_networks
from slipway.model.descriptor import Level
from slipway.model.errors import Conflict, Unprocessable
from slipway.model.instance import (
    ExtManagedVirtualLinkInfo,
    ExtVirtualLink,
    InstantiatedVnfInfo,
    VnfcResourceInfo,
    VnfInstance,
)
from slipway.model.situation import Situation
from slipway.model.target import Change, Renewal, VnfcMember, VnfTarget, new_id

MOST_MACHINES = 10_000  # of one VNF: each is a step at least, planned while others wait


def info_of(vnf: VnfInstance) -> InstantiatedVnfInfo:
    must_be_instantiated(vnf)
    if vnf.instantiated_vnf_info is None:
        raise Conflict(f"VNF instance {vnf.id} has no record of what was instantiated.")
    return vnf.instantiated_vnf_info


def change_to(
    situation: Situation,
    after: VnfTarget | None,
    *,
    renewal: Renewal = Renewal(),  # noqa: B008 - frozen
    reconnects: bool = False,
    grace_seconds: int = 0,
    retains_data: bool = False,
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
        retains_data=retains_data,
        additional_params=situation.additional_params,
    )


def no_change(situation: Situation) -> Change:
    return change_to(situation, _target_before(situation))


def target_now(situation: Situation, scale: dict[str, int] | None = None, renewal: Renewal | None = None) -> VnfTarget:
    """The whole VNF, at its present scale levels or at new ones."""
    info = info_of(situation.instance.vnf)
    levels = info.scale_levels if scale is None else scale
    return target_at(situation, levels, situation.flavour.level_of(info), links_of(info), renewal=renewal)


def target_at(
    situation: Situation,
    scale: dict[str, int],
    level: Level,
    links: Iterable[ExtVirtualLink],
    managed: Iterable[ExtManagedVirtualLinkInfo] | None = None,
    renewal: Renewal | None = None,
) -> VnfTarget:
    """`managed`: internal links whose networks exist; those of the record when it is not given."""
    info = situation.instance.vnf.instantiated_vnf_info
    if managed is None:
        managed = info.ext_managed_virtual_link_info if info else ()
    flavour, renewed = situation.flavour, renewal.members if renewal else frozenset[str]()
    counts = flavour.counts(scale, level)
    machines = sum(count for name, count in counts.items() if not flavour.vdus[name].container)
    if machines > MOST_MACHINES:
        raise Unprocessable(
            f"The VNF would have {machines} machines; at most {MOST_MACHINES} are made for one. Choose a lower level, "
            "or a package with fewer."
        )
    return VnfTarget(
        vnfd_id=situation.descriptor.vnfd_id,
        flavour=flavour,
        scale=scale,
        counts=counts,
        members=tuple(
            member
            for name, vdu in flavour.vdus.items()
            if not vdu.container
            for member in _pick_members(situation, name, counts[name], renewed)
        ),
        links=tuple(links),
        managed_networks=managed_networks(managed),
        parameters=situation.instance.parameters,
        file_names=situation.files,
    )


def _target_before(situation: Situation) -> VnfTarget | None:
    info = situation.instance.vnf.instantiated_vnf_info
    if info is None:
        return None
    flavour = situation.flavour_before or situation.flavour
    members = tuple(member for vnfc in info.vnfc_resource_info if (member := member_of(vnfc)))
    return VnfTarget(
        vnfd_id=situation.instance.vnf.vnfd_id,
        flavour=flavour,
        scale=info.scale_levels,
        counts=flavour.counts(info.scale_levels, flavour.level_of(info)),
        members=members,
        links=links_of(info),
        managed_networks=managed_networks(info.ext_managed_virtual_link_info),
        parameters=situation.instance.parameters,
    )


def _pick_members(situation: Situation, vdu: str, count: int, renewed: frozenset[str]) -> list[VnfcMember]:
    """Who stays and who leaves on scale-in, and the slots of who comes on scale-out.

    The newest leave first, whatever their slots; new members get the lowest free slots.
    """
    info, instance = situation.instance.vnf.instantiated_vnf_info, situation.instance
    by_slot = {vnfc.slot: vnfc for vnfc in (info.vnfcs_of(vdu) if info else ()) if vnfc.slot is not None}
    oldest = sorted(by_slot, key=lambda slot: (_made_at(by_slot[slot]), slot))[:count]
    staying = {slot: by_slot[slot] for slot in oldest}
    free = (slot for slot in range(len(by_slot) + count) if slot not in by_slot)
    slots = [*staying, *(next(free) for _ in range(count - len(staying)))]

    def id_in(slot: int) -> str:
        old = staying.get(slot)
        if old is not None and old.id not in renewed:
            return old.id
        return new_id(instance.vnf.id, instance.version, "machine", f"{vdu}-{slot}")

    return [VnfcMember(id=id_in(slot), vdu=vdu, slot=slot) for slot in sorted(slots)]


def _made_at(vnfc: VnfcResourceInfo) -> int:
    """The version of the record then. Those made by one operation came in the order of their slots."""
    return int(vnfc.metadata.get(MADE_AT, 0))
