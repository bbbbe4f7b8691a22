"""A cluster as its masters keep it: its CA, etcd's members, and the key to certificates that wait for a new master."""

from __future__ import annotations

import sqlite3
import time

import msgspec

from slipway.cluster.naming import ETCD_CLIENT_PORT, ETCD_PEER_PORT, host_and_port
from slipway.cluster.quorum import quorum
from slipway.cluster.simulated.host import stands


class Member(msgspec.Struct):
    id: str
    name: str
    machine: str
    address: str

    @property
    def client(self) -> str:
        return f"https://{host_and_port(self.address, ETCD_CLIENT_PORT)}"

    @property
    def peer(self) -> str:
        return f"https://{host_and_port(self.address, ETCD_PEER_PORT)}"


class Upload(msgspec.Struct):
    """Certificates in the cluster: the hash of their key, and when they go."""

    key: str
    until: float


class Cluster(msgspec.Struct):
    """`endpoint` is host:port, `version` v1.34.4."""

    id: str
    endpoint: str
    version: str
    ca: str
    members: list[Member] = []
    upload: Upload | None = None

    def member_on(self, machine_id: str) -> Member | None:
        return next((member for member in self.members if member.machine == machine_id), None)

    def uploaded(self) -> Upload | None:
        return self.upload if self.upload and self.upload.until > time.time() else None


def find_cluster(db: sqlite3.Connection, cluster_id: str | None) -> Cluster | None:
    row = db.execute("SELECT body FROM cluster WHERE id = ?", (cluster_id,)).fetchone()
    return msgspec.msgpack.decode(row[0], type=Cluster) if row else None


def save_cluster(db: sqlite3.Connection, cluster: Cluster) -> None:
    db.execute(
        "INSERT INTO cluster VALUES (?, 0, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body",
        (cluster.id, msgspec.msgpack.encode(cluster)),
    )


def forget_deserted(db: sqlite3.Connection, cluster: Cluster) -> None:
    """One that no host is in."""
    if db.execute("SELECT 1 FROM host WHERE cluster_id = ? LIMIT 1", (cluster.id,)).fetchone() is None:
        db.execute("DELETE FROM cluster WHERE id = ?", (cluster.id,))


def answering(db: sqlite3.Connection, cluster: Cluster) -> list[Member]:
    """Members whose machines stand."""
    return [member for member in cluster.members if stands(db, member.machine)]


def has_quorum(db: sqlite3.Connection, cluster: Cluster) -> bool:
    return len(answering(db, cluster)) >= quorum(len(cluster.members))
