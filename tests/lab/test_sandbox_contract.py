"""The sandbox keeps the contract of all VIM drivers, on a real engine with real machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from msgspec.structs import replace

from slipway.model.action import VimConnection
from slipway.model.descriptor import Flavour, VirtualLink
from slipway.model.errors import VimError, VimFault
from slipway.model.vim import SANDBOX
from slipway.vim.contract import VimDriver
from slipway.vim.sandbox import SandboxDriver, networks
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.image.engine_images import image_name
from slipway.vim.sandbox.labels import bridge_name, engine_name
from slipway.vim.sandbox.machines import DEFAULT_IMAGE
from slipway.vim.sandbox.specification import Specification
from tests.contract.driver import DriverContract
from tests.contract.life import FIRST, NEXT
from tests.contract.vim import VimContract
from tests.lab.cluster_lab import clear

pytestmark = pytest.mark.group(name="sandbox")


class RefusingEngine(Engine):
    """The real engine, but that the next machine is refused in the way it is told."""

    refusal: VimFault | None = None

    def also_call(self, image: str, name: str) -> None:
        self._api("name an image").tag(image, name)

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


class TestLife(DriverContract):
    """An instance and its record, where machines are made from something else or moved to other networks."""

    def stops(self, steps: int) -> Iterable[int]:
        return (steps,)

    @pytest.fixture
    def driver(self, engines: Engines, operations: EngineOperations) -> Iterator[SandboxDriver]:
        engine = RefusingEngine(operations.engine.url)
        for version in (FIRST, NEXT):
            engine.also_call(image_name(DEFAULT_IMAGE), image_name(f"image-{version}"))
        engine.close()
        driver = SandboxDriver(engines.paths.directory, engines)
        yield driver
        driver.close()

    @pytest.fixture
    def connection(self) -> VimConnection:
        return VimConnection(SANDBOX, {"endpoint": LOCAL}, {}, {})

    @pytest.fixture
    def outside(self, operations: EngineOperations) -> Iterator[tuple[str, str]]:
        engine, names = operations.engine, ("net-1", "net-2")
        for number, name in enumerate(names):
            place = f"10.197.{number}"
            if engine.network(name) is None:  # left by a run that was killed
                bridge = bridge_name(engine.url, name)
                engine.create_network(name, f"{place}.0/24", f"{place}.1", bridge, {}, internal=False)
        yield names
        clear(operations)
        for name in names:
            if thing := engine.network(name):
                networks.remove_network(engine, thing)

    def flavours(self) -> dict[str, Flavour]:
        """In the next version a machine has another network for its other port: an engine plugs it into each once."""
        flavours = super().flavours()
        points, links = flavours[NEXT].connection_points, flavours[NEXT].virtual_links
        more = replace(points["work_more"], virtual_link="more")
        flavours[NEXT] = replace(
            flavours[NEXT],
            connection_points={**points, "work_more": more},
            virtual_links={**links, "more": VirtualLink(name="more", cidr="10.10.1.0/24")},
        )
        return flavours


# What is left out is decided by the planner, which the simulated VIM has, too, or is shown by VimContract above.
BY_THE_SANDBOX = {
    "test_what_was_made_is_what_was_wanted_and_what_the_record_says",
    "test_members_that_leave_are_those_that_were_chosen",
    "test_a_heal_makes_the_named_vnfcs_anew_and_leaves_the_others",
    "test_another_package_changes_content_under_the_same_name",
    "test_machines_of_vdus_that_are_not_named_stay_until_they_are_healed",
    "test_a_change_of_package_is_taken_back_wherever_it_stopped",
    "test_ports_move_to_another_network_and_nothing_else_changes",
    "test_ports_go_back_to_their_networks_and_addresses_wherever_a_move_stopped",
}
for name in {name for name in dir(DriverContract) if name.startswith("test_")} - BY_THE_SANDBOX:
    setattr(TestLife, name, None)
