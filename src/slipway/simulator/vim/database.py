"""The file behind a simulated VIM: its tables, and short transactions that several processes may make at once.

Write-ahead logging with synchronous=NORMAL commits without a flush to disk, so that a call takes well below a
millisecond and may run in the event loop. While a transaction is open, nothing but this file is waited for.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, get_ident

from slipway.model.errors import VimError, VimFault
from slipway.simulator.vim.encryption import add_functions

BUSY_SECONDS = 5.0
BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

# Held while a file is opened or closed: SQLite 3.40 crashed when several threads switched one new file to WAL at once.
_opening = Lock()

# machine.errors_left: 0 is ACTIVE; n is ERROR for n more looks; -1 is ERROR until it is rebuilt.
# port.wire: the id of an internal network, or "external:" and the id of one that exists.
MOST_OPEN = 32  # files, for each thread
SCHEMA = """
CREATE TABLE IF NOT EXISTS network (
    id TEXT PRIMARY KEY, instance_id TEXT NOT NULL, operation_id TEXT NOT NULL, resource_id TEXT NOT NULL,
    name TEXT NOT NULL, cidr TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS machine (
    id TEXT PRIMARY KEY, instance_id TEXT NOT NULL, operation_id TEXT NOT NULL, resource_id TEXT NOT NULL,
    name TEXT NOT NULL, vdu TEXT NOT NULL, zone TEXT, errors_left INTEGER NOT NULL,
    image TEXT, flavour TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS port (
    id TEXT PRIMARY KEY, instance_id TEXT NOT NULL, operation_id TEXT NOT NULL, resource_id TEXT NOT NULL,
    name TEXT NOT NULL, machine_id TEXT, wire TEXT NOT NULL, address TEXT NOT NULL, mac TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS volume (
    id TEXT PRIMARY KEY, instance_id TEXT NOT NULL, operation_id TEXT NOT NULL, resource_id TEXT NOT NULL,
    name TEXT NOT NULL, machine_id TEXT, size_bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rule (position INTEGER PRIMARY KEY, seen INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS call (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS network_instance ON network (instance_id);
CREATE INDEX IF NOT EXISTS machine_instance ON machine (instance_id);
CREATE INDEX IF NOT EXISTS port_instance ON port (instance_id);
CREATE INDEX IF NOT EXISTS port_machine ON port (machine_id);
CREATE INDEX IF NOT EXISTS volume_instance ON volume (instance_id);
CREATE INDEX IF NOT EXISTS volume_machine ON volume (machine_id);
CREATE UNIQUE INDEX IF NOT EXISTS port_address ON port (wire, address);
"""


class SimulatedVimDatabase:
    """Open files, one connection for each process, thread and file. `home` is made when it is first needed.

    Anybody may name VIMs in requests, so only the latest stay open.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._open: dict[tuple[int, int, Path], sqlite3.Connection] = {}
        self._lock = Lock()

    @contextmanager
    def transaction(self, path: Path) -> Iterator[sqlite3.Connection]:
        """All or nothing, alone on the file. Don't await inside."""
        try:
            db = self._connection(path)
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
        except (sqlite3.Error, OSError) as error:
            raise _translated(error, path) from error

    def close(self) -> None:
        """Close what this process opened, in whichever thread."""
        with self._lock, _opening:
            for (process, _, _), db in self._open.items():
                if process == os.getpid():
                    db.close()
            self._open.clear()

    def _connection(self, path: Path) -> sqlite3.Connection:
        key = (os.getpid(), get_ident(), path)
        db = self._open.get(key)
        if db is None:
            if path.parent == self._home:
                self._home.mkdir(parents=True, exist_ok=True)
            with _opening:
                db = _opened(path)
            with self._lock:
                self._open[key] = db
                own = [other for other in self._open if other[:2] == key[:2]]
                for other in own[:-MOST_OPEN]:  # of this thread, which is in no transaction on any of them now
                    self._open.pop(other).close()
        return db


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _write_ahead(db)
        db.execute("PRAGMA synchronous=NORMAL")
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'port_address'").fetchone():
            db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        _add_columns(db)
        add_functions(db, path.parent)
    except sqlite3.Error:
        db.close()
        raise
    return db


def _add_columns(db: sqlite3.Connection) -> None:
    """To a file of an older Slipway."""
    if "flavour" in _columns(db):
        return
    db.execute("BEGIN IMMEDIATE")
    if "flavour" not in _columns(db):
        db.execute("ALTER TABLE machine ADD COLUMN image TEXT")
        db.execute("ALTER TABLE machine ADD COLUMN flavour TEXT")
    db.execute("COMMIT")


def _columns(db: sqlite3.Connection) -> set[str]:
    return {row[1] for row in db.execute("PRAGMA table_info(machine)")}


def _write_ahead(db: sqlite3.Connection) -> None:
    """On a new file this wants it alone, and SQLite does not wait for it as it does for a transaction.

    The mode is kept in the file, so all who open it later find it set.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.001)


def _is_busy(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in BUSY


def _translated(error: sqlite3.Error | OSError, path: Path) -> VimError:
    if _is_busy(error):
        return VimError(f"The simulated VIM's file {path.name} is busy: {error}.", VimFault.TEMPORARY)
    return VimError(
        f"The simulated VIM's file {path.name} can't be used: {error}.",
        VimFault.PERMANENT,
        cure="see that its directory exists, may be written and has room, and that the file is a simulated VIM's.",
    )
