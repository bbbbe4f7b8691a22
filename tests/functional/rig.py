"""Slipway without HTTP, in this process: enough to run operations on a simulated VIM and to look at both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from slipway.app import Slipway, assemble
from slipway.cluster.steps.liveness import LivenessLimits
from slipway.engine.interfaces import FaultInjector
from slipway.mgmt.drivers import ManagementDriver, Noop
from slipway.model.action import VimConnection
from slipway.model.clock import utcnow
from slipway.model.descriptor import Descriptor, Hook
from slipway.model.instance import Instance
from slipway.model.journal import StepRecord
from slipway.model.machine import Found
from slipway.model.operation import RUNNING, Operation, OperationType
from slipway.model.package import OnboardingState, OperationalState, UsageState, VnfPackage
from slipway.model.requests import AnyRequest, CreateRequest
from slipway.model.vim import SIMULATED, Vim
from slipway.package.build import build_package
from slipway.settings import Settings, load_settings
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.store import instances, operations, packages, steps, vims
from tests.drivers.objects import VIM_TYPE, ObjectsDriver

SAMPLE = Path(__file__).parents[2] / "samples" / "cluster-simulated"
SIMULATED_VIM = VimConnection(SIMULATED, {"endpoint": "sim://default"}, {}, {})


def settings_in(directory: Path, database_url: str | None = None, **more: Any) -> Settings:
    overrides = {"data_dir": directory, "database_url": database_url, "log_level": "error", **more}
    return load_settings(overrides=overrides, environment={})


@dataclass(frozen=True)
class Rig:
    slipway: Slipway
    vnfd_id: str
    objects: ObjectsDriver | None = None

    async def create(self, name: str | None = None) -> str:
        created = await self.slipway.lcm.create_instance(CreateRequest(vnfd_id=self.vnfd_id, vnf_instance_name=name))
        return created.vnf.id

    async def run(self, kind: OperationType, instance_id: str, request: AnyRequest) -> Operation:
        return await self.rest((await self.slipway.lcm.start_operation(kind, instance_id, request)).id)

    async def rest(self, operation_id: str) -> Operation:
        async with asyncio.timeout(60):
            while True:
                operation = await self.slipway.database.read(operations.get, operation_id)
                if operation.operation_state not in RUNNING:
                    return operation
                await asyncio.sleep(0.005)

    async def instance(self, instance_id: str) -> Instance:
        return await self.slipway.database.read(instances.get, instance_id)

    async def journal(self, operation_id: str) -> list[StepRecord]:
        return await self.slipway.database.read(steps.journal, operation_id)

    async def inventory(self) -> dict[str, Found]:
        """All that the VIM holds, by instance."""
        if self.objects:
            return self.objects.inventory()
        return await self.slipway.simulated.inventory(SIMULATED_VIM)


@asynccontextmanager
async def rig_in(
    settings: Settings,
    *,
    fault_injector: FaultInjector | None = None,
    working: bool = True,
    management: Sequence[ManagementDriver] = (Noop(),),
    hooks: Sequence[str] | None = (),
    sample: Path = SAMPLE,
    liveness: LivenessLimits | None = None,
    simulated: type[SimulatedDriver] = SimulatedDriver,
    objects: ObjectsDriver | None = None,
) -> AsyncIterator[Rig]:
    """Assembled, with a sample onboarded and a simulated VIM as default; a worker is at work, unless told not to.

    `hooks` None: those that the sample has. `objects`: the driver of the VIM; the sample's VDUs are containers then.
    """
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    slipway = assemble(
        settings,
        fault_injector=fault_injector,
        management_drivers=management,
        liveness=liveness,
        simulated_driver=simulated,
        vim_drivers=[objects] if objects else [],
    )
    try:
        place = settings.data_dir
        vnfd_id = slipway.database.write_now(_prepared, place, hooks, sample, objects is not None)
        rig = Rig(slipway, vnfd_id, objects)
        serving = None
        if working and slipway.worker:
            await slipway.worker.take_lease(alone=slipway.is_embedded)
            serving = asyncio.create_task(slipway.worker.serve())
        yield rig
        if serving and slipway.worker:
            await slipway.worker.shut_down(grace=5)
            await serving
    finally:
        slipway.close()


def _prepared(connection: Any, directory: Path, hooks: Sequence[str] | None, sample: Path, containers: bool) -> str:
    known = packages.list_all(connection)
    if known:
        return str(known[0].vnfd_id)
    place = directory / "packages" / "sample.csar"  # where steps read its files
    place.parent.mkdir(exist_ok=True)
    package = build_package(sample, place)
    descriptor = package.descriptor if hooks is None else hooked(package.descriptor, hooks)
    if containers:
        descriptor = of_containers(descriptor)
    packages.insert(
        connection,
        VnfPackage(
            id="sample",
            vnfd_id=descriptor.vnfd_id,
            onboarding_state=OnboardingState.ONBOARDED,
            operational_state=OperationalState.ENABLED,
            usage_state=UsageState.NOT_IN_USE,
            additional_artifacts=package.artifacts,
            created_at=utcnow(),
        ),
        descriptor,
    )
    vims.insert(
        connection,
        Vim(
            id="simulated",
            name="simulated",
            vim_type=VIM_TYPE if containers else SIMULATED,
            is_default=True,
            interface_info=SIMULATED_VIM.interface_info,
            created_at=utcnow(),
        ),
    )
    return descriptor.vnfd_id


def hooked(descriptor: Descriptor, hooks: Sequence[str]) -> Descriptor:
    """With hooks "instantiate_end=driver" in every flavour, in place of its own."""
    named = {
        name: Hook(operation=name, implementation=driver) for name, _, driver in (hook.partition("=") for hook in hooks)
    }
    flavours = {name: replace(flavour, hooks=named) for name, flavour in descriptor.flavours.items()}
    return replace(descriptor, flavours=flavours)


def of_containers(descriptor: Descriptor) -> Descriptor:
    """With containers in place of its machines."""
    flavours = {
        name: replace(
            flavour,
            vdus={vdu.name: replace(vdu, container=True, storages=()) for vdu in flavour.vdus.values()},
            connection_points={},
            virtual_links={},
            storages={},
        )
        for name, flavour in descriptor.flavours.items()
    }
    return replace(descriptor, flavours=flavours)
