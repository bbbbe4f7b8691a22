"""The simulated VIM keeps the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import VimFault
from slipway.model.vim import SIMULATED
from slipway.simulator.vim import Rule, RuleKind, SimulatedDriver
from slipway.vim.contract import VimDriver
from tests.contract.vim import VimContract


class TestSimulated(VimContract):
    @pytest.fixture
    def driver(self, tmp_path: Path) -> Iterator[SimulatedDriver]:
        driver = SimulatedDriver(tmp_path)
        yield driver
        driver.close()

    @pytest.fixture
    def connection(self) -> VimConnection:
        return VimConnection(SIMULATED, {"endpoint": "sim://contract"}, {}, {})

    async def break_machine(self, driver: VimDriver, connection: VimConnection, machine_id: str) -> None:
        assert isinstance(driver, SimulatedDriver)
        await driver.break_machine(connection, machine_id)

    async def fail_next_make(self, driver: VimDriver, connection: VimConnection, fault: VimFault) -> None:
        assert isinstance(driver, SimulatedDriver)
        await driver.set_rules(connection, [Rule(kind=RuleKind.ERROR, call="make_machine", fault=fault, times=1)])
