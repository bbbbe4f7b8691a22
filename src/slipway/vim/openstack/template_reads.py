"""What a template of the package reads of `nfv`; what a request or a grant says beyond that is refused by its name.

Otherwise it would be accepted, recorded, and nothing done about it: a server in another zone than was granted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from slipway.model.connectivity import all_asked_addresses, asked_mac, used_link_ports
from slipway.model.errors import Unprocessable
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.target import Change, VnfTarget
from slipway.vim.openstack.base_hot import CP, NFV, VDU
from slipway.vim.openstack.hot_template import BaseHot, calls

IMAGE, SIZE, ZONE = ("image", "vcImageId"), ("flavor", "computeFlavourId"), ("locationConstraints",)


def reads(base: BaseHot, *keys: Collection[Any]) -> bool:
    """Whether the template reads that of `nfv`: one of the keys at each level, or all below a level, or computed."""
    for argument in calls(base.template, "get_param"):
        path = argument if isinstance(argument, list) else [argument]
        pairs = zip(path, ((NFV,), *keys), strict=False)
        if all(part in known if isinstance(part, str | int) else True for part, known in pairs):
            return True
    return False


def reads_image(base: BaseHot, name: str) -> bool:
    """Of a VDU or storage."""
    return reads(base, (VDU,), (name,), IMAGE)


def refuse_unread(change: Change, base: BaseHot) -> None:
    """Unprocessable names what the change brings and the template of `after` would not use."""
    after, before = change.after, change.before
    if after is None:
        return
    known = {link.id: link for link in before.links} if before and before.vnfd_id == after.vnfd_id else {}
    for link in after.links:
        if known.get(link.id) != link:
            _refuse_link(link, base)
    present = {machine.id for machine in change.inventory.machines}
    new = [one for one in after.members if one.id not in present]
    for member in new:
        if (zone := after.zones.get(member.id)) and not reads(base, (VDU,), (member.vdu,), ZONE):
            raise _unread(base, f"the zone {zone} that was granted for VDU {member.vdu}", VDU, member.vdu, ZONE[0])
    _refuse_assets(after, {one.vdu for one in new}, base)


def _refuse_assets(after: VnfTarget, vdus: Collection[str], base: BaseHot) -> None:
    nodes = {name for vdu in vdus for name in (vdu, *after.flavour.vdus[vdu].storages)}
    for name, image in after.images.items():
        if name in nodes and not reads_image(base, name):
            raise _unread(base, f"the image {image} that was granted for {name}", VDU, name, IMAGE[1])
    for vdu, size in after.flavours.items():
        if vdu in vdus and not reads(base, (VDU,), (vdu,), SIZE):
            raise _unread(base, f"the flavor {size} that was granted for VDU {vdu}", VDU, vdu, SIZE[1])


def _refuse_link(link: ExtVirtualLink, base: BaseHot) -> None:
    with_ports = {cp.cpd_id for cp, _ in used_link_ports(link)}
    for cp in link.ext_cps:
        if cp.cpd_id in with_ports:
            continue  # its addresses are those that the port has
        if not reads(base, (CP,), (cp.cpd_id,), ("network",)):
            what = f"extVirtualLinks: the network {link.resource_id} of the connection point {cp.cpd_id}"
            raise _unread(base, what, CP, cp.cpd_id, "network")
        for what, key in _unread_addresses(cp, base):
            raise _unread(base, f"extVirtualLinks: {what} of the connection point {cp.cpd_id}", CP, cp.cpd_id, key)
        if mac := next((one for slot in range(len(cp.cp_config)) if (one := asked_mac(cp, slot))), None):
            raise Unprocessable(
                f"extVirtualLinks: the MAC {mac} of the connection point {cp.cpd_id}: a template of the package is not "
                "given MACs; leave it out, or name a port that exists by linkPortId."
            )


def _unread_addresses(cp: VnfExtCpData, base: BaseHot) -> Iterator[tuple[str, str]]:
    """What is asked for, and where the template would have to read it. The subnet of a fixed address is its own."""
    for addresses in all_asked_addresses(cp):
        for at, one in enumerate(addresses):
            value, field = (one.ip, "ip_address") if one.ip else (one.subnet, "subnet")
            if value and not reads(base, (CP,), (cp.cpd_id,), ("fixed_ips",), (at, str(at)), (field,)):
                yield f"the {'address' if one.ip else 'subnet'} {value}", f"fixed_ips.{at}.{field}"


def _unread(base: BaseHot, what: str, kind: str, name: str, key: str) -> Unprocessable:
    return Unprocessable(
        f"{what}: {base.path} does not read nfv.{kind}.{name}.{key}, so nothing would be done about it; let the "
        "template read it, or leave it out."
    )
