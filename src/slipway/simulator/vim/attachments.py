"""What machines hold and hand on: attaching volumes, and taking volumes and ports off machines or out of the world.

`kind` is the table, "port" or "volume"; it never comes from outside.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import FoundVolume, Machine, Volume
from slipway.vim.machine_by_machine.arguments import Maker


def attach(
    db: sqlite3.Connection, volume: Volume, machine: Machine, instance_id: str, operation_id: str, resource_id: str
) -> None:
    """Make the volume unless it is there, and attach it unless another machine holds it."""
    row = db.execute("SELECT instance_id, machine_id FROM volume WHERE id = ?", (volume.id,)).fetchone()
    if row is None:
        made = (volume.id, instance_id, operation_id, resource_id, volume.name, machine.id, volume.size_bytes)
        db.execute("INSERT INTO volume VALUES (?, ?, ?, ?, ?, ?, ?)", made)
    elif row[0] != instance_id or row[1] not in (None, machine.id):
        raise VimError(
            f"Volume {volume.name} ({volume.id}) for {machine.name} is attached to another machine, {row[1]}.",
            VimFault.PERMANENT,
            cure="remove that machine first.",
        )
    elif row[1] is None:
        db.execute("UPDATE volume SET machine_id = ? WHERE id = ?", (machine.id, volume.id))


def release(db: sqlite3.Connection, kind: str, ids: Iterable[str], machine_id: str, instance_id: str) -> None:
    """Take ports or volumes off a machine and keep them."""
    sql = f"UPDATE {kind} SET machine_id = NULL WHERE id = ? AND machine_id = ? AND instance_id = ?"  # noqa: S608
    db.executemany(sql, [(id_, machine_id, instance_id) for id_ in ids])


def remove(
    db: sqlite3.Connection,
    kind: str,
    ids: Iterable[str],
    maker: Maker,
    *,
    held_by: str | None = None,
    own: bool = False,
) -> list[str]:
    """Remove those that no machine holds, or `held_by` does; with `own` the operation's only. Returns the gone."""
    sql = f"SELECT machine_id, operation_id FROM {kind} WHERE id = ? AND instance_id = ?"  # noqa: S608
    gone = []
    for id_ in ids:
        row = db.execute(sql, (id_, maker.instance_id)).fetchone()
        if row is not None:
            if row[0] not in (None, held_by) or (own and row[1] != maker.operation_id):
                continue
            db.execute(f"DELETE FROM {kind} WHERE id = ?", (id_,))  # noqa: S608
        gone.append(id_)
    return gone


def retain(db: sqlite3.Connection, ids: Iterable[str], instance_id: str) -> list[FoundVolume]:
    """Volumes stay, and are no instance's. Also those of a former attempt are told."""
    kept = []
    for id_ in ids:
        sql = "UPDATE volume SET instance_id = '', machine_id = NULL WHERE id = ? AND instance_id IN (?, '')"
        row = db.execute(f"{sql} RETURNING name, resource_id", (id_, instance_id)).fetchone()
        if row:
            kept.append(FoundVolume(id=id_, name=row[0], resource_id=row[1]))
    return kept


def holder(db: sqlite3.Connection, kind: str, id_: str) -> str | None:
    """The machine that holds a port or a volume."""
    row = db.execute(f"SELECT machine_id FROM {kind} WHERE id = ?", (id_,)).fetchone()  # noqa: S608
    return None if row is None else row[0]
