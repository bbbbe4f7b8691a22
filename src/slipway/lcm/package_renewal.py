"""Which VNFCs a change of package makes anew, and in which turns.

Those of VDUs whose machines the new VNFD makes from something else: another image, another size, other boot data. They
go one after another, so that the others serve meanwhile. Of a cluster no machine is made anew: its management driver
upgrades the nodes that are there.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any

from slipway.lcm.targets import info_of
from slipway.lcm.upgrade_parameters import VDU_PARAMS, upgrade_parameters
from slipway.model.descriptor import Flavour
from slipway.model.errors import BadRequest
from slipway.model.hooks import CLUSTER_DRIVERS, KUBESPRAY_DRIVERS
from slipway.model.package import SoftwareImage
from slipway.model.requests import ChangePackageRequest
from slipway.model.situation import Situation
from slipway.model.target import Renewal


def check_parameters(situation: Situation, request: ChangePackageRequest) -> None:
    """BadRequest for what additionalParams say about the way of the change, and that can't be."""
    vdus = upgrade_parameters(situation, request.additional_params).vdus
    if vdus is not None and is_cluster(situation):
        raise BadRequest(
            f"additionalParams.{VDU_PARAMS}: the VNF is a cluster, whose nodes are upgraded and not made anew; "
            "leave it out."
        )


def renewal_of(situation: Situation, request: ChangePackageRequest) -> Renewal:
    info, vdus = info_of(situation.instance.vnf), renewed_vdus(situation, request)
    members = (vnfc.id for vnfc in info.vnfc_resource_info if vnfc.slot is not None and vnfc.vdu_id in vdus)
    cause = f"change of the package to VNFD {request.vnfd_id}"
    return Renewal(members=frozenset(members), cause=cause, reversible=True)


def turns_of(situation: Situation, request: ChangePackageRequest) -> tuple[tuple[str, ...], ...]:
    """The names of those VNFCs, one a turn: VDUs that others depend on first, and slot after slot."""
    info, vdus = info_of(situation.instance.vnf), renewed_vdus(situation, request)
    return tuple(
        (f"{vdu}-{slot}",)
        for vdu in _dependencies_first(situation.flavour)
        if vdu in vdus
        for slot in sorted(vnfc.slot for vnfc in info.vnfcs_of(vdu) if vnfc.slot is not None)
    )


def chosen_vdus(situation: Situation, request: ChangePackageRequest) -> frozenset[str] | None:
    """Those that the request names; None: it names none, and all that differ are meant."""
    named = upgrade_parameters(situation, request.additional_params).vdus
    return None if named is None else frozenset(named)


def renewed_vdus(situation: Situation, request: ChangePackageRequest) -> frozenset[str]:
    """Those that differ; where the request names some, those of them. Others get what is new with their next heal."""
    if is_cluster(situation):
        return frozenset()
    chosen = chosen_vdus(situation, request)
    return _differing(situation) if chosen is None else _differing(situation) & chosen


def is_cluster(situation: Situation) -> bool:
    """Whether the VNF has nodes, before or after, that only their management driver can take out of service."""
    flavours = (situation.flavour, situation.flavour_before or situation.flavour)
    return any(
        hook.implementation in CLUSTER_DRIVERS + KUBESPRAY_DRIVERS for one in flavours for hook in one.hooks.values()
    )


def _differing(situation: Situation) -> frozenset[str]:
    before, after = situation.flavour_before, situation.flavour
    if before is None:
        return frozenset()
    return frozenset(
        name
        for name, vdu in after.vdus.items()
        if not vdu.container and name in before.vdus and _made_from(before, name) != _made_from(after, name)
    )


def _made_from(flavour: Flavour, vdu: str) -> tuple[Any, ...]:
    """What counts when one of its machines is made, and not for those there."""
    one = flavour.vdus[vdu]
    size = (one.flavour, one.cpus, one.memory_bytes, one.disk_bytes)
    boot = (one.boot_data, one.metadata, one.boot_order)
    return (_content(one.image), *size, *boot, _volume_images(flavour, vdu))


def _volume_images(flavour: Flavour, vdu: str) -> dict[str, Any]:
    storages = (flavour.storages[name] for name in flavour.vdus[vdu].storages)
    return {one.name: _content(one.image) for one in storages if one.image}


def _content(image: SoftwareImage | None) -> Any:
    return (image.name, image.version, image.checksum) if image else None


def _dependencies_first(flavour: Flavour) -> list[str]:
    """In the VNFD's order, but for those that others wait for."""
    order = list(TopologicalSorter({name: vdu.depends_on for name, vdu in flavour.vdus.items()}).static_order())
    return [name for name in order if name in flavour.vdus]
