"""The simulated VIM keeps the contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.model.action import Connection
from slipway.model.errors import VimFault
from slipway.model.vim import SIMULATED
from slipway.vim.contract import VimDriver
from slipway.vim.simulated import Rule, RuleKind, SimulatedDriver
from tests.contract.vim import VimContract


class TestSimulated(VimContract):
    @pytest.fixture
    def driver(self, tmp_path: Path) -> Iterator[SimulatedDriver]:
        driver = SimulatedDriver(tmp_path)
        yield driver
        driver.close()

    @pytest.fixture
    def connection(self) -> Connection:
        return Connection(SIMULATED, {"endpoint": "sim://contract"}, {}, {})

    async def break_machine(self, driver: VimDriver, connection: Connection, machine_id: str) -> None:
        assert isinstance(driver, SimulatedDriver)
        await driver.break_machine(connection, machine_id)

    async def fail_next_make(self, driver: VimDriver, connection: Connection, fault: VimFault) -> None:
        assert isinstance(driver, SimulatedDriver)
        await driver.set_rules(connection, [Rule(kind=RuleKind.ERROR, call="make_machine", fault=fault, times=1)])
