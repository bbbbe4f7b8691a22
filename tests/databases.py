"""The two kinds of database that Slipway knows, for tests. The fixtures are in conftest.py."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from sqlalchemy.engine import URL

DATABASES = ("sqlite", "postgresql")


class NewDatabase(Protocol):
    def __call__(self, kind: str, migrated: bool = True) -> AbstractContextManager[URL]:
        """One of DATABASES, gone afterwards."""


def setting(url: URL) -> str | None:
    """The setting `database_url` of a server: none for SQLite, which is embedded and has its place."""
    return None if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=False)
