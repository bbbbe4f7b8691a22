"""A cluster as its masters keep it: its CA, etcd's members, and the key to certificates that wait for a new master."""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from datetime import UTC, datetime, timedelta

import msgspec

from slipway.cluster.naming import ETCD_CLIENT_PORT, ETCD_PEER_PORT, host_and_port
from slipway.cluster.quorum import quorum
from slipway.simulator.cluster.host import is_running

LIFE = timedelta(days=3650)


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


def delete_if_unused(db: sqlite3.Connection, cluster: Cluster) -> None:
    """One that no host is in."""
    if db.execute("SELECT 1 FROM host WHERE cluster_id = ? LIMIT 1", (cluster.id,)).fetchone() is None:
        db.execute("DELETE FROM cluster WHERE id = ?", (cluster.id,))


def answering(db: sqlite3.Connection, cluster: Cluster) -> list[Member]:
    """Members whose machines stand."""
    return [member for member in cluster.members if is_running(db, member.machine)]


def has_quorum(db: sqlite3.Connection, cluster: Cluster) -> bool:
    return len(answering(db, cluster)) >= quorum(len(cluster.members))


def new_ca() -> str:
    """PEM. Its key is never needed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM).decode()


def kubeconfig(endpoint: str, ca: str, user: str | None = None) -> str:
    """JSON, which is YAML. The user's token opens nothing: who asks is not checked."""
    cluster = {"server": f"https://{endpoint}", "certificate-authority-data": base64.b64encode(ca.encode()).decode()}
    config: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes" if user else "", "cluster": cluster}],
    }
    if user:
        context = {"cluster": "kubernetes", "user": user}
        config |= {
            "contexts": [{"name": user, "context": context}],
            "current-context": user,
            "users": [{"name": user, "user": {"token": "simulated"}}],
        }
    return json.dumps(config)
