"""The tables of hosts and clusters, in the file of the simulated VIM that has the machines.

A machine that goes takes its host with it, whichever process removes it: triggers see to that. They leave a note of the
node whose kubelet is silent from then on, which the cluster's next call reads.
"""

from __future__ import annotations

import sqlite3

# host.vip: the virtual address that its balancer answers at. object.node: '' is a pod that has none yet.
TABLES = (
    "CREATE TABLE IF NOT EXISTS host (machine_id TEXT PRIMARY KEY, cluster_id TEXT, node TEXT, vip TEXT,"
    " body BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS cluster (id TEXT PRIMARY KEY, revision INTEGER NOT NULL, body BLOB NOT NULL)"
    " WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS object (cluster_id TEXT NOT NULL, resource TEXT NOT NULL, namespace TEXT NOT NULL,"
    " name TEXT NOT NULL, node TEXT, owner TEXT, body BLOB NOT NULL, applied BLOB,"
    " PRIMARY KEY (cluster_id, resource, namespace, name)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS silent (cluster_id TEXT NOT NULL, node TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS host_node ON host (cluster_id, node)",
    "CREATE INDEX IF NOT EXISTS host_vip ON host (vip)",
    "CREATE INDEX IF NOT EXISTS object_node ON object (cluster_id, node)",
    "CREATE INDEX IF NOT EXISTS object_owner ON object (cluster_id, owner)",
    "CREATE INDEX IF NOT EXISTS silent_cluster ON silent (cluster_id)",
    """
    CREATE TRIGGER IF NOT EXISTS machine_removed AFTER DELETE ON machine BEGIN
        DELETE FROM host WHERE machine_id = OLD.id;
    END
    """,
    """
    CREATE TRIGGER IF NOT EXISTS machine_broken AFTER UPDATE OF errors_left ON machine WHEN NEW.errors_left = -1 BEGIN
        INSERT INTO silent SELECT cluster_id, node FROM host
            WHERE machine_id = NEW.id AND cluster_id IS NOT NULL AND node IS NOT NULL;
    END
    """,
    # Built anew: an empty disk.
    """
    CREATE TRIGGER IF NOT EXISTS machine_rebuilt AFTER UPDATE OF errors_left ON machine
        WHEN OLD.errors_left = -1 AND NEW.errors_left = 0 BEGIN
        DELETE FROM host WHERE machine_id = NEW.id;
    END
    """,
    # With the last of its hosts nobody can reach a cluster any more.
    """
    CREATE TRIGGER IF NOT EXISTS host_removed AFTER DELETE ON host WHEN OLD.cluster_id IS NOT NULL BEGIN
        INSERT INTO silent SELECT OLD.cluster_id, OLD.node WHERE OLD.node IS NOT NULL;
        DELETE FROM cluster WHERE id = OLD.cluster_id
            AND NOT EXISTS (SELECT 1 FROM host WHERE cluster_id = OLD.cluster_id);
    END
    """,
    """
    CREATE TRIGGER IF NOT EXISTS cluster_removed AFTER DELETE ON cluster BEGIN
        DELETE FROM object WHERE cluster_id = OLD.id;
        DELETE FROM silent WHERE cluster_id = OLD.id;
    END
    """,
)


def ensure_tables(db: sqlite3.Connection) -> None:
    for statement in TABLES:
        db.execute(statement)
