"""Machines as records: looking, making and removing inside one transaction.

Everything is made once for its id, and remembers the operation that made it, so that an undo removes its own work and
nothing else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TypeVar
from uuid import uuid4

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import Address, Found, FoundMachine, FoundNetwork, FoundPort, FoundVolume, Machine
from slipway.simulator.vim.attachments import attach
from slipway.simulator.vim.networks import EXTERNAL, plug
from slipway.vim.fault_rules import Rule, RuleKind
from slipway.vim.machine_by_machine.arguments import Maker

_MACHINE = "SELECT id, name, vdu, resource_id, errors_left, zone, image, flavour FROM machine"
_PORT = "SELECT machine_id, id, name, resource_id, address, mac, wire FROM port"
_VOLUME = "SELECT machine_id, id, name, resource_id FROM volume"
Row = tuple[str, str, str, str, int, str | None, str | None, str | None]
T = TypeVar("T")


def find(db: sqlite3.Connection, instance_id: str, rules: Sequence[Rule] = ()) -> Found:
    """All records of an instance. This is a look: a machine that pretends to be in ERROR comes nearer to ACTIVE."""
    mine = (instance_id,)
    machines = db.execute(f"{_MACHINE} WHERE instance_id = ? ORDER BY name, id", mine).fetchall()
    ports = [(row[0], _port(row)) for row in db.execute(f"{_PORT} WHERE instance_id = ? ORDER BY id", mine)]
    volumes = [(row[0], _volume(row)) for row in db.execute(f"{_VOLUME} WHERE instance_id = ? ORDER BY id", mine)]
    networks = db.execute("SELECT id, name, resource_id FROM network WHERE instance_id = ? ORDER BY name, id", mine)
    held, kept = _by_holder(ports), _by_holder(volumes)
    if any(row[4] > 0 for row in machines):
        db.execute("UPDATE machine SET errors_left = errors_left - 1 WHERE instance_id = ? AND errors_left > 0", mine)
    return Found(
        networks=tuple(FoundNetwork(id=id_, name=name, resource_id=resource) for id_, name, resource in networks),
        machines=tuple(_machine(row, held.get(row[0], ()), kept.get(row[0], ())) for row in _listed(machines, rules)),
        ports=tuple(port for _, port in ports),
        volumes=tuple(volume for _, volume in volumes),
    )


def inventory(db: sqlite3.Connection) -> dict[str, Found]:
    """All records of all instances, without looking at any machine."""
    owners = (
        "SELECT instance_id FROM network UNION SELECT instance_id FROM machine"
        " UNION SELECT instance_id FROM port UNION SELECT instance_id FROM volume WHERE instance_id != ''"
    )
    looks = db.execute("SELECT id, errors_left FROM machine WHERE errors_left > 0").fetchall()
    there = {instance_id: find(db, instance_id) for (instance_id,) in db.execute(owners).fetchall()}
    db.executemany("UPDATE machine SET errors_left = ?2 WHERE id = ?1", looks)
    return there


def look(db: sqlite3.Connection, machine_id: str, instance_id: str) -> FoundMachine | None:
    """One machine of an instance by its id, with what it holds."""
    row = db.execute(f"{_MACHINE} WHERE id = ? AND instance_id = ?", (machine_id, instance_id)).fetchone()
    if row is None:
        return None
    if row[4] > 0:
        db.execute("UPDATE machine SET errors_left = errors_left - 1 WHERE id = ?", (machine_id,))
    ports = db.execute(f"{_PORT} WHERE machine_id = ? ORDER BY id", (machine_id,))
    volumes = db.execute(f"{_VOLUME} WHERE machine_id = ? ORDER BY id", (machine_id,))
    return _machine(row, [_port(held) for held in ports], [_volume(held) for held in volumes])


def make_machine(db: sqlite3.Connection, machine: Machine, maker: Maker, rules: Sequence[Rule] = ()) -> FoundMachine:
    """Its volumes and ports, then the machine; each only where it isn't there yet."""
    owner = db.execute("SELECT instance_id FROM machine WHERE id = ?", (machine.id,)).fetchone()
    if owner is None:
        errors = max((rule.looks for rule in rules if rule.kind is RuleKind.ERROR_THEN_ACTIVE), default=0)
        kind = (machine.name, machine.vdu, machine.zone, errors, machine.image, machine.flavour)
        db.execute("INSERT INTO machine VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (machine.id, *_by(maker), *kind))
    elif owner[0] != maker.instance_id:
        raise VimError(f"Machine {machine.id} belongs to another instance, {owner[0]}.", VimFault.PERMANENT)
    for volume in machine.volumes:
        attach(db, volume, machine, *_by(maker))
    for port in machine.ports:
        plug(db, port, machine, *_by(maker))
    found = look(db, machine.id, maker.instance_id)
    if found is None:
        raise VimError(f"Machine {machine.name} vanished while it was made.", VimFault.TEMPORARY)
    return found


def rebuild_machine(db: sqlite3.Connection, machine_id: str, instance_id: str) -> None:
    """Build a broken machine anew in its place."""
    db.execute("UPDATE machine SET errors_left = 0 WHERE id = ? AND instance_id = ?", (machine_id, instance_id))


def break_machine(db: sqlite3.Connection, machine_id: str) -> bool:
    """Put it in ERROR until it is rebuilt; whether there is such a machine."""
    return db.execute("UPDATE machine SET errors_left = -1 WHERE id = ?", (machine_id,)).rowcount == 1


def remove_machine(db: sqlite3.Connection, machine_id: str, maker: Maker, *, own: bool = False) -> bool:
    """The machine goes; what it held stays, free for another. Whether it is gone; `own`: only the operation's."""
    sql = "SELECT operation_id FROM machine WHERE id = ? AND instance_id = ?"
    row = db.execute(sql, (machine_id, maker.instance_id)).fetchone()
    if row is not None:
        if own and row[0] != maker.operation_id:
            return False
        lose_machine(db, machine_id)
    return True


def lose_machine(db: sqlite3.Connection, machine_id: str) -> bool:
    """Whoever's it is; whether there was such a machine."""
    db.execute("UPDATE port SET machine_id = NULL WHERE machine_id = ?", (machine_id,))
    db.execute("UPDATE volume SET machine_id = NULL WHERE machine_id = ?", (machine_id,))
    return db.execute("DELETE FROM machine WHERE id = ?", (machine_id,)).rowcount == 1


def _by(maker: Maker) -> tuple[str, str, str]:
    return maker.instance_id, maker.operation_id, str(uuid4())


def _listed(machines: list[Row], rules: Sequence[Rule]) -> list[Row]:
    """The machines that a list shows: not all of them when a rule makes it partial."""
    for rule in rules:
        if rule.kind is RuleKind.PARTIAL_LIST:
            every_other = machines[1::2]
            picked = [row for row in machines if not rule.picks(row[1], row[2])]
            machines = every_other if rule.machine is None else picked
    return machines


def _by_holder(held: Iterable[tuple[str | None, T]]) -> dict[str | None, list[T]]:
    """What each machine holds, found at once: an instance may have hundreds of them."""
    found: dict[str | None, list[T]] = {}
    for holder_id, one in held:
        found.setdefault(holder_id, []).append(one)
    return found


def _machine(row: Row, ports: Sequence[FoundPort], volumes: Sequence[FoundVolume]) -> FoundMachine:
    id_, name, vdu, resource, errors_left, zone, image, flavour = row
    return FoundMachine(
        id=id_,
        name=name,
        vdu=vdu,
        resource_id=resource,
        ready=errors_left == 0,
        ports=tuple(ports),
        volumes=tuple(volumes),
        zone=zone,
        image=image,
        flavour=flavour,
    )


def _port(row: tuple[str | None, str, str, str, str, str, str]) -> FoundPort:
    network = row[6].removeprefix(EXTERNAL)
    return FoundPort(
        id=row[1], name=row[2], resource_id=row[3], addresses=(Address(ip=row[4]),), mac=row[5], network=network
    )


def _volume(row: tuple[str | None, str, str, str]) -> FoundVolume:
    return FoundVolume(id=row[1], name=row[2], resource_id=row[3])
