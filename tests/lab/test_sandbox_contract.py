"""The sandbox keeps the contract of all VIM drivers, on a real engine with real machines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import VimError, VimFault
from slipway.model.vim import SANDBOX
from slipway.vim.contract import VimDriver
from slipway.vim.sandbox import SandboxDriver
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.labels import engine_name
from slipway.vim.sandbox.specification import Specification
from tests.contract.vim import VimContract

pytestmark = pytest.mark.group(name="sandbox")


class RefusingEngine(Engine):
    """The real engine, but that the next machine is refused in the way it is told."""

    refusal: VimFault | None = None

    def create_container(self, spec: Specification) -> None:
        if self.refusal is not None:
            fault, self.refusal = self.refusal, None
            raise VimError(f"The engine could not make {spec.name}: a test says so.", fault)
        super().create_container(spec)


class RefusingEngines(Engines):
    def make(self, url: str) -> Engine:
        return RefusingEngine(url)


class TestSandbox(VimContract):
    @pytest.fixture
    def driver(self, engines: Engines, operations: EngineOperations) -> Iterator[SandboxDriver]:
        driver = SandboxDriver(engines.paths.directory, RefusingEngines(engines.paths, {}, ()))
        yield driver
        driver.close()

    @pytest.fixture
    def connection(self) -> VimConnection:
        return VimConnection(SANDBOX, {"endpoint": LOCAL}, {}, {})

    async def break_machine(self, driver: VimDriver, connection: VimConnection, machine_id: str) -> None:
        assert isinstance(driver, SandboxDriver)
        await driver.work(connection, lambda operations: operations.engine.kill(engine_name("machine", machine_id)))

    async def fail_next_make(self, driver: VimDriver, connection: VimConnection, fault: VimFault) -> None:
        assert isinstance(driver, SandboxDriver)

        def refuse(operations: EngineOperations) -> None:
            assert isinstance(operations.engine, RefusingEngine)
            operations.engine.refusal = fault

        await driver.work(connection, refuse)
