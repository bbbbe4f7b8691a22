"""One Slipway with two packages and a simulated VIM, and one stock client, for all tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.package.build import build_package
from tests.databases import DATABASES, NewDatabase
from tests.functional.next_package import next_package
from tests.functional.processes import serving_on
from tests.functional.rig import SAMPLE
from tests.functional.stock_client.stock_program import Stock, Warm, installed, warm, with_token
from tests.functional.stock_client.stock_world import NEXT, RULES, Slipway


@pytest.fixture(scope="session")
def program() -> Path:
    return installed()


@pytest.fixture(scope="session")
def client(program: Path) -> Iterator[Warm]:
    with warm(program) as client:
        yield client


@pytest.fixture(scope="session", params=DATABASES)
def both(
    request: pytest.FixtureRequest,
    new_database: NewDatabase,
    client: Warm,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Stock, Slipway]]:
    directory = tmp_path_factory.mktemp("stock")
    work = directory / "work"
    work.mkdir()
    with (
        new_database(request.param) as url,
        serving_on(url, directory / "data") as (_, own),
    ):
        slipway = Slipway(own)
        slipway.onboard(build_package(SAMPLE, directory / "cluster.csar").path)
        slipway.onboard(build_package(next_package(SAMPLE, directory, NEXT, words={}), directory / "next.csar").path)
        yield Stock(client, work, with_token(str(own.base_url), own.headers["X-Auth-Token"])), slipway


@pytest.fixture
def stock(both: tuple[Stock, Slipway]) -> Stock:
    return both[0]


@pytest.fixture
def slipway(both: tuple[Stock, Slipway]) -> Iterator[Slipway]:
    yield both[1]
    both[1].client.delete(RULES).raise_for_status()
