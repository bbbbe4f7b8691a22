"""A host: what is on a machine's disk and what runs on it."""

from __future__ import annotations

import sqlite3

import msgspec

ADMIN = "/etc/kubernetes/admin.conf"
KUBELET = "/etc/kubernetes/kubelet.conf"
MANIFESTS = "/etc/kubernetes/manifests"
VERSIONS = ("1.33.13", "1.34.4")  # of Kubernetes, that the machine's image has


class File(msgspec.Struct, array_like=True):
    content: bytes
    mode: int


class SimulatedJob(msgspec.Struct, array_like=True):
    """One that has ended."""

    command: str
    exit_code: int
    stdout: bytes
    stderr: bytes


class SimulatedHost(msgspec.Struct):
    """`cluster` and `node` are its kubelet's, if that runs. `vip` is held by its balancer, if that runs."""

    machine: str
    version: str = VERSIONS[-1]
    prepared: bool = False
    cluster: str | None = None
    node: str | None = None
    vip: str | None = None
    serves: int | None = None  # the port of the registry that runs on it
    files: dict[str, File] = {}
    jobs: dict[str, SimulatedJob] = {}
    packages: list[str] = []
    mounts: dict[str, str] = {}  # volumes by the directories that they are mounted at
    served: list[str] = []  # directories, by NFS

    @property
    def is_master(self) -> bool:
        return self.cluster is not None and f"{MANIFESTS}/kube-apiserver.yaml" in self.files

    def write(self, path: str, content: str | bytes, mode: int = 0o600) -> bool:
        """Whether that changed anything but the mode."""
        reconcile_after_write = content.encode() if isinstance(content, str) else content
        before = self.files.get(path)
        self.files[path] = File(reconcile_after_write, mode)
        return before is None or before.content != reconcile_after_write


def find_host(db: sqlite3.Connection, machine_id: str) -> SimulatedHost:
    """What was on it, or an empty disk."""
    row = db.execute("SELECT unsealed(body) FROM host WHERE machine_id = ?", (machine_id,)).fetchone()
    return msgspec.msgpack.decode(row[0], type=SimulatedHost) if row else SimulatedHost(machine_id)


def save_host(db: sqlite3.Connection, host: SimulatedHost) -> None:
    db.execute(
        "INSERT INTO host VALUES (?, ?, ?, ?, sealed(?)) ON CONFLICT (machine_id) DO UPDATE SET"
        " cluster_id = excluded.cluster_id, node = excluded.node, vip = excluded.vip, body = excluded.body",
        (host.machine, host.cluster, host.node, host.vip, msgspec.msgpack.encode(host)),
    )


def is_running(db: sqlite3.Connection, machine_id: str) -> bool:
    """It is there, and not broken. One that only says it was in ERROR answers like any other."""
    row = db.execute("SELECT errors_left FROM machine WHERE id = ?", (machine_id,)).fetchone()
    return row is not None and row[0] >= 0


def kubelet_of(db: sqlite3.Connection, cluster_id: str, node: str) -> str | None:
    """The running machine whose kubelet speaks for the node."""
    row = db.execute(
        "SELECT machine.id FROM host JOIN machine ON machine.id = host.machine_id"
        " WHERE host.cluster_id = ? AND host.node = ? AND machine.errors_left >= 0",
        (cluster_id, node),
    ).fetchone()
    return None if row is None else str(row[0])
