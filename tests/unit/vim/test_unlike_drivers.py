"""Three drivers as unlike as VIMs are, held to one contract: machine by machine, one stack, objects in waves."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipway.model.action import Connection
from slipway.model.vim import SIMULATED
from slipway.vim.contract import VimDriver
from slipway.vim.simulated.driver import SimulatedDriver
from tests.contract.driver import DriverContract, two_vdus
from tests.drivers.objects import VIM_TYPE, ObjectsDriver
from tests.drivers.stack import StackDriver


class TestMachineByMachine(DriverContract):
    flavour = two_vdus()

    @pytest.fixture
    def driver(self, tmp_path: Path) -> VimDriver:
        return SimulatedDriver(tmp_path)

    @pytest.fixture
    def connection(self) -> Connection:
        return Connection(SIMULATED, {"endpoint": "sim://unlike"}, {}, {})


class TestOneStack(TestMachineByMachine):
    @pytest.fixture
    def driver(self, tmp_path: Path) -> VimDriver:
        return StackDriver(tmp_path)


class TestObjectsInWaves(DriverContract):
    flavour = two_vdus(container=True)

    @pytest.fixture
    def driver(self, tmp_path: Path) -> VimDriver:
        return ObjectsDriver(tmp_path)

    @pytest.fixture
    def connection(self) -> Connection:
        return Connection(VIM_TYPE, {"endpoint": "objects://here"}, {}, {})
