"""How a VNF is connected to networks outside: links as a request gives them, as the record keeps them, and changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from slipway.model.errors import BadRequest
from slipway.model.instance import (
    CpConfig,
    CpProtocolData,
    ExtLinkPort,
    ExtLinkPortInfo,
    ExtManagedVirtualLink,
    ExtManagedVirtualLinkInfo,
    ExtVirtualLink,
    ExtVirtualLinkInfo,
    InstantiatedVnfInfo,
    IpAddresses,
    ResourceHandle,
    VnfExtCpData,
)
from slipway.model.machine import Address

Links = tuple[ExtVirtualLink, ...]
ManagedLinks = tuple[ExtManagedVirtualLink, ...]


# The standard wants a configuration for every external connection point, also where a request asks for nothing special.
# It stands in the record under the name of the connection point, beside those of members that have one of their own.
NOTHING_ASKED = CpConfig(cp_protocol_data=(CpProtocolData(layer_protocol="IP_OVER_ETHERNET"),))


def recorded_links(links: Iterable[ExtVirtualLink], vim_key: str) -> tuple[ExtVirtualLinkInfo, ...]:
    """`vim_key` names the VIM that the VNF and so its links are on."""
    return tuple(
        ExtVirtualLinkInfo(
            id=link.id,
            resource_handle=_handle(link, vim_key),
            ext_link_ports=tuple(
                ExtLinkPortInfo(id=port.id, resource_handle=port.resource_handle) for port in link.ext_link_ports
            ),
            current_vnf_ext_cp_data=tuple(
                cp if cp.cp_config else replace(cp, cp_config={cp.cpd_id: NOTHING_ASKED}) for cp in link.ext_cps
            ),
        )
        for link in links
    )


def recorded_managed_links(
    links: Iterable[ExtManagedVirtualLink], vim_key: str
) -> tuple[ExtManagedVirtualLinkInfo, ...]:
    return tuple(
        ExtManagedVirtualLinkInfo(
            id=link.id,
            vnf_virtual_link_desc_id=link.vnf_virtual_link_desc_id,
            network_resource=_handle(link, vim_key),
            ext_managed_multisite_virtual_link_id=link.ext_managed_multisite_virtual_link_id,
        )
        for link in links
    )


def managed_networks(links: Iterable[ExtManagedVirtualLinkInfo]) -> dict[str, str]:
    """The VIM's ids of networks, by the names of the links in the VNFD."""
    return {link.vnf_virtual_link_desc_id: link.network_resource.resource_id for link in links}


def links_of(info: InstantiatedVnfInfo) -> Links:
    return tuple(
        ExtVirtualLink(
            id=link.id,
            resource_id=link.resource_handle.resource_id,
            vim_connection_id=link.resource_handle.vim_connection_id,
            resource_provider_id=link.resource_handle.resource_provider_id,
            ext_link_ports=tuple(
                ExtLinkPort(id=port.id, resource_handle=port.resource_handle) for port in link.ext_link_ports
            ),
            ext_cps=tuple(_as_asked(cp) for cp in link.current_vnf_ext_cp_data),
        )
        for link in info.ext_virtual_link_info
    )


def config_of(info: InstantiatedVnfInfo, cpd_id: str, slot: int) -> tuple[str, CpConfig]:
    """The key and the configuration of the connection point of one member. What has none is named as its descriptor."""
    for link in info.ext_virtual_link_info:
        for cp in link.current_vnf_ext_cp_data:
            if cp.cpd_id == cpd_id and slot < len(own := own_configs(cp)):
                return own[slot]
    return cpd_id, NOTHING_ASKED


def own_configs(cp: VnfExtCpData) -> list[tuple[str, CpConfig]]:
    """Those of the first members, each with its key; all other members have what is named as the descriptor.

    In the order of their keys: no database has to keep the order of an object's members.
    """
    return sorted(_as_asked(cp).cp_config.items(), key=lambda entry: entry[0])


def asked_addresses(cp: VnfExtCpData, slot: int) -> tuple[Address, ...]:
    """Those of one member. A member without a word gets addresses of the same subnets as the first."""
    configs = [config for _, config in own_configs(cp)]
    if slot < len(configs):
        return tuple(_addresses(configs[slot]))
    return tuple(Address(subnet=one.subnet) for one in (_addresses(configs[0]) if configs else ()) if one.subnet)


def all_asked_addresses(cp: VnfExtCpData) -> Iterator[tuple[Address, ...]]:
    """Those of each member that has a word of its own."""
    return (tuple(_addresses(config)) for _, config in own_configs(cp))


def asked_mac(cp: VnfExtCpData, slot: int) -> str | None:
    configs = own_configs(cp)
    ethernets = [data.ip_over_ethernet for data in configs[slot][1].cp_protocol_data] if slot < len(configs) else []
    return next((one.mac_address for one in ethernets if one), None)


def link_port(link: ExtVirtualLink, cp: VnfExtCpData, slot: int) -> ExtLinkPort | None:
    """The port that exists and that the connection point of one member is to be."""
    configs = own_configs(cp)
    named = configs[slot][1].link_port_id if slot < len(configs) else None
    return next((port for port in link.ext_link_ports if port.id == named), None)


def used_link_ports(link: ExtVirtualLink) -> Iterator[tuple[VnfExtCpData, ExtLinkPort]]:
    """Those that connection points of a link are to be, whichever members' these are."""
    for cp in link.ext_cps:
        for slot in range(len(cp.cp_config)):
            if port := link_port(link, cp, slot):
                yield cp, port


def with_cp_instances(info: InstantiatedVnfInfo) -> InstantiatedVnfInfo:
    """Each port that exists and that a connection point is names it."""
    points = {cp.ext_link_port_id: cp.id for cp in info.ext_cp_info if cp.ext_link_port_id}
    links = (
        replace(
            link,
            ext_link_ports=tuple(replace(port, cp_instance_id=points.get(port.id)) for port in link.ext_link_ports),
        )
        for link in info.ext_virtual_link_info
    )
    return replace(info, ext_virtual_link_info=tuple(links))


def _addresses(config: CpConfig) -> Iterator[Address]:
    """Without those of which nothing is said: there is always one of the VIM's choice."""
    for data in config.cp_protocol_data:
        for asked in data.ip_over_ethernet.ip_addresses if data.ip_over_ethernet else ():
            for ip in asked.fixed_addresses or _dynamic(asked):
                if ip is not None or asked.subnet_id is not None:
                    yield Address(ip=ip, subnet=asked.subnet_id)


def _dynamic(asked: IpAddresses) -> Iterable[None]:
    return [None] * (asked.num_dynamic_addresses or 1)


def with_all_configs(info: InstantiatedVnfInfo) -> InstantiatedVnfInfo:
    """Each `cpConfigId` of its connection points names a configuration that is there."""
    named = {(cp.cpd_id, cp.cp_config_id) for cp in info.ext_cp_info}

    def complete(cp: VnfExtCpData) -> VnfExtCpData:
        asked = _as_asked(cp).cp_config
        if asked and ((cp.cpd_id, cp.cpd_id) not in named or cp.cpd_id in asked):
            return replace(cp, cp_config=asked)
        return replace(cp, cp_config={**asked, cp.cpd_id: NOTHING_ASKED})

    links = (
        replace(link, current_vnf_ext_cp_data=tuple(complete(cp) for cp in link.current_vnf_ext_cp_data))
        for link in info.ext_virtual_link_info
    )
    return replace(info, ext_virtual_link_info=tuple(links))


def connected(now: Links, asked: Links) -> Links:
    """The links after a change. What the request leaves unsaid stays: links, and connection points of a link.

    A connection point that it names leaves its former link, and a link without any is no longer there.
    """
    place = {cp.cpd_id: link.id for link in asked for cp in link.ext_cps}
    staying = {
        link.id: replace(link, ext_cps=tuple(cp for cp in link.ext_cps if place.get(cp.cpd_id, link.id) == link.id))
        for link in now
    }
    changed = {link.id: _changed(staying.get(link.id), link) for link in asked}
    return tuple(link for link in (staying | changed).values() if link.ext_cps)


def moved_points(now: Links, then: Links) -> set[str]:
    """The connection points that are on another network, or asked for otherwise."""
    before, after = _points(now), _points(then)
    return {name for name in after if after[name] != before.get(name)}


def refuse_moves(info: InstantiatedVnfInfo, asked: Links, used: Iterable[tuple[str, str]], what: str) -> None:
    """BadRequest when a connection point moves whose addresses are used for good by `what`, such as a cluster.

    `used`: parameters of the request that made it, each with the connection point that it names.
    """
    now = links_of(info)
    moved = moved_points(now, connected(now, asked))
    for parameter, name in used:
        if name in moved:
            raise BadRequest(
                f"extVirtualLinks: the {what} uses the addresses of {name!r} ({parameter}), which it can't change; "
                f"leave that connection point on its network, or instantiate another {what} there."
            )


def _handle(link: ExtVirtualLink | ExtManagedVirtualLink, vim_key: str) -> ResourceHandle:
    return ResourceHandle(
        resource_id=link.resource_id, vim_connection_id=vim_key, resource_provider_id=link.resource_provider_id
    )


def _as_asked(cp: VnfExtCpData) -> VnfExtCpData:
    if cp.cp_config.get(cp.cpd_id) != NOTHING_ASKED:
        return cp
    return replace(cp, cp_config={key: config for key, config in cp.cp_config.items() if key != cp.cpd_id})


def _points(links: Links) -> dict[str, tuple[str, VnfExtCpData, tuple[str, ...]]]:
    """The network of each, what is asked for there, and the ports that exist and that it is to be."""
    return {
        cp.cpd_id: (
            link.resource_id,
            _as_asked(cp),
            tuple(port.resource_handle.resource_id for used, port in used_link_ports(link) if used is cp),
        )
        for link in links
        for cp in link.ext_cps
    }


def _changed(known: ExtVirtualLink | None, asked: ExtVirtualLink) -> ExtVirtualLink:
    """Each in its place, so that a link said again as it is is the same. Addresses count on one network only."""
    if known is None:
        return asked
    cps = {cp.cpd_id: cp for cp in known.ext_cps}
    for cp in asked.ext_cps:
        before = cps[cp.cpd_id].cp_config if cp.cpd_id in cps and known.resource_id == asked.resource_id else {}
        cps[cp.cpd_id] = replace(cp, cp_config={**before, **cp.cp_config})
    merged = replace(asked, ext_cps=tuple(cps.values()), ext_link_ports=(*asked.ext_link_ports, *known.ext_link_ports))
    used = {port.id for _, port in used_link_ports(merged)}
    named = {port.id for port in asked.ext_link_ports}
    staying = (port for port in known.ext_link_ports if port.id in used - named or not named)
    return replace(merged, ext_link_ports=(*asked.ext_link_ports, *staying))
