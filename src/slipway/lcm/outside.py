"""Changes of the networks outside: what is refused of a request, and which ports it makes anew.

A port's id always means the same network and the same address asked for. So a port that is to be elsewhere is another
port, in the place of the one that goes; all others stay as they are.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from slipway.model.connectivity import Links
from slipway.model.errors import BadRequest
from slipway.model.instance import CpConfig, IpOverEthernet
from slipway.model.machine import FoundMachine, FoundPort, Machine, Port, Wanted

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)
VERSIONS = {"IPV4": 4, "IPV6": 6}
T = TypeVar("T")


def check_change(now: Links, asked: Links) -> None:
    """BadRequest when a link can't be meant as it is said."""
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


def ports_of(machines: Iterable[FoundMachine | None]) -> dict[str, FoundPort]:
    return {port.id: port for machine in machines if machine for port in machine.ports}


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


def _once(value: T, seen: set[T], what: str) -> None:
    if value in seen:
        raise BadRequest(f"{what} is there twice; name it once.")
    seen.add(value)


def _checked(config: CpConfig, path: str) -> Iterator[str]:
    """The addresses asked for."""
    for data in config.cp_protocol_data:
        if ethernet := data.ip_over_ethernet:
            if ethernet.mac_address is not None and not MAC.fullmatch(ethernet.mac_address):
                raise BadRequest(f"{path}.macAddress: {ethernet.mac_address!r} is none; write it as 02:00:00:00:00:01.")
            yield from _addresses(ethernet, path)


def _addresses(ethernet: IpOverEthernet, path: str) -> Iterator[str]:
    for ips in ethernet.ip_addresses:
        if ips.type not in VERSIONS:
            raise BadRequest(f"{path}.ipAddresses.type: IPV4 or IPV6 is wanted, not {ips.type!r}.")
        for text in ips.fixed_addresses:
            try:
                address = ipaddress.ip_address(text)
            except ValueError:
                raise BadRequest(f"{path}.fixedAddresses: {text!r} is no address; write one like 10.0.0.5.") from None
            if address.version != VERSIONS[ips.type]:
                raise BadRequest(f"{path}.fixedAddresses: {text!r} is not of the type {ips.type}; correct one of them.")
            yield str(address)
