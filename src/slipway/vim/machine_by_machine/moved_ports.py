"""Ports that move to other networks: which they are, and the machines as they were with them.

A port's id always means the same network and the same address asked for. So a port that is to be elsewhere is another
port, in the place of the one that goes; all others stay as they are.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from msgspec.structs import replace

from slipway.model.machine import FoundMachine, FoundPort, Machine, Port, Wanted


def moved_ports(there: dict[str, FoundPort], before: Wanted, after: Wanted) -> set[str]:
    """Of the recorded ports those that must be other ones. `before` and `after` have them under the same ids."""
    old = {port.id: port for machine in before.machines for port in machine.ports}
    new = (port for machine in after.machines for port in machine.ports)
    return {port.id for port in new if port.id in there and _moves(there[port.id], old[port.id], port)}


def as_they_were(there: dict[str, FoundPort], before: Wanted, moved: set[str]) -> tuple[Machine, ...]:
    """The machines of ports that go, with all that is needed to make those ports again."""
    own = {network.id for network in before.networks}
    return tuple(
        replace(machine, ports=tuple(_as_it_was(port, there.get(port.id), own) for port in machine.ports))
        for machine in before.machines
        if any(port.id in moved for port in machine.ports)
    )


def ports_of(machines: Iterable[FoundMachine]) -> dict[str, FoundPort]:
    return {port.id: port for machine in machines for port in machine.ports}


def _as_it_was(port: Port, there: FoundPort | None, own: set[str]) -> Port:
    if there is None:
        return port
    made = replace(port, address=there.address, mac=there.mac)
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
    return _is_other(new.address, old.address, there.address) or _is_other(new.mac, old.mac, there.mac)


def _is_other(asked: str | None, before: str | None, there: str | None) -> bool:
    if asked is None:
        return before is not None
    return there is None or _plain(asked) != _plain(there)


def _plain(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text.lower()
