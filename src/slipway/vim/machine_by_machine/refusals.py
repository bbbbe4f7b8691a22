"""What a VIM of single machines can't hold is refused at the request, by name."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.model.connectivity import all_asked_addresses, used_link_ports
from slipway.model.descriptor import Flavour
from slipway.model.errors import Unprocessable
from slipway.model.instance import ExtVirtualLink
from slipway.model.target import VnfTarget


def refuse_unheld(target: VnfTarget, words: str) -> None:
    """`words`: what people call the VIM, as a sentence begins with it."""
    vim = f"{words[0].lower()}{words[1:]}"
    _refuse_connectivity(target.links, vim)
    _refuse_containers(target.flavour, vim)
    _refuse_machines(target.flavour, vim)


def _refuse_connectivity(links: Sequence[ExtVirtualLink], vim: str) -> None:
    for cp, port in (one for link in links for one in used_link_ports(link)):
        raise Unprocessable(
            f"extVirtualLinks: linkPortId {port.id} of the connection point {cp.cpd_id}: {vim} makes ports, and uses "
            "none that exists; leave it out."
        )
    for cp in (cp for link in links for cp in link.ext_cps):
        for asked in all_asked_addresses(cp):
            if any(one.subnet for one in asked):
                raise Unprocessable(
                    f"extVirtualLinks: subnetId of the connection point {cp.cpd_id}: {vim} has no subnets; leave it "
                    "out."
                )
            if len(asked) > 1:
                raise Unprocessable(
                    f"extVirtualLinks: ipAddresses of the connection point {cp.cpd_id}: {vim} gives a connection point "
                    "one address; ask for one."
                )


def _refuse_containers(flavour: Flavour, vim: str) -> None:
    if containers := [vdu.name for vdu in flavour.vdus.values() if vdu.container]:
        raise Unprocessable(
            f"vimConnectionInfo: {vim} holds machines, and {', '.join(containers)} of the VNFD are containers; choose "
            "a Kubernetes VIM."
        )


def _refuse_machines(flavour: Flavour, vim: str) -> None:
    for vdu in flavour.vdus.values():
        if vdu.metadata:
            raise Unprocessable(
                f"VDU {vdu.name}: {vim} tells machines no kvp_data; put it into the content of the boot data."
            )
        if vdu.boot_order:
            raise Unprocessable(
                f"VDU {vdu.name}: {vim} boots machines from their image, and boot_order says "
                f"{', '.join(vdu.boot_order)}; leave it out."
            )
    for cp in flavour.connection_points.values():
        if cp.vnic_type not in (None, "normal"):
            raise Unprocessable(
                f"The connection point {cp.name}: {vim} has no ports of the vnic_type {cp.vnic_type}; leave it out."
            )
