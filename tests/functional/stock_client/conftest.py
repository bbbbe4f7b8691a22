"""One Slipway with two packages and a simulated VIM, and one stock client, for all tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.package.build import build_package
from tests.functional.next_package import next_package
from tests.functional.processes import running
from tests.functional.rig import SAMPLE
from tests.functional.stock_client.stock_program import Stock, installed, with_token
from tests.functional.stock_client.stock_world import NEXT, RULES, Slipway


@pytest.fixture(scope="session")
def program() -> Path:
    return installed()


@pytest.fixture(scope="session")
def both(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stock, Slipway]]:
    directory = tmp_path_factory.mktemp("stock")
    with running("serve", directory / "data") as server, server.client() as client:
        slipway = Slipway(client)
        slipway.onboard(build_package(SAMPLE, directory / "cluster.csar").path)
        slipway.onboard(build_package(next_package(SAMPLE, directory, NEXT, words={}), directory / "next.csar").path)
        work = directory / "work"
        work.mkdir()
        yield Stock(program, work, with_token(str(client.base_url), client.headers["X-Auth-Token"])), slipway


@pytest.fixture
def stock(both: tuple[Stock, Slipway]) -> Stock:
    return both[0]


@pytest.fixture
def slipway(both: tuple[Stock, Slipway]) -> Iterator[Slipway]:
    yield both[1]
    both[1].client.delete(RULES).raise_for_status()
