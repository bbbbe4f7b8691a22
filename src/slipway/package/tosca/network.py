"""Connection points and virtual links."""

from __future__ import annotations

import ipaddress

from slipway.model.descriptor import ConnectionPoint, Vdu, VirtualLink
from slipway.package.tosca.node_types import VDU_CP, VIP_CP, VIRTUAL_LINK, NodeTemplate
from slipway.package.tosca.section import Section, some
from slipway.package.tosca.topology import Topology, requirements

VNIC_TYPES = ("normal", "macvtap", "direct", "baremetal", "virtio-forwarder", "direct-physical", "smart-nic")
_OLDER_VNIC_TYPES = {"virtio": "normal"}  # what a normal one is to the machine
_IN_A_TEMPLATE = "remove it, or write a template in BaseHOT that has it."
_UNREAD = ("allowed_address_data", "bitrate_requirement", "trunk_mode", "virtual_network_interface_requirements")


def read_virtual_links(topology: Topology) -> dict[str, VirtualLink]:
    return {node.name: _virtual_link(node, topology) for node in topology.of_kind(VIRTUAL_LINK)}


def _virtual_link(node: NodeTemplate, topology: Topology) -> VirtualLink:
    profile = node.properties.section("vl_profile")
    given = (one.section("l3_protocol_data") for one in profile.listed("virtual_link_protocol_data"))
    layers = [one for one in given if one]
    layer = layers[0] if layers else profile.empty("virtual_link_protocol_data")
    _warn_of_unread_subnet(node, layers, topology)
    cidr = layer.text("cidr")
    if cidr is not None:
        try:
            ipaddress.ip_network(cidr, strict=False)
        except ValueError:
            raise layer.error(
                f"The cidr {cidr[:60]!r} is not a network.", "write it like 10.10.0.0/24.", "cidr"
            ) from None
    return VirtualLink(name=node.name, cidr=cidr)


def _warn_of_unread_subnet(node: NodeTemplate, layers: list[Section], topology: Topology) -> None:
    """Subnets are made with DHCP, and with the gateway and the addresses that their VIM chooses."""
    link = f"The virtual link {node.name!r}"
    if len(layers) > 1:
        what = f"{link} has {len(layers)} l3_protocol_data: the first one counts."
        topology.warnings.add(layers[1].error(what, _IN_A_TEMPLATE))
    for layer in layers[:1]:
        found = [key for key in ("gateway_ip", "ip_allocation_pools") if layer.value(key)]
        found += ["dhcp_enabled"] if layer.value("dhcp_enabled") is False else []
        for key in found:
            topology.warnings.add(layer.error(f"{link} has {key}: nothing is done about it.", _IN_A_TEMPLATE, key))


def read_connection_points(
    topology: Topology, vdus: dict[str, Vdu], links: dict[str, VirtualLink]
) -> dict[str, ConnectionPoint]:
    for node in topology.of_kind(VIP_CP):
        what = f"The connection point {node.name!r} is for an address that others share: no port is made for it."
        topology.warnings.add(node.section.error(what, _IN_A_TEMPLATE))
    for policy in topology.policies_of("SecurityGroupRule"):
        what = (
            f"The policy {policy.name!r} says what may reach connection points: nothing is done about it, and the "
            "VIM's own rules count."
        )
        topology.warnings.add(policy.section.error(what, "set those, or write a template in BaseHOT that has it."))
    return {node.name: _connection_point(node, topology, vdus, links) for node in topology.of_kind(VDU_CP)}


def _connection_point(
    node: NodeTemplate, topology: Topology, vdus: dict[str, Vdu], links: dict[str, VirtualLink]
) -> ConnectionPoint:
    vdu, link = None, None
    for requirement, target, where in requirements(node.section):
        if requirement == "virtual_binding":
            vdu = target
            if vdu not in vdus:
                subject = f"The connection point {node.name!r} is bound to the VDU"
                raise topology.no_such("VDU", vdu, subject, where, requirement, f"bind it to one of: {some(vdus)}.")
        elif requirement == "virtual_link":
            link = target
            if link not in links:
                subject = f"The connection point {node.name!r} is on the virtual link"
                cure = "declare it as tosca.nodes.nfv.VnfVirtualLink, or map it in substitution_mappings."
                raise topology.no_such("virtual link", link, subject, where, requirement, cure)
    if vdu is None:
        raise node.section.error(
            f"The connection point {node.name!r} is bound to no VDU.", "add `- virtual_binding: <VDU>`."
        )
    _warn_of_unread(node, topology)
    return ConnectionPoint(
        name=node.name,
        vdu=vdu,
        order=node.properties.number("order") or 0,
        virtual_link=link,
        vnic_type=_vnic_type(node),
    )


def _vnic_type(node: NodeTemplate) -> str | None:
    asked = node.properties.text("vnic_type")
    kind = _OLDER_VNIC_TYPES.get(asked, asked) if asked else None
    if kind is not None and kind not in VNIC_TYPES:
        what = f"vnic_type {kind[:60]!r} of the connection point {node.name!r} is none."
        raise node.properties.error(what, f"write one of: {', '.join(VNIC_TYPES)}.", "vnic_type")
    return kind


def _warn_of_unread(node: NodeTemplate, topology: Topology) -> None:
    properties = node.properties
    found = [(properties, key) for key in _UNREAD if properties.value(key)]
    for protocol in properties.listed("protocol"):
        for address in protocol.listed("address_data"):
            layer = address.section("l3_address_data")
            found += [(layer, key) for key in ("floating_ip_activated",) if layer.value(key) is True]
    for holder, key in found:
        what = f"The connection point {node.name!r} has {key}: nothing is done about it."
        topology.warnings.add(holder.error(what, _IN_A_TEMPLATE, key))
