"""Calls to simulated hosts and to the API on them: counted, and subject to the fault rules of the machines' VIM.

Hosts and clusters are tables in the file of the simulated VIM that has the machines. A machine that goes takes its host
with it, whichever process removes it: triggers see to that. They note the node whose kubelet stopped, and the cluster's
next call reads it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import TypeVar

from slipway.model.action import VimConnection
from slipway.simulator.vim.calls import Calls, Explain, Work
from slipway.simulator.vim.endpoint import file_of
from slipway.vim.fault_rules import FaultTarget

T = TypeVar("T")
# host.vip: the virtual address that its balancer answers at. object.node: '' is a pod that has none yet.
TABLES = (
    "CREATE TABLE IF NOT EXISTS host (machine_id TEXT PRIMARY KEY, cluster_id TEXT, node TEXT, vip TEXT,"
    " body BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS cluster (id TEXT PRIMARY KEY, revision INTEGER NOT NULL, body BLOB NOT NULL)"
    " WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS object (cluster_id TEXT NOT NULL, resource TEXT NOT NULL, namespace TEXT NOT NULL,"
    " name TEXT NOT NULL, node TEXT, owner TEXT, body BLOB NOT NULL, applied BLOB,"
    " PRIMARY KEY (cluster_id, resource, namespace, name)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS volume_content (resource_id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS silent (cluster_id TEXT NOT NULL, node TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS disk (resource_id TEXT PRIMARY KEY, uuid TEXT NOT NULL) WITHOUT ROWID",
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
    CREATE TRIGGER IF NOT EXISTS volume_removed AFTER DELETE ON volume BEGIN
        DELETE FROM disk WHERE resource_id = OLD.resource_id;
    END
    """,
    """
    CREATE TRIGGER IF NOT EXISTS machine_broken AFTER UPDATE OF errors_left ON machine WHEN NEW.errors_left = -1 BEGIN
        INSERT INTO silent SELECT cluster_id, node FROM host
            WHERE machine_id = NEW.id AND cluster_id IS NOT NULL AND node IS NOT NULL;
    END
    """,
    """
    CREATE TRIGGER IF NOT EXISTS volume_removed AFTER DELETE ON volume BEGIN
        DELETE FROM volume_content WHERE resource_id = OLD.resource_id;
    END
    """,
    # Built anew: an empty disk.
    """
    CREATE TRIGGER IF NOT EXISTS machine_rebuilt AFTER UPDATE OF errors_left ON machine
        WHEN OLD.errors_left = -1 AND NEW.errors_left = 0 BEGIN
        DELETE FROM host WHERE machine_id = NEW.id;
    END
    """,
    # Without any host a cluster can't be reached any more.
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


class Simulation:
    """All simulated VIMs in a directory, with what runs on their machines."""

    def __init__(self, directory: Path) -> None:
        self._calls = Calls(directory)
        self._known: set[Path] = set()

    async def call(
        self, connection: VimConnection, name: str, work: Work[T], target: FaultTarget, asked: str, explain: Explain
    ) -> T:
        await asyncio.sleep(0)  # as a real call would, it lets others go on
        self._prepare(connection)
        return await self._calls.call(connection, name, work, target, asked=asked, explain=explain)

    def look(self, connection: VimConnection, work: Work[T]) -> T:
        """At the records themselves: no call, no rules."""
        self._prepare(connection)
        with self._calls.behind(connection) as db:
            return work(db, ())

    def close(self) -> None:
        self._calls.close()

    def _prepare(self, connection: VimConnection) -> None:
        if (vim := file_of(connection, self._calls.directory)) not in self._known:
            with self._calls.behind(connection) as db:
                ensure_tables(db)
            self._known.add(vim)


def ensure_tables(db: sqlite3.Connection) -> None:
    for statement in TABLES:
        db.execute(statement)
