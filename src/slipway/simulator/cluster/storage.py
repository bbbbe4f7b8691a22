"""Volumes and NFS on a simulated host. A disk is its file system's UUID, which outlives machines; nothing is in it.

A machine has no packages of NFS until they are installed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from uuid import uuid4

from slipway.cluster.nfs_config import GANESHA_CONF
from slipway.remote.output import Result
from slipway.simulator.cluster.host import SimulatedHost

FOREIGN = "foreign"  # what stands for a file system that is not ours
DONE = Result(0, b"", b"")
NEEDED = {"client": ("nfs-common",), "server": ("nfs-ganesha", "nfs-ganesha-vfs")}


def mount_volume(db: sqlite3.Connection, host: SimulatedHost, id_: str, path: str) -> Result:
    held = "SELECT 1 FROM volume WHERE resource_id = ? AND machine_id = ?"
    if db.execute(held, (id_, host.machine)).fetchone() is None:
        return Result(66, b"", f"no disk bears the id {id_}; there are: \n".encode())
    row = db.execute("SELECT uuid FROM disk WHERE resource_id = ?", (id_,)).fetchone()
    if row and row[0] == FOREIGN:
        return Result(65, b"", f"/dev/vdb ({id_}) holds something that is not ours (TYPE=xfs )\n".encode())
    if host.mounts.get(path, id_) != id_:
        return Result(73, b"", f"another disk is mounted at {path}\n".encode())
    uuid = row[0] if row else str(uuid4())
    db.execute("INSERT OR IGNORE INTO disk VALUES (?, ?)", (id_, uuid))
    host.mounts[path] = id_
    return Result(0, f"{uuid}\n".encode(), b"")


def facts(host: SimulatedHost, role: str) -> Result:
    first = ["ganesha"] if role == "server" else []
    missing = [name for name in NEEDED[role] if name not in host.packages]
    return Result(0, "".join(f"{line}\n" for line in (*first, *missing)).encode(), b"")


def apt_install(host: SimulatedHost, names: Sequence[str]) -> Result:
    host.packages += [name for name in names if name not in host.packages]
    return DONE


def nfs_server(host: SimulatedHost, kind: str, unit: str, changed: str, *places: str) -> Result:
    if GANESHA_CONF not in host.files or NEEDED["server"][0] not in host.packages:
        return Result(1, b"", f"Failed to enable unit: Unit file {unit} does not exist.\n".encode())
    for mount, directory in _pairs(places):
        if mount not in host.mounts:
            return Result(1, b"", f"no volume is mounted at {mount}\n".encode())
        if f'"{directory}"'.encode() not in host.files[GANESHA_CONF].content:
            return Result(1, b"", f"{directory} is not exported\n".encode())
    host.served = [directory for _, directory in _pairs(places)]
    return DONE


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip(words[::2], words[1::2], strict=True)
