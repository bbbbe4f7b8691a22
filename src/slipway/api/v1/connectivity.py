"""External virtual links: v1 has a list of CP configurations where the core has a map.

The core gives a CP's configurations to its slots in the order of their keys, so the keys made here sort as the list.
A cpInstanceId is no key: a later change of the same configuration may come without it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from slipway.api.v1 import LenientStruct
from slipway.model.instance import (
    CpConfig,
    CpProtocolData,
    ExtLinkPort,
    ExtManagedVirtualLink,
    ExtVirtualLink,
    ResourceHandle,
    Term,
    VnfExtCpData,
)


class IpAddressData(LenientStruct, frozen=True, kw_only=True):
    type: Literal["IPV4", "IPV6"]
    fixed_addresses: tuple[str, ...] = ()
    num_dynamic_addresses: Annotated[int, Meta(ge=1)] | None = None
    address_range: dict[str, str] | None = None
    subnet_id: Term | None = None

    def __post_init__(self) -> None:
        """A ValueError becomes part of the refusal of the body, with the path to here."""
        given = [bool(self.fixed_addresses), self.num_dynamic_addresses is not None, self.address_range is not None]
        if given.count(True) > 1 or not (any(given) or self.subnet_id):  # a subnet alone is for one address of it
            raise ValueError("exactly one of fixedAddresses, numDynamicAddresses and addressRange is wanted")
        for address in self.fixed_addresses:
            _check_address(address, 4 if self.type == "IPV4" else 6)


class IpOverEthernetData(LenientStruct, frozen=True, kw_only=True):
    mac_address: str | None = None
    ip_addresses: tuple[IpAddressData, ...] = ()

    def __post_init__(self) -> None:
        if not (self.mac_address or self.ip_addresses):
            raise ValueError("macAddress or ipAddresses is wanted")


class ProtocolData(LenientStruct, frozen=True, kw_only=True):
    layer_protocol: Literal["IP_OVER_ETHERNET"]
    ip_over_ethernet: IpOverEthernetData | None = None


class ExtCpConfig(LenientStruct, frozen=True, kw_only=True):
    link_port_id: Term | None = None
    cp_protocol_data: tuple[ProtocolData, ...] = ()


class ExtCpData(LenientStruct, frozen=True, kw_only=True):
    cpd_id: Term
    cp_config: Annotated[tuple[ExtCpConfig, ...], Meta(min_length=1)]


class ExtLinkPortData(LenientStruct, frozen=True, kw_only=True):
    id: Term
    resource_handle: ResourceHandle


class ExtVirtualLinkData(LenientStruct, frozen=True, kw_only=True):
    id: Term
    resource_id: Term
    ext_cps: Annotated[tuple[ExtCpData, ...], Meta(min_length=1)]
    vim_connection_id: Term | None = None
    resource_provider_id: Term | None = None
    ext_link_ports: tuple[ExtLinkPortData, ...] = ()


class ExtManagedVirtualLinkData(LenientStruct, frozen=True, kw_only=True):
    id: Term
    vnf_virtual_link_desc_id: Term
    resource_id: Term
    vim_connection_id: Term | None = None
    resource_provider_id: Term | None = None


def to_links(links: Iterable[ExtVirtualLinkData]) -> tuple[ExtVirtualLink, ...]:
    return tuple(
        ExtVirtualLink(
            id=link.id,
            resource_id=link.resource_id,
            vim_connection_id=link.vim_connection_id,
            resource_provider_id=link.resource_provider_id,
            ext_cps=tuple(VnfExtCpData(cpd_id=cp.cpd_id, cp_config=_to_map(cp.cp_config)) for cp in link.ext_cps),
            ext_link_ports=tuple(
                ExtLinkPort(id=port.id, resource_handle=port.resource_handle) for port in link.ext_link_ports
            ),
        )
        for link in links
    )


def to_managed_links(links: Iterable[ExtManagedVirtualLinkData]) -> tuple[ExtManagedVirtualLink, ...]:
    return tuple(msgspec.convert(msgspec.to_builtins(link), ExtManagedVirtualLink) for link in links)


def from_links(links: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The JSON of the core's extVirtualLinks as v1 has it."""
    return [link | {"extCps": [_listed(cp) for cp in link.get("extCps", ())]} for link in links]


def _to_map(configs: Sequence[ExtCpConfig]) -> dict[str, CpConfig]:
    return {
        f"{at:03}": CpConfig(
            link_port_id=config.link_port_id,
            cp_protocol_data=msgspec.convert(msgspec.to_builtins(config.cp_protocol_data), tuple[CpProtocolData, ...]),
        )
        for at, config in enumerate(configs)
    }


def _listed(cp: dict[str, Any]) -> dict[str, Any]:
    return cp | {"cpConfig": [config for _, config in sorted(cp.get("cpConfig", {}).items())]}


def _check_address(text: str, version: int) -> None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"fixedAddresses: {text[:100]!r} is not an IP address") from None
    if "%" in text:
        raise ValueError(f"fixedAddresses: {text[:100]!r} has a zone, which ports have not")
    if address.version != version:
        raise ValueError(f"fixedAddresses: {text!r} is not of the type IPV{version}")
