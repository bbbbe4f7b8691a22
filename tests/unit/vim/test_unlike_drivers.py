"""Three drivers as unlike as VIMs are, held to one contract: machine by machine, one stack, objects in waves."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipway.model.action import VimConnection
from slipway.model.vim import SIMULATED
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.vim.contract import VimDriver
from tests.contract.driver import DriverContract
from tests.drivers.objects import VIM_TYPE, ObjectsDriver
from tests.drivers.stack import StackDriver


class TestMachineByMachine(DriverContract):
    @pytest.fixture
    def driver(self, tmp_path: Path) -> VimDriver:
        return SimulatedDriver(tmp_path)

    @pytest.fixture
    def connection(self) -> VimConnection:
        return VimConnection(SIMULATED, {"endpoint": "sim://unlike"}, {}, {})


class TestOneStack(TestMachineByMachine):
    @pytest.fixture
    def driver(self, tmp_path: Path) -> VimDriver:
        return StackDriver(tmp_path)


class TestObjectsInWaves(DriverContract):
    container = True
    has_ports = False

    @pytest.fixture
    def driver(self, tmp_path: Path) -> VimDriver:
        return ObjectsDriver(tmp_path)

    @pytest.fixture
    def connection(self) -> VimConnection:
        return VimConnection(VIM_TYPE, {"endpoint": "objects://here"}, {}, {})
