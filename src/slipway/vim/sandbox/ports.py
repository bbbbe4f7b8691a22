"""Ports: an address and a MAC, reserved by a record before a machine is plugged in, and kept while machines change."""

from __future__ import annotations

from collections.abc import Iterable

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import Machine, Port
from slipway.vim.address import candidates, fixed, mac_of
from slipway.vim.machine_by_machine.arguments import Maker
from slipway.vim.sandbox import labels, records
from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.labels import engine_name
from slipway.vim.sandbox.networks import Wire, ensure_outside, wire_of
from slipway.vim.sandbox.records import PORT, Record


def ensure_port(engine: Engine, port: Port, machine: Machine, maker: Maker) -> Record:
    """The port's record, made if it isn't there. Under the lock on ranges: two ports never choose one address."""
    there = records.read(engine, PORT, port.id)
    if there is not None:
        return records.checked(there, maker.instance_id)
    wire = _wire(engine, port, machine)
    more = {"network": wire.engine_name, "address": _address(engine, port, wire), "mac": port.mac or mac_of(port.id)}
    place = port.network or port.external_network or ""
    return records.written(engine, PORT, port.id, port.name, maker, place=place, **more)


def wires(engine: Engine, ports: Iterable[Record]) -> dict[str, Wire]:
    """The network of each port, by the port's id. One port of a machine on one network, as engines have it."""
    found: dict[str, Wire] = {}
    for port in ports:
        name = port.labels[labels.NETWORK]
        thing = engine.network(name)
        if thing is None:
            raise VimError(f"The network of port {port.name}, {name}, is gone.", VimFault.PERMANENT)
        if any(wire.engine_name == name for wire in found.values()):
            raise VimError(f"Port {port.name} is the second one of its machine on one network.", VimFault.PERMANENT,
                           cure="the sandbox plugs a machine into a network once; use two networks.")  # fmt: skip
        found[port.id] = wire_of(thing)
    return found


def _wire(engine: Engine, port: Port, machine: Machine) -> Wire:
    if port.external_network is not None:
        return ensure_outside(engine, port.external_network)
    thing = engine.network(engine_name("network", port.network)) if port.network is not None else None
    if thing is None:
        raise VimError(
            f"Port {port.name} of {machine.name} wants network {port.network}, which is not there.", VimFault.PERMANENT
        )
    return wire_of(thing)


def _address(engine: Engine, port: Port, wire: Wire) -> str:
    taken = _taken(engine, wire)
    if port.address is not None:
        asked = fixed(port.address, str(wire.cidr), port.name)
        if asked in taken:
            raise VimError(
                f"The address {asked} for port {port.name} is taken.", VimFault.PERMANENT, cure="ask for another."
            )
        return asked
    for address in candidates(str(wire.cidr), port.id):
        if address not in taken:
            return address
    raise VimError(
        f"The network of port {port.name} has no free address left.", VimFault.QUOTA, cure="give it a wider range."
    )


def _taken(engine: Engine, wire: Wire) -> set[str]:
    """By our ports, by other people's containers on a network of theirs, and by the bridge itself."""
    ours = engine.volumes({labels.KIND: PORT, labels.NETWORK: wire.engine_name})
    taken = {labels.of(thing)[labels.ADDRESS] for thing in ours}
    taken |= {str(wire.cidr[0]), str(wire.cidr[1]), str(wire.cidr[-1])}
    thing = engine.network(wire.engine_name) or {}
    others = ((one or {}).get("IPv4Address") or "" for one in (thing.get("Containers") or {}).values())
    return taken | ({address.partition("/")[0] for address in others if address} if not wire.isolated else set())
