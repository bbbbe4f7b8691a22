"""Brings a database to the tables of this version, at every start.

Most starts find nothing to do, so the version is read first, and Alembic is imported only when there is work.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from slipway.model.errors import SettingsError
from slipway.store.database import Database

HEAD = "0008"

# Any number that no other program on this database uses.
_LOCK = 5119047


def upgrade(database: Database) -> None:
    """Safe in many processes at once: one does the work, the others wait for it."""
    if database.read_now(revision) != HEAD:
        database.write_now(_upgrade)


def revision(connection: Connection) -> str | None:
    """Which revision the database is at; None when it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def _upgrade(connection: Connection) -> None:
    """In one transaction: all revisions, or none. On SQLite this is the only writer (BEGIN IMMEDIATE)."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    found = revision(connection)
    if found == HEAD:
        return

    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "slipway.store:migrations")
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise SettingsError(
            f"The database is at revision {found}, which this Slipway does not know: its own is {HEAD}. "
            "Start the newer Slipway that made it, or restore a backup from before."
        )
    command.upgrade(config, HEAD)
