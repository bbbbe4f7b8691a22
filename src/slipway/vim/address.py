"""Which address a port gets: decided from its id, so that the same port asks for the same address every time."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from ipaddress import ip_address, ip_network
from itertools import chain

from slipway.model.errors import VimError, VimFault


def pseudo_cidr(network: str) -> str:
    """A range for a network that names none, made from its id."""
    return f"10.{sha256(network.encode()).digest()[0]}.0.0/16"


def checked_cidr(cidr: str, network: str) -> str:
    try:
        return str(ip_network(cidr, strict=False))
    except ValueError as error:
        raise VimError(
            f"Network {network}: {cidr!r} is not a CIDR range: {error}.",
            VimFault.PERMANENT,
            cure="correct the cidr of the virtual link in the VNFD, for example 10.10.0.0/24.",
        ) from None


def candidates(cidr: str, port: str) -> Iterator[str]:
    """All addresses of a range, in the order in which a port tries them.

    The upper half comes first, so that fixed addresses, which people write low, are still free. The first address is
    the gateway's.
    """
    network = ip_network(cidr)
    first, last = int(network.network_address) + 2, int(network.broadcast_address) - 1
    if first > last:
        return
    middle = first + (last - first + 1) // 2
    start = middle + int.from_bytes(sha256(port.encode()).digest()[:8]) % (last - middle + 1)
    for number in chain(range(start, last + 1), range(middle, start), range(middle - 1, first - 1, -1)):
        yield str(type(network.network_address)(number))


def fixed(address: str, cidr: str | None, port: str) -> str:
    """An address asked for, in its usual spelling; refused outside the range, where the range is known."""
    try:
        value = ip_address(address)
    except ValueError as error:
        raise VimError(
            f"Port {port}: {address!r} is not an IP address: {error}.",
            VimFault.PERMANENT,
            cure="correct fixedAddresses of its connection point in extVirtualLinks.",
        ) from None
    if cidr is not None and value not in ip_network(cidr):
        raise VimError(
            f"Port {port}: the address {address} is outside the range {cidr} of its network.",
            VimFault.PERMANENT,
            cure=f"ask for an address in {cidr}.",
        )
    return str(value)


def mac_of(port: str) -> str:
    tail = sha256(f"mac {port}".encode()).hexdigest()
    return f"fa:16:3e:{tail[0:2]}:{tail[2:4]}:{tail[4:6]}"
