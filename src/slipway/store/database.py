"""The database: one transaction at a time from async code, on SQLite or PostgreSQL.

Queries are plain functions of a Connection. They run on threads, because that is what both drivers do well. SQLite has
one writer anyway, so all writes of a process go through one thread and never wait for each other's locks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    ExceptionContext,
    bindparam,
    create_engine,
    event,
    select,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import InternalError, OperationalError

P = ParamSpec("P")
T = TypeVar("T")

READERS = 8
MAPPED = 256 << 20  # bytes of SQLite's file


class Database:
    """`idle_seconds`: PostgreSQL ends the session of a process that stands still for so long inside a transaction.

    Such a process may be frozen, or its host may have gone, and the rows that it has locked stay locked for all others.
    """

    def __init__(self, url: str | URL, idle_seconds: float = 15.0) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = _engine(self.url, idle_seconds)
        self._writing = self.engine.execution_options(slipway_write=True)
        self._kept: Connection | None = None  # for `read_one`: to take one from the pool costs more than the read
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="db-read")
        self._writers = ThreadPoolExecutor(1 if self.is_sqlite else READERS, thread_name_prefix="db-write")

    async def read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, lambda: self.read_now(query, *args, **kwargs)
        )

    async def read_one(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """For one row by its key, in one statement: SQLite has it sooner than a thread could be asked, and never waits
        for a writer."""
        if not self.is_sqlite:
            return await self.read(query, *args, **kwargs)
        if self._kept is None:
            self._kept = self.engine.connect().execution_options(slipway_kept=True)
        return query(self._kept, *args, **kwargs)

    async def write(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One transaction: all of `query` is kept, or nothing when it raises."""
        return await asyncio.get_running_loop().run_in_executor(
            self._writers, lambda: self.write_now(query, *args, **kwargs)
        )

    def read_now(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self.engine.connect() as connection:
            return query(connection, *args, **kwargs)

    def write_now(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._writing.begin() as connection:
            return query(connection, *args, **kwargs)

    def close(self) -> None:
        self._readers.shutdown()
        self._writers.shutdown()
        if self._kept is not None:
            self._kept.close()
        self.engine.dispose()


def hold_project(connection: Connection, project: str) -> None:
    """Lock a project until the transaction ends, so that what is counted now stays so. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:project, 0))"), {"project": project})


def _as_is(value: Any) -> Any:
    return value


def _engine(url: URL, idle_seconds: float) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(
            url, json_serializer=_as_is, json_deserializer=_as_is, pool_size=READERS + 2, hide_parameters=True
        )
        event.listen(engine, "connect", _sqlite_connected)
        event.listen(engine, "begin", _sqlite_begin)
        return engine
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        json_serializer=_as_is,
        json_deserializer=_as_is,
        pool_size=2 * READERS,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"connect_timeout": 10},
    )
    # Not among the connection's own options: PgBouncer refuses those.
    event.listen(engine, "connect", partial(_end_when_idle, milliseconds=int(idle_seconds * 1000)))
    event.listen(engine, "handle_error", _session_ended)
    return engine


def _end_when_idle(connection: Any, record: Any, milliseconds: int) -> None:
    connection.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
    connection.commit()


def _session_ended(context: ExceptionContext) -> Exception | None:
    """PostgreSQL calls it an internal error when it ends an idle session; here it is a lost connection as any other."""
    if context.is_disconnect and isinstance(context.sqlalchemy_exception, InternalError):
        error = context.original_exception
        return OperationalError(context.statement, None, error, hide_parameters=True, connection_invalidated=True)
    return None


def _sqlite_connected(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves
    cursor = connection.cursor()
    # WAL with NORMAL: safe against kill -9 of any process; a power cut may take the last moments, never consistency.
    # Mapped: a list passes over the documents of its rows, and they are more than the 2 MB of each connection's cache.
    pragmas = ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000", "foreign_keys=ON", f"mmap_size={MAPPED}")
    for pragma in pragmas:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _sqlite_begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get("slipway_kept"):  # there each statement is its own transaction, and sees what was written last
        # IMMEDIATE: a transaction that will write takes the lock at once, instead of failing in the middle.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("slipway_write") else "BEGIN")


class RowByKey:
    """A row by its key, past SQLAlchemy where that is possible: its part would take ten times as long as SQLite's.

    For what is asked with every request, and for columns of text and numbers only: nothing is converted.
    """

    def __init__(self, key: ColumnElement[str], *columns: ColumnElement[Any]) -> None:
        self._query = select(*columns).where(key == bindparam("wanted"))
        self._sqlite = str(self._query.compile(dialect=sqlite.dialect()))

    def __call__(self, connection: Connection, wanted: str) -> Any:
        """The row, or None."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._query, {"wanted": wanted}).one_or_none()
        driver: Any = connection.connection.driver_connection
        rows = driver.execute(self._sqlite, (wanted,)).fetchall()
        return rows[0] if rows else None
