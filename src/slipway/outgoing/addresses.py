"""Which IP addresses requests may go to: checked after the name is resolved, and for IPv4 addresses inside of IPv6."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from slipway.model.errors import SettingsError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Where clouds tell a machine its secrets. Most are link-local, and refused as such; these are not. Scripts of packages
# are kept from them, too (mgmt/script_network.py).
METADATA = frozenset(
    ip_address(text)
    for text in (
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
    )
)
NAT64 = IPv6Network("64:ff9b::/96")
LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")  # what is embedded can't be known
NOT_ROUTABLE = (
    ip_network("0.0.0.0/8"),  # this host on this network: Linux takes 0.0.0.0 for itself
    ip_network("192.0.0.0/24"),  # the IETF's own
    ip_network("fec0::/10"),  # site-local, given up long ago
    LOCAL_NAT64,
)
_COMPATIBLE = ip_network("::/96")


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """From the setting `allowed_networks`. SettingsError names the one that is wrong."""
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ip_network(text.strip(), strict=False))
        except ValueError:
            raise SettingsError(
                f"allowed_networks: {text!r} is not a network. Give CIDRs such as 10.0.0.0/8 or fd00::/8."
            ) from None
    return tuple(networks)


def contains_loopback(networks: Iterable[Network]) -> bool:
    """Named on purpose: 0.0.0.0/0 says nothing about the machine that Slipway runs on."""
    return any(network.is_loopback for network in networks)


def refusal(
    address: Address, networks: tuple[Network, ...], loopback: bool, is_own: Callable[[Address], bool]
) -> str | None:
    """Why a request must not go there, as the end of "... is"; None when it may.

    Unless `loopback`, other addresses of this machine (`is_own`) are refused as well: who is not alone with it must not
    reach what listens for it only. One that is named by itself, as 10.0.0.5/32, is meant.
    """
    for destination in _destinations(address):
        if why := _never(destination):
            return why
        if destination.is_loopback:
            if not loopback:
                return "a loopback address of the machine that Slipway runs on"
        elif destination.is_reserved:  # ::1 is in a reserved block, too
            return "a reserved or the broadcast address"
        elif not loopback and ip_network(destination) not in networks and is_own(destination):
            return "an address of the machine that Slipway runs on"
        if networks and not any(destination in network for network in networks):
            return "not in the allowed networks"
    return None


def _never(address: Address) -> str | None:
    if address in METADATA:
        return "a metadata address of a cloud"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified or any(address in network for network in NOT_ROUTABLE):
        return "no address of a server"
    return None


def _destinations(address: Address) -> Iterator[Address]:
    """The addresses that packets to this one end up at: IPv6 can carry IPv4 inside."""
    if isinstance(address, IPv4Address):
        yield address
        return
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo
    elif address in NAT64 or (address in _COMPATIBLE and int(address) > 1):
        yield last
    else:
        yield address
