"""Networks and ports as records: which addresses are taken, and who is plugged in where."""

from __future__ import annotations

import sqlite3

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import FoundNetwork, Machine, Network, Port
from slipway.vim.address import candidates, checked_cidr, fixed, mac_of, pseudo_cidr

EXTERNAL = "external:"


def make_network(
    db: sqlite3.Connection, network: Network, instance_id: str, operation_id: str, resource_id: str
) -> FoundNetwork:
    """Once for its id."""
    cidr = checked_cidr(network.cidr or pseudo_cidr(network.id), network.name)
    db.execute(
        "INSERT INTO network VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (network.id, instance_id, operation_id, resource_id, network.name, cidr),
    )
    sql = "SELECT id, name, resource_id FROM network WHERE id = ? AND instance_id = ?"
    row = db.execute(sql, (network.id, instance_id)).fetchone()
    if row is None:
        raise VimError(f"Network {network.id} belongs to another instance.", VimFault.PERMANENT)
    return FoundNetwork(id=row[0], name=row[1], resource_id=row[2])


def remove_network(db: sqlite3.Connection, network_id: str, instance_id: str, made_by: str | None = None) -> bool:
    """Whether it is gone now. `made_by`: only when that operation made it."""
    sql = "SELECT operation_id FROM network WHERE id = ? AND instance_id = ?"
    row = db.execute(sql, (network_id, instance_id)).fetchone()
    if row is None:
        return True
    if made_by is not None and row[0] != made_by:
        return False
    ports = db.execute("SELECT count(*) FROM port WHERE wire = ?", (network_id,)).fetchone()[0]
    if ports:
        raise VimError(f"Network {network_id} is in use by {ports} ports.", VimFault.TEMPORARY)
    db.execute("DELETE FROM network WHERE id = ?", (network_id,))
    return True


def plug(
    db: sqlite3.Connection, port: Port, machine: Machine, instance_id: str, operation_id: str, resource_id: str
) -> None:
    """Make the port unless it is there, and plug it into the machine unless another holds it."""
    row = db.execute("SELECT instance_id, machine_id FROM port WHERE id = ?", (port.id,)).fetchone()
    if row is None:
        wire, cidr = _wire(db, port, machine, instance_id)
        address = _address(db, port, wire, cidr)
        made = (
            instance_id,
            operation_id,
            resource_id,
            port.name,
            machine.id,
            wire,
            address,
            port.mac or mac_of(port.id),
        )
        db.execute("INSERT INTO port VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (port.id, *made))
    elif row[0] != instance_id or row[1] not in (None, machine.id):
        raise VimError(
            f"Port {port.name} ({port.id}) for {machine.name} is plugged into another machine, {row[1]}.",
            VimFault.PERMANENT,
            cure="remove that machine first.",
        )
    elif row[1] is None:
        db.execute("UPDATE port SET machine_id = ? WHERE id = ?", (machine.id, port.id))


def _wire(db: sqlite3.Connection, port: Port, machine: Machine, instance_id: str) -> tuple[str, str | None]:
    """What the port is on, and its range; None when only the world outside knows it."""
    if port.external_network is not None:
        return EXTERNAL + port.external_network, None
    sql = "SELECT cidr FROM network WHERE id = ? AND instance_id = ?"
    row = db.execute(sql, (port.network, instance_id)).fetchone()
    if row is None or port.network is None:
        raise VimError(
            f"Port {port.name} of {machine.name} wants network {port.network}, which is not there.", VimFault.PERMANENT
        )
    return port.network, row[0]


def _address(db: sqlite3.Connection, port: Port, wire: str, cidr: str | None) -> str:
    if port.address is not None:
        asked = fixed(port.address, cidr, port.name)
        if _taken(db, wire, asked):
            raise VimError(
                f"The address {asked} for port {port.name} is taken.", VimFault.PERMANENT, cure="ask for another."
            )
        return asked
    for address in candidates(cidr or pseudo_cidr(wire), port.id):
        if not _taken(db, wire, address):
            return address
    raise VimError(
        f"The network of port {port.name} has no free address left.", VimFault.QUOTA, cure="give it a wider range."
    )


def _taken(db: sqlite3.Connection, wire: str, address: str) -> bool:
    return db.execute("SELECT 1 FROM port WHERE wire = ? AND address = ?", (wire, address)).fetchone() is not None
