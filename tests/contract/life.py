"""An instance on a VIM, operation after operation: planned and recorded as it really is, and a small engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.lcm.operations import OPERATIONS, change_in
from slipway.lcm.planning import plan_on_vim
from slipway.lcm.record import inventory, reconciled, with_outcomes
from slipway.mgmt.drivers import ManagementDrivers, Noop
from slipway.model.action import VimConnection
from slipway.model.descriptor import Aspect, ConnectionPoint, Descriptor, Flavour, Storage, Vdu, VirtualLink
from slipway.model.instance import Instance, InstantiationState, VnfInstance
from slipway.model.machine import Found, Outcome
from slipway.model.operation import OperationType
from slipway.model.package import SoftwareImage
from slipway.model.plan import Plan, Step
from slipway.model.requests import (
    AnyRequest,
    ChangePackageRequest,
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.model.situation import Situation
from slipway.model.target import Change, PackageFile
from slipway.vim.contract import VimDriver
from tests.contract.plans import Context, run_plan, undo_steps

ONE, OTHER = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
FIRST, NEXT = "first", "next"  # VNFD ids
MANAGEMENT = ManagementDrivers([Noop()])
INSTANTIATE = InstantiateRequest(flavour_id="simple", additional_params={"colour": "red"})
TERMINATE = TerminateRequest(termination_type=TerminationType.FORCEFUL)
UPDATE = ChangePackageRequest(vnfd_id=NEXT)


def out(steps: int = 1) -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers", number_of_steps=steps)


def back(steps: int = 1) -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="workers", number_of_steps=steps)


def two_vdus(*, container: bool = False, version: str = FIRST) -> Flavour:
    """One `base`, and `work` that scales from two to five. Machines have a network, and those of `work` a volume.

    The next version has other images and sizes, and one more port and volume for each machine of `work`.
    """
    storages = [] if container else ["data"] if version == FIRST else ["data", "more"]
    points = [] if container else [("base_cp", "base"), ("work_cp", "work")]
    if points and version != FIRST:
        points.append(("work_more", "work"))
    base = Vdu(
        name="base",
        initial=1,
        maximum=1,
        container=container,
        image=SoftwareImage(id="image", name=f"image-{version}"),
        flavour=f"size-{version}",
    )
    work = replace(base, name="work", initial=2, maximum=5, storages=tuple(storages))
    return Flavour(
        id="simple",
        vdus={"base": base, "work": work},
        connection_points={name: ConnectionPoint(name=name, vdu=vdu, virtual_link="net") for name, vdu in points},
        virtual_links={} if container else {"net": VirtualLink(name="net", cidr="10.10.0.0/24")},
        storages={name: Storage(name=name, size_bytes=1 << 30) for name in storages},
        aspects={"workers": Aspect(name="workers", max_level=3, deltas={"work": (1,)})},
    )


def files_of(globs: tuple[str, ...], vnfd_id: str) -> dict[str, PackageFile]:
    """One for each glob, at the same path in every package, and with other content in each."""
    content = f'{{"data": {{"package": "{vnfd_id}"}}}}'.encode()
    file = PackageFile(content=content, digest=sha256(content).hexdigest())
    return {glob.replace("*", "one"): file for glob in globs}


@dataclass
class Life:
    """`chance`: which of the steps that may run comes first; without one the last in the plan."""

    driver: VimDriver
    connection: VimConnection
    flavours: Mapping[str, Flavour]  # by VNFD id
    instance_id: str = ONE
    chance: Random | None = None
    files_of: Callable[[tuple[str, ...], str], dict[str, PackageFile]] = files_of
    operations: int = 0
    packages: dict[str, dict[str, PackageFile]] = field(default_factory=dict)  # files that were planned with
    instance: Instance = field(init=False)

    def __post_init__(self) -> None:
        vnf = VnfInstance(
            id=self.instance_id, vnfd_id=FIRST, vnf_provider="p", vnf_product_name="n", vnf_software_version="1",
            vnfd_version="1", instantiation_state=InstantiationState.NOT_INSTANTIATED,
        )  # fmt: skip
        self.instance = Instance(vnf=vnf, created_at=datetime(2026, 1, 1, tzinfo=UTC))

    def situation(self, kind: OperationType, request: AnyRequest) -> Situation:
        former, vnfd_id = self.instance.vnf.vnfd_id, OPERATIONS[kind].vnfd_id(request) or self.instance.vnf.vnfd_id
        flavour = self.flavours[vnfd_id]
        descriptor = Descriptor(vnfd_id=vnfd_id, provider="p", product_name="n", software_version="1", vnfd_version="1",
                                flavours={flavour.id: flavour})  # fmt: skip
        before = self.flavours[former] if former != vnfd_id else None
        return Situation(kind, request, self.instance, descriptor, flavour, flavour_before=before)

    def change(self, kind: OperationType, request: AnyRequest) -> Change:
        """As a driver sees it."""
        return change_in(self.situation(kind, request)).with_files(self.files(kind, request))

    def files(self, kind: OperationType, request: AnyRequest) -> dict[str, dict[str, PackageFile]]:
        """Those that the driver asks for, of the package before and after."""
        change = change_in(self.situation(kind, request))
        targets = [target for target in (change.before, change.after) if target]
        files = {one.vnfd_id: self.files_of(self.driver.package_files(one), one.vnfd_id) for one in targets}
        self.packages |= files
        return files

    async def found(self) -> Found:
        """What the VIM itself says."""
        return await self.driver.find(self.connection, self.instance_id, self.recorded)

    async def reconciled(self) -> Found:
        """What a planner is told: corrected by the record."""
        return reconciled(await self.found(), self.instance.vnf.instantiated_vnf_info)

    @property
    def recorded(self) -> Found:
        return inventory(self.instance.vnf.instantiated_vnf_info)

    async def plan(self, kind: OperationType, request: AnyRequest) -> Plan:
        situation = self.situation(kind, request)
        OPERATIONS[kind].check(situation, request)
        self.driver.refuse(self.change(kind, request))
        return plan_on_vim(
            situation, await self.reconciled(), self.driver, MANAGEMENT, self.files(kind, request)
        ).checked()

    async def instantiated(self) -> None:
        """Tests that begin with a VNF as it is made, however it came to be there."""
        await self.run(OperationType.INSTANTIATE, INSTANTIATE)

    def context(self) -> Context:
        self.operations += 1
        return Context(self.connection, self.instance_id, f"operation-{self.operations}", files=self.packages)

    async def run(self, kind: OperationType, request: AnyRequest, *, twice: bool = False) -> list[Step]:
        """All of it, and the record afterwards."""
        context = self.context()
        plan = await self.plan(kind, request)
        done = await run_plan(self.driver, plan, context, twice=twice, chance=self.chance)
        self.settle(kind, request, context)
        return done

    async def roll_back(self, kind: OperationType, request: AnyRequest, stop_after: int | None = None) -> list[Step]:
        """All of it, or its first steps, then back, and the record afterwards."""
        context = self.context()
        plan = await self.plan(kind, request)
        done = await run_plan(self.driver, plan, context, stop_after=stop_after, chance=self.chance)
        await undo_steps(self.driver, done, context)
        self.settle(kind, request, context, completed=False)
        return done

    def settle(self, kind: OperationType, request: AnyRequest, context: Context, *, completed: bool = True) -> None:
        situation, change = self.situation(kind, request), self.change(kind, request)
        rules, instance = OPERATIONS[kind], self.instance
        vnf = rules.complete(situation, request) if completed else instance.vnf
        if (info := vnf.instantiated_vnf_info) is not None:
            outcomes: list[Outcome] = list(context.outcomes.values())
            info = with_outcomes(info, outcomes, situation.flavour, "vim", change.members, instance.version)
        self.instance = replace(
            instance,
            vnf=replace(vnf, instantiated_vnf_info=info),
            version=instance.version + 1,
            parameters=rules.parameters(instance, request) if completed else instance.parameters,
        )

    async def counts(self) -> Counter[str]:
        return Counter(machine.vdu for machine in (await self.found()).machines)

    def vnfcs(self, vdu: str = "work") -> list[str]:
        info = self.instance.vnf.instantiated_vnf_info
        return [vnfc.id for vnfc in info.vnfc_resource_info if vnfc.vdu_id == vdu] if info else []

    async def agreed(self) -> None:
        """The record has exactly the VNFCs, ports, volumes, networks and objects that the VIM has."""
        found, recorded, info = await self.found(), self.recorded, self.instance.vnf.instantiated_vnf_info
        assert sorted(one.id for one in recorded.machines) == sorted(one.id for one in found.machines)
        assert sorted(one.id for one in recorded.networks) == sorted(one.id for one in found.networks)
        ports = (port.id for machine in recorded.machines for port in machine.ports)
        assert sorted(ports) == sorted(one.id for one in found.ports)
        storages = info.virtual_storage_resource_info if info else ()
        assert sorted(one.id for one in storages) == sorted(one.id for one in found.volumes)
        assert sorted((one.id, one.digest) for one in recorded.objects) == sorted(
            (one.id, one.digest) for one in found.objects
        )


def heal(*vnfcs: str) -> HealRequest:
    return HealRequest(vnfc_instance_id=vnfcs)


def known_ids(found: Found) -> tuple[Any, ...]:
    return (
        sorted(one.id for one in found.machines),
        sorted(one.id for one in found.networks),
        sorted((one.id, one.digest) for one in found.objects),
        sorted(one.id for one in found.ports),
        sorted(one.id for one in found.volumes),
    )


class OnDriver:
    """What tests of a driver begin with."""

    container = False  # whether VNFCs are pods
    has_ports = True  # that can be connected to other networks
    all_alike = False  # members of a VDU, in a group: one that is healed is as the others are
    keeps_macs = True  # a port made again by undo; not where only the network's owner may choose a MAC

    @pytest.fixture
    def outside(self) -> tuple[str, str]:
        """Two networks that exist, by the VIM's own ids."""
        return "net-1", "net-2"

    @pytest.fixture
    def driver(self) -> VimDriver:
        raise NotImplementedError("give the driver to test")

    @pytest.fixture
    def connection(self) -> VimConnection:
        raise NotImplementedError("give a VIM that holds nothing yet")

    @pytest.fixture
    def elsewhere(self, connection: VimConnection) -> VimConnection:
        """Where a second instance of the same package can be: on the same VIM, in a place of its own if need be."""
        return connection

    @pytest.fixture
    def life(self, driver: VimDriver, connection: VimConnection) -> Life:
        return Life(driver, connection, self.flavours(), files_of=self.files_of)

    def stops(self, steps: int) -> Iterable[int]:
        """After how many of its steps a plan is broken off: after each, where that does not take too long."""
        return range(steps + 1)

    def files_of(self, globs: tuple[str, ...], vnfd_id: str) -> dict[str, PackageFile]:
        """What a package has where the driver looks."""
        return files_of(globs, vnfd_id)

    def flavours(self) -> dict[str, Flavour]:
        return {vnfd_id: two_vdus(container=self.container, version=vnfd_id) for vnfd_id in (FIRST, NEXT)}
