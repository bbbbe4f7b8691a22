"""Reading one row by its key: the most frequent request of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from slipway.store.database import Database

T = TypeVar("T")


async def read_one(database: Database, query: Callable[[Connection, str], T], key: str) -> T:
    """SQLite has the row sooner than a thread could be asked for it, and never waits for a writer (WAL). PostgreSQL is
    waited for on a thread, like everything else.
    """
    return database.read_now(query, key) if database.is_sqlite else await database.read(query, key)
