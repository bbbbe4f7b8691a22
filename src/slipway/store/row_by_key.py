"""A row by its key, past SQLAlchemy where that is possible: its part would take ten times as long as SQLite's.

For what is asked with every request, and for columns of text and numbers only: nothing is converted.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, select
from sqlalchemy.dialects import sqlite


class RowByKey:
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
