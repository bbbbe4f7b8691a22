"""Simulated VIMs in a directory of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.model.action import VimConnection
from slipway.model.vim import SIMULATED
from slipway.simulator.vim import SimulatedDriver


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[SimulatedDriver]:
    driver = SimulatedDriver(tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def connection() -> VimConnection:
    return VimConnection(SIMULATED, {"endpoint": "sim://one"}, {}, {})
