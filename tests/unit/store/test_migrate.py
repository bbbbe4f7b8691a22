from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.engine import URL

from slipway.model.errors import SettingsError
from slipway.store.database import Database
from slipway.store.migrate import HEAD, revision, upgrade
from slipway.store.tables import metadata

SCHEMA = {
    "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name",
    "postgresql": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname",
}


def indexes(connection: Connection) -> list[str]:
    found = connection.scalars(text(SCHEMA[connection.dialect.name])).all()
    return [index for index in found if "alembic_version" not in index]


def differences(connection: Connection) -> list[Any]:
    return list(compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata))


def test_head_is_the_newest_revision() -> None:
    config = Config()
    config.set_main_option("script_location", "slipway.store:migrations")
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_migrations_lead_to_the_tables_in_the_code(database: Database) -> None:
    assert database.read_now(differences) == []


def test_migrations_lead_to_the_same_indexes_with_the_same_conditions(database: Database) -> None:
    migrated = database.read_now(indexes)
    database.write_now(lambda connection: metadata.drop_all(connection))
    database.write_now(lambda connection: metadata.create_all(connection))
    assert migrated == database.read_now(indexes)


def test_a_database_at_head_is_left_alone_without_importing_alembic(database_url: URL) -> None:
    script = """
import sys
from slipway.store.database import Database
from slipway.store.migrate import upgrade
database = Database(sys.argv[1])
upgrade(database)
database.close()
print("alembic" in sys.modules)
"""
    url = database_url.render_as_string(hide_password=False)
    done = subprocess.run([sys.executable, "-c", script, url], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_many_processes_may_start_at_once(empty_database_url: URL) -> None:
    script = """
import sys
from slipway.store.database import Database
from slipway.store.migrate import upgrade
database = Database(sys.argv[1])
upgrade(database)
database.close()
"""
    url = empty_database_url.render_as_string(hide_password=False)

    def start(_: int) -> str:
        return subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, check=False).stderr

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(start, range(4))) == [""] * 4
    database = Database(empty_database_url)
    assert database.read_now(revision) == HEAD
    database.close()


def test_a_newer_database_is_refused_with_the_cure(database: Database) -> None:
    database.write_now(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    with pytest.raises(SettingsError, match=r"revision 9999.*Start the newer Slipway"):
        upgrade(database)
