"""The objects of one cluster, as rows: found by name, by the node they are on, by who controls them."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec

from slipway.kube.interface import Object, Objects
from slipway.simulator.cluster.api.kinds import POD, Kind

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ObjectStore:
    def __init__(self, db: sqlite3.Connection, cluster_id: str) -> None:
        self._db = db
        self._cluster = cluster_id

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        sql = "SELECT body FROM object WHERE cluster_id = ? AND resource = ? AND namespace = ? AND name = ?"
        row = self._db.execute(sql, (self._cluster, kind.key, namespace, name)).fetchone()
        return _decode(row[0]) if row else None

    def all_of(self, kind: Kind, namespace: str | None = None) -> Objects:
        sql, values = "SELECT body FROM object WHERE cluster_id = ? AND resource = ?", [self._cluster, kind.key]
        if namespace is not None:
            sql += " AND namespace = ?"
            values.append(namespace)
        return [_decode(body) for (body,) in self._db.execute(sql, values).fetchall()]

    def pods_on(self, node: str) -> Objects:
        """Those on no node yet are on ''."""
        return self._where("node", node)

    def owned_by(self, uid: str) -> Objects:
        return self._where("owner", uid)

    def pods_by_node(self) -> dict[str, int]:
        sql = "SELECT node, count(*) FROM object WHERE cluster_id = ? AND node IS NOT NULL GROUP BY node"
        return dict(self._db.execute(sql, (self._cluster,)).fetchall())

    def add(self, kind: Kind, body: Object) -> Object:
        """As new: with a uid, and its first generation."""
        metadata = body.setdefault("metadata", {})
        metadata |= {"uid": str(uuid4()), "creationTimestamp": now(), "generation": 1}
        body |= {"apiVersion": kind.api_version, "kind": kind.name}
        return self.put(kind, body)

    def put(self, kind: Kind, body: Object) -> Object:
        metadata = body["metadata"]
        revision = self._db.execute(
            "UPDATE cluster SET revision = revision + 1 WHERE id = ? RETURNING revision", (self._cluster,)
        ).fetchone()[0]
        metadata["resourceVersion"] = str(revision)
        node = body.get("spec", {}).get("nodeName", "") if kind is POD else None
        owner = next((one["uid"] for one in metadata.get("ownerReferences", ()) if one.get("controller")), None)
        self._db.execute(
            "INSERT INTO object VALUES (?, ?, ?, ?, ?, ?, ?, NULL) ON CONFLICT (cluster_id, resource, namespace, name)"
            " DO UPDATE SET node = excluded.node, owner = excluded.owner, body = excluded.body",
            (*self._key(kind, body), node, owner, msgspec.json.encode(body)),
        )
        return body

    def applied(self, kind: Kind, body: Object) -> Object:
        """What was applied to it the last time."""
        sql = "SELECT applied FROM object WHERE cluster_id = ? AND resource = ? AND namespace = ? AND name = ?"
        row = self._db.execute(sql, self._key(kind, body)).fetchone()
        return _decode(row[0]) if row and row[0] else {}

    def note_applied(self, kind: Kind, body: Object, manifest: Object) -> None:
        sql = "UPDATE object SET applied = ? WHERE cluster_id = ? AND resource = ? AND namespace = ? AND name = ?"
        self._db.execute(sql, (msgspec.json.encode(manifest), *self._key(kind, body)))

    def remove(self, kind: Kind, body: Object) -> None:
        sql = "DELETE FROM object WHERE cluster_id = ? AND resource = ? AND namespace = ? AND name = ?"
        self._db.execute(sql, self._key(kind, body))

    def remove_namespace(self, namespace: str) -> None:
        self._db.execute("DELETE FROM object WHERE cluster_id = ? AND namespace = ?", (self._cluster, namespace))

    def _where(self, column: str, value: str) -> Objects:
        sql = f"SELECT body FROM object WHERE cluster_id = ? AND {column} = ?"  # noqa: S608 - two words of ours
        return [_decode(body) for (body,) in self._db.execute(sql, (self._cluster, value)).fetchall()]

    def _key(self, kind: Kind, body: Object) -> tuple[str, str, str, str]:
        metadata = body["metadata"]
        return self._cluster, kind.key, metadata.get("namespace", "") if kind.namespaced else "", metadata["name"]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
