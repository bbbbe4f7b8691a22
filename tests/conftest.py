"""Real databases for tests: each test gets an empty, migrated one, on SQLite and on PostgreSQL.

One PostgreSQL serves the whole run, pytest-xdist included: whoever needs it first starts it, the first process ends it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import hypothesis
import psycopg
import pytest
from sqlalchemy.engine import URL, make_url

from slipway.model.struct_types import build_struct_types
from slipway.store.database import Database
from slipway.store.migrate import upgrade
from tests.databases import DATABASES, NewDatabase
from tests.examples import QUICK
from tests.groups import misplaced

LAB = Path(__file__).parents[1] / "lab" / "postgres"
PLACE = "POSTGRES_OF_THIS_TEST_RUN"  # the server's directory, inherited by xdist's workers
TEMPLATE = "migrated"


# How long an example takes says nothing while other tests take their part of the machine.
whole = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("whole", whole)
hypothesis.settings.load_profile("whole")
# For `make check`: a look rather than a search.
hypothesis.settings.register_profile("quick", whole, max_examples=QUICK)

mine = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    for marker in (
        "group(name): not part of `make test`, but of `make test-all` and `make test-all GROUP=name` (tests/groups.py)",
        "slow: not part of `make check`",
        "sqlite_suffices: its SQL is tested elsewhere on both databases; on PostgreSQL it is in the group postgresql",
        "journey: part of a life on real machines that `make test` goes through",
        "needs(*stages): skipped when one of these stages of the same file failed (tests/lab/stages.py)",
    ):
        config.addinivalue_line("markers", marker)
    # Tests start Python hundreds of times: compiled once, not each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if PLACE not in os.environ:
        os.environ[PLACE] = config.stash[mine] = tempfile.mkdtemp(prefix="slipway-postgres-")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("sqlite_suffices") and _on_postgresql(item):
            item.add_marker(pytest.mark.group(name="postgresql"))
    if wrong := misplaced(items):
        raise pytest.UsageError("\n".join(wrong))
    build_struct_types()  # as a server does


def pytest_unconfigure(config: pytest.Config) -> None:
    if place := config.stash.get(mine, None):
        del os.environ[PLACE]
        subprocess.run([LAB / "down", "--purge"], env=_lab_environment(place), check=True)
        Path(place + ".lock").unlink(missing_ok=True)


@pytest.fixture(scope="session")
def postgresql_server() -> URL:
    """The URL of the run's server, with a migrated database to copy from."""
    place = os.environ[PLACE]
    ready = Path(place) / "ready"
    with _locked(Path(place + ".lock")):
        if not ready.exists():
            up = subprocess.run([LAB / "up"], env=_lab_environment(place), check=True, capture_output=True, text=True)
            server = make_url(up.stdout.strip())
            _administer(server, f"CREATE DATABASE {TEMPLATE}")
            _migrate(server.set(database=TEMPLATE))
            ready.write_text(up.stdout.strip())
    return make_url(ready.read_text())


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    template = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    _migrate(URL.create("sqlite", database=str(template)))
    return template


@pytest.fixture(scope="session")
def new_database(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> NewDatabase:
    @contextmanager
    def new(kind: str, migrated: bool = True) -> Iterator[URL]:
        if kind == "sqlite":
            file = tmp_path_factory.mktemp("database") / "slipway.db"
            yield URL.create("sqlite", database=str(shutil.copy(sqlite_template, file) if migrated else file))
            return
        server: URL = request.getfixturevalue("postgresql_server")
        name = f"test_{uuid4().hex}"
        _administer(server, f"CREATE DATABASE {name}" + (f" TEMPLATE {TEMPLATE}" if migrated else ""))
        yield server.set(database=name)
        _administer(server, f"DROP DATABASE {name} WITH (FORCE)")

    return new


@pytest.fixture
def sqlite_url(new_database: NewDatabase) -> Iterator[URL]:
    with new_database("sqlite") as url:
        yield url


@pytest.fixture
def postgresql_url(new_database: NewDatabase) -> Iterator[URL]:
    with new_database("postgresql") as url:
        yield url


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, new_database: NewDatabase) -> Iterator[URL]:
    with new_database(request.param) as url:
        yield url


@pytest.fixture(scope="module", params=DATABASES)
def module_database_url(request: pytest.FixtureRequest, new_database: NewDatabase) -> Iterator[URL]:
    """For a server that all tests of a module share."""
    with new_database(request.param) as url:
        yield url


@pytest.fixture(params=DATABASES)
def empty_database_url(request: pytest.FixtureRequest, new_database: NewDatabase) -> Iterator[URL]:
    """Before its first migration."""
    with new_database(request.param, migrated=False) as url:
        yield url


@pytest.fixture
def database(database_url: URL) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


def _on_postgresql(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)  # of tests with parameters
    return callspec is not None and "postgresql" in callspec.params.values()


def _lab_environment(place: str) -> dict[str, str]:
    return {**os.environ, "LAB_DIR": place, "LAB_PASSWORD": "lab"}


def _administer(server: URL, statement: str) -> None:
    plain = server.render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(statement.encode())


def _migrate(url: URL) -> None:
    database = Database(url)
    upgrade(database)
    database.close()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
