"""Ports that move to other networks: which they are, and machines as they were with their ports.

A port's id always means the same network and the same address asked for. So a port that is to be elsewhere is another
port, in the place of the one that goes; all others stay as they are.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from slipway.model.machine import Address, FoundMachine, FoundPort, Machine, Port, Wanted

Addresses = tuple[Address, ...]


def moved_ports(there: dict[str, FoundPort], before: Wanted, after: Wanted) -> set[str]:
    """Of the recorded ports those that must be other ones. `before` and `after` have them under the same ids."""
    old = {port.id: port for machine in before.machines for port in machine.ports}
    new = (port for machine in after.machines for port in machine.ports)
    return {port.id for port in new if port.id in there and _moves(there[port.id], old[port.id], port)}


def as_they_were(there: dict[str, FoundPort], before: Wanted, machines: Collection[str]) -> tuple[Machine, ...]:
    """Those machines with all that is needed to make their ports again."""
    own = {network.id for network in before.networks}
    return tuple(
        replace(machine, ports=tuple(_as_it_was(port, there.get(port.id), own) for port in machine.ports))
        for machine in before.machines
        if machine.id in machines
    )


def ports_of(machines: Iterable[FoundMachine]) -> dict[str, FoundPort]:
    return {port.id: port for machine in machines for port in machine.ports}


def _as_it_was(port: Port, there: FoundPort | None, own: set[str]) -> Port:
    if there is None:
        return port
    made = replace(port, addresses=there.addresses, mac=there.mac)
    if there.network is None:
        return made
    inside = there.network in own
    return replace(made, network=there.network if inside else None, external_network=None if inside else there.network)


def _moves(there: FoundPort, old: Port, new: Port) -> bool:
    """The record of the port itself counts more than that of links: an operation may have ended half-way."""
    if there.network is None:
        if (new.network, new.external_network) != (old.network, old.external_network):
            return True
    elif there.network != (new.network or new.external_network):
        return True
    return _other_mac(new.mac, old.mac, there.mac) or _other_addresses(new.addresses, old.addresses, there.addresses)


def _other_mac(asked: str | None, before: str | None, there: str | None) -> bool:
    if asked is None:
        return before is not None
    return there is None or asked.lower() != there.lower()


def _other_addresses(asked: Addresses, before: Addresses, there: Addresses) -> bool:
    """Whether it has not all that is asked for, or less is asked for than before. Others on it are the VIM's choice."""
    if len(asked) < len(before):
        return True
    left = list(there)
    for one in sorted(asked, key=lambda address: address.ip is None):
        held = next((address for address in left if _fits(one, address)), None)
        if held is None:
            return True
        left.remove(held)
    return False


def _fits(asked: Address, there: Address) -> bool:
    if asked.ip is not None:
        return there.ip is not None and _plain(asked.ip) == _plain(there.ip)
    return asked.subnet is None or there.subnet in (None, asked.subnet)


def _plain(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text
