"""Whether the links of a request fit the VNFD, and what they ask for is what it looks like: addresses, MACs, ids."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

from slipway.model.connectivity import Links, ManagedLinks, used_link_ports
from slipway.model.descriptor import Flavour
from slipway.model.errors import BadRequest
from slipway.model.instance import CpConfig, ExtVirtualLink, InstantiatedVnfInfo, IpOverEthernet

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)
VERSIONS = {"IPV4": 4, "IPV6": 6}
T = TypeVar("T")


def check_links(links: Iterable[ExtVirtualLink], flavour: Flavour) -> None:
    """BadRequest for a connection point that the flavour lacks, and for addresses and MACs that are none."""
    points, links = flavour.connection_points, tuple(links)
    for at, link in enumerate(links):
        for cp in link.ext_cps:
            if cp.cpd_id not in points:
                raise BadRequest(
                    f"extVirtualLinks[{at}].extCps: flavour {flavour.id!r} has no connection point "
                    f"{cp.cpd_id!r}; it has: {', '.join(points) or 'none'}."
                )
            for key, config in cp.cp_config.items():
                for _ in _checked(config, f"extVirtualLinks[{at}].extCps.{cp.cpd_id}.cpConfig.{key}"):
                    pass
    check_link_ports(links)


def check_link_ports(links: Iterable[ExtVirtualLink]) -> None:
    """BadRequest for a port that exists and that two connection points are to be, or one of another link."""
    links = tuple(links)
    link_of = {port.id: link.id for link in links for port in link.ext_link_ports}
    resources = set[str]()
    for at, link in enumerate(links):
        ids = set[str]()
        for port in link.ext_link_ports:
            _once(port.id, ids, f"extVirtualLinks[{at}].extLinkPorts: the port {port.id!r}")
        for cp in link.ext_cps:
            for key, config in cp.cp_config.items():
                other = link_of.get(config.link_port_id or "")
                if other and config.link_port_id not in ids:
                    raise BadRequest(
                        f"extVirtualLinks[{at}].extCps.{cp.cpd_id}.cpConfig.{key}.linkPortId: the port "
                        f"{config.link_port_id!r} is on the link {other!r}; name one of this link."
                    )
        for cp, port in used_link_ports(link):
            resource = port.resource_handle.resource_id
            _once(resource, resources, f"extVirtualLinks[{at}].extCps: the port {resource!r} of {cp.cpd_id!r}")


def check_named_ports(asked: Links, after: Links) -> None:
    """BadRequest for a linkPortId that names no port. `after`: all links, with what the VNF has already."""
    ports = {link.id: [port.id for port in link.ext_link_ports] for link in after}
    for at, link in enumerate(asked):
        known = ports.get(link.id, ())
        for cp in link.ext_cps:
            for key, config in cp.cp_config.items():
                if config.link_port_id is not None and config.link_port_id not in known:
                    raise BadRequest(
                        f"extVirtualLinks[{at}].extCps.{cp.cpd_id}.cpConfig.{key}.linkPortId: the link {link.id!r} has "
                        f"no port {config.link_port_id!r} in its extLinkPorts; it has: {', '.join(known) or 'none'}."
                    )


def check_managed_links(links: ManagedLinks, flavour: Flavour) -> None:
    """BadRequest for a link that the flavour lacks, or that is named twice."""
    ids, names = set[str](), set[str]()
    for at, link in enumerate(links):
        path, name = f"extManagedVirtualLinks[{at}]", link.vnf_virtual_link_desc_id
        if name not in flavour.virtual_links:
            raise BadRequest(
                f"{path}.vnfVirtualLinkDescId: flavour {flavour.id!r} has no internal virtual link {name!r}; it has: "
                f"{', '.join(flavour.virtual_links) or 'none'}."
            )
        if not link.resource_id.strip():
            raise BadRequest(f"{path}.resourceId: it is empty; name the network.")
        _once(link.id, ids, f"{path}.id: the link {link.id!r}")
        _once(name, names, f"{path}.vnfVirtualLinkDescId: the virtual link {name!r}")


def check_managed_stay(info: InstantiatedVnfInfo, links: ManagedLinks) -> None:
    """BadRequest when a link of the VNF would be another network: ports that are there stay where they are."""
    made = {link.vnf_virtual_link_desc_id: link.network_resource for link in info.vnf_virtual_link_resource_info}
    given = {link.vnf_virtual_link_desc_id: link.network_resource for link in info.ext_managed_virtual_link_info}
    for at, link in enumerate(links):
        now = (made | given).get(link.vnf_virtual_link_desc_id)
        if now and now.resource_id != link.resource_id:
            raise BadRequest(
                f"extManagedVirtualLinks[{at}].resourceId: the virtual link {link.vnf_virtual_link_desc_id!r} is the "
                f"network {now.resource_id}, and a change of the package moves no ports; leave the link out, or name "
                "that network."
            )


def check_link_change(now: Links, asked: Links) -> None:
    """BadRequest for a link that contradicts itself, another one of the request, or what the VNF has."""
    known = {link.id for link in now}
    links, points, addresses = set[str](), set[str](), set[tuple[str, str]]()
    for at, link in enumerate(asked):
        path = f"extVirtualLinks[{at}]"
        for name, value in (("id", link.id), ("resourceId", link.resource_id)):
            if not value.strip():
                raise BadRequest(f"{path}.{name}: it is empty; name the {'link' if name == 'id' else 'network'}.")
        _once(link.id, links, f"{path}.id: the link {link.id!r}")
        if not link.ext_cps and link.id not in known:
            raise BadRequest(
                f"{path}.extCps: the VNF has no link {link.id!r}, and the request connects nothing to it; name the "
                f"connection points. It has: {', '.join(sorted(known)) or 'none'}."
            )
        for cp in link.ext_cps:
            here = f"{path}.extCps"
            _once(cp.cpd_id, points, f"{here}: the connection point {cp.cpd_id!r}")
            for key, config in cp.cp_config.items():
                for address in _checked(config, f"{here}.{cp.cpd_id}.cpConfig.{key}"):
                    _once((link.resource_id, address), addresses, f"{here}: the address {address}")


def _once(value: T, seen: set[T], what: str) -> None:
    if value in seen:
        raise BadRequest(f"{what} is there twice; name it once.")
    seen.add(value)


def _checked(config: CpConfig, path: str) -> Iterator[str]:
    """The addresses asked for."""
    for data in config.cp_protocol_data:
        if ethernet := data.ip_over_ethernet:
            if ethernet.mac_address is not None and not MAC.fullmatch(ethernet.mac_address):
                raise BadRequest(
                    f"{path}.macAddress: {ethernet.mac_address!r} is not a MAC address; write it as 02:00:00:00:00:01."
                )
            yield from _addresses(ethernet, path)


def _addresses(ethernet: IpOverEthernet, path: str) -> Iterator[str]:
    for ips in ethernet.ip_addresses:
        if ips.type not in VERSIONS:
            raise BadRequest(f"{path}.ipAddresses.type: it must be one of: IPV4, IPV6; not {ips.type!r}.")
        if ips.fixed_addresses and ips.num_dynamic_addresses is not None:
            raise BadRequest(
                f"{path}.ipAddresses: fixedAddresses and numDynamicAddresses are both there; give one of them, and "
                "another entry for the other."
            )
        for text in ips.fixed_addresses:
            try:
                address = ipaddress.ip_address(text)
            except ValueError:
                raise BadRequest(
                    f"{path}.fixedAddresses: {text!r} is not an IP address; write one like 10.0.0.5."
                ) from None
            if "%" in text:
                raise BadRequest(f"{path}.fixedAddresses: {text!r} has a zone, which ports have not; leave it out.")
            if address.version != VERSIONS[ips.type]:
                raise BadRequest(f"{path}.fixedAddresses: {text!r} is not of the type {ips.type}; correct one of them.")
            yield str(address)
