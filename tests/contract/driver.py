"""What every VIM driver must do, whatever it is made of (docs/contracts/vim.md): lives of an instance on it.

Subclass DriverContract and give `flavour` and the fixtures `driver` and `connection`. The operations plan as they
really do, and the record is kept as it really is; only the engine is a small one. The tests look at what the VIM holds
and at what the record says, never at how many steps a driver needs.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.lcm.operations import OPERATIONS
from slipway.lcm.record import as_recorded, inventory, with_outcomes
from slipway.mgmt.drivers import ManagementDrivers, Noop
from slipway.model.action import Connection
from slipway.model.descriptor import Aspect, ConnectionPoint, Descriptor, Flavour, Storage, Vdu, VirtualLink
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.instance import Instance, InstantiationState, VnfInstance
from slipway.model.machine import Found, Outcome
from slipway.model.operation import OperationType
from slipway.model.plan import Plan, Step
from slipway.model.requests import (
    AnyRequest,
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.model.situation import Situation
from slipway.model.target import Change, Renewal
from slipway.vim.contract import VimDriver
from tests.contract.plans import Context, run_plan, undo_steps

ONE, OTHER = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
INSTANTIATE = InstantiateRequest(flavour_id="simple", additional_params={"colour": "red"})
TERMINATE = TerminateRequest(termination_type=TerminationType.FORCEFUL)
MANAGEMENT = ManagementDrivers([Noop()])


def out(steps: int = 1) -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers", number_of_steps=steps)


def back(steps: int = 1) -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="workers", number_of_steps=steps)


def two_vdus(*, container: bool = False) -> Flavour:
    """One `base`, and `work` that scales from two to five. Machines have a network, and those of `work` a volume."""
    storages = {} if container else {"data": Storage(name="data", size_bytes=1 << 30)}
    names = () if container else ("base", "work")
    return Flavour(
        id="simple",
        vdus={
            "base": Vdu(name="base", initial=1, maximum=1, container=container),
            "work": Vdu(name="work", initial=2, maximum=5, container=container, storages=tuple(storages)),
        },
        connection_points={
            f"{name}_cp": ConnectionPoint(name=f"{name}_cp", vdu=name, virtual_link="net") for name in names
        },
        virtual_links={} if container else {"net": VirtualLink(name="net", cidr="10.10.0.0/24")},
        storages=storages,
        aspects={"workers": Aspect(name="workers", max_level=3, deltas={"work": (1,)})},
    )


@dataclass
class Life:
    """An instance on a VIM, operation after operation."""

    driver: VimDriver
    connection: Connection
    flavour: Flavour
    instance_id: str = ONE
    operations: int = 0
    instance: Instance = field(init=False)

    def __post_init__(self) -> None:
        vnf = VnfInstance(
            id=self.instance_id, vnfd_id="d", vnf_provider="p", vnf_product_name="n", vnf_software_version="1",
            vnfd_version="1", instantiation_state=InstantiationState.NOT_INSTANTIATED,
        )  # fmt: skip
        self.instance = Instance(vnf=vnf, created_at=datetime(2026, 1, 1, tzinfo=UTC))

    def situation(self, kind: OperationType, request: AnyRequest) -> Situation:
        descriptor = Descriptor(vnfd_id="d", provider="p", product_name="n", software_version="1", vnfd_version="1",
                                flavours={self.flavour.id: self.flavour})  # fmt: skip
        return Situation(kind, request, self.instance, descriptor, self.flavour, Found())

    def change(self, kind: OperationType, request: AnyRequest) -> Change:
        change = OPERATIONS[kind].change
        assert change is not None
        return change(self.situation(kind, request), request)

    async def found(self) -> Found:
        """What the VIM itself says."""
        return await self.driver.find(self.connection, self.instance_id, self.recorded)

    @property
    def recorded(self) -> Found:
        return inventory(self.instance.vnf.instantiated_vnf_info)

    async def plan(self, kind: OperationType, request: AnyRequest) -> Plan:
        situation = self.situation(kind, request)
        OPERATIONS[kind].check(situation, request)
        self.driver.refuse(self.change(kind, request))
        found = as_recorded(await self.found(), self.recorded)
        return OPERATIONS[kind].plan(dataclasses.replace(situation, found=found), self.driver, MANAGEMENT).checked()

    def context(self) -> Context:
        self.operations += 1
        return Context(self.connection, self.instance_id, f"operation-{self.operations}")

    async def run(self, kind: OperationType, request: AnyRequest, *, twice: bool = False) -> list[Step]:
        """All of it, and the record afterwards."""
        context = self.context()
        done = await run_plan(self.driver, await self.plan(kind, request), context, twice=twice)
        self.settle(kind, request, context)
        return done

    def settle(self, kind: OperationType, request: AnyRequest, context: Context) -> None:
        situation, change = self.situation(kind, request), self.change(kind, request)
        vnf = OPERATIONS[kind].complete(situation, request)
        if (info := vnf.instantiated_vnf_info) is not None:
            outcomes: list[Outcome] = list(context.outcomes.values())
            version = self.instance.version
            info = with_outcomes(info, outcomes, self.flavour, "vim", change.members, version)
        parameters = getattr(request, "additional_params", {}) if kind is OperationType.INSTANTIATE else None
        self.instance = replace(
            self.instance,
            vnf=replace(vnf, instantiated_vnf_info=info),
            version=self.instance.version + 1,
            parameters=self.instance.parameters if parameters is None else parameters,
        )

    async def counts(self) -> Counter[str]:
        return Counter(machine.vdu for machine in (await self.found()).machines)

    def vnfcs(self, vdu: str = "work") -> list[str]:
        info = self.instance.vnf.instantiated_vnf_info
        return [vnfc.id for vnfc in info.vnfc_resource_info if vnfc.vdu_id == vdu] if info else []

    async def agreed(self) -> None:
        """The record has exactly the VNFCs, networks and objects that the VIM has."""
        found, recorded = await self.found(), self.recorded
        assert sorted(one.id for one in recorded.machines) == sorted(one.id for one in found.machines)
        assert sorted(one.id for one in recorded.networks) == sorted(one.id for one in found.networks)
        assert sorted((one.id, one.digest) for one in recorded.objects) == sorted(
            (one.id, one.digest) for one in found.objects
        )


def heal(*vnfcs: str) -> HealRequest:
    return HealRequest(vnfc_instance_id=vnfcs)


class DriverContract:
    flavour: Flavour

    @pytest.fixture
    def driver(self) -> VimDriver:
        raise NotImplementedError("give the driver to test")

    @pytest.fixture
    def connection(self) -> Connection:
        raise NotImplementedError("give a VIM that holds nothing yet")

    @pytest.fixture
    def life(self, driver: VimDriver, connection: Connection) -> Life:
        return Life(driver, connection, self.flavour)

    async def test_what_was_made_is_what_was_wanted_and_what_the_record_says(self, life: Life) -> None:
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        assert await life.counts() == {"base": 1, "work": 2}
        await life.agreed()

    async def test_when_all_is_as_wanted_there_is_nothing_to_do(self, life: Life) -> None:
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        found = as_recorded(await life.found(), life.recorded)
        change = life.change(OperationType.HEAL, HealRequest())
        still = dataclasses.replace(change, after=change.before, renewal=Renewal())
        assert life.driver.steps(still, found).steps == ()

    async def test_plans_are_pure_and_name_actions_that_there_are(self, life: Life) -> None:
        plan = await life.plan(OperationType.INSTANTIATE, INSTANTIATE)
        assert plan == await life.plan(OperationType.INSTANTIATE, INSTANTIATE)
        assert {step.action for step in plan.steps} <= {action.name for action in life.driver.actions}
        assert any(step.effects for step in plan.steps)

    async def test_members_are_named_by_the_steps_that_touch_them(self, life: Life) -> None:
        """Where VNFCs are members: hooks are woven around the steps by these names."""
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        change = life.change(OperationType.SCALE, out(2))
        assert change.before is not None
        assert change.after is not None
        coming = {one.name for one in change.after.members} - {one.name for one in change.before.members}
        plan = await life.plan(OperationType.SCALE, out(2))
        assert {node for step in plan.steps for node in step.nodes} == coming

    async def test_every_step_can_be_run_twice(self, life: Life) -> None:
        await life.run(OperationType.INSTANTIATE, INSTANTIATE, twice=True)
        await life.run(OperationType.SCALE, out(), twice=True)
        assert await life.counts() == {"base": 1, "work": 3}
        await life.run(OperationType.TERMINATE, TERMINATE, twice=True)
        assert await life.found() == Found()

    async def test_it_goes_on_after_a_stop_at_any_step(self, life: Life) -> None:
        steps = len((await life.plan(OperationType.INSTANTIATE, INSTANTIATE)).steps)
        for stop in range(steps + 1):
            context = life.context()
            plan = await life.plan(OperationType.INSTANTIATE, INSTANTIATE)
            await run_plan(life.driver, plan, context, stop_after=stop)
            await run_plan(life.driver, plan, context)
            life.settle(OperationType.INSTANTIATE, INSTANTIATE, context)
            assert await life.counts() == {"base": 1, "work": 2}, f"stopped after {stop}"
            await life.agreed()
            await life.run(OperationType.TERMINATE, TERMINATE)
            assert await life.found() == Found()

    async def test_undo_takes_back_what_was_made_wherever_it_stopped(self, life: Life) -> None:
        steps = len((await life.plan(OperationType.INSTANTIATE, INSTANTIATE)).steps)
        for stop in range(steps + 1):
            context = life.context()
            plan = await life.plan(OperationType.INSTANTIATE, INSTANTIATE)
            done = await run_plan(life.driver, plan, context, stop_after=stop)
            await undo_steps(life.driver, done, context, twice=True)
            assert await life.found() == Found(), f"stopped after {stop}"

    async def test_undo_of_a_scale_out_leaves_what_was_there(self, life: Life) -> None:
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        before = await life.found()
        context = life.context()
        done = await run_plan(life.driver, await life.plan(OperationType.SCALE, out(2)), context)
        assert not any(step.irreversible for step in done)
        assert await life.counts() == {"base": 1, "work": 4}
        await undo_steps(life.driver, done, context)
        assert _known(await life.found()) == _known(before)

    async def test_a_scale_out_only_adds_and_a_scale_in_only_removes(self, life: Life) -> None:
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        first = set(life.vnfcs())
        await life.run(OperationType.SCALE, out(2))
        grown = set(life.vnfcs())
        assert first < grown
        await life.run(OperationType.SCALE, back(1))
        assert set(life.vnfcs()) < grown
        assert await life.counts() == {"base": 1, "work": 3}
        await life.agreed()

    async def test_members_that_leave_are_those_that_were_chosen(self, life: Life) -> None:
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        await life.run(OperationType.SCALE, out(2))
        change = life.change(OperationType.SCALE, back(2))
        assert change.before is not None
        assert change.after is not None
        leaving = {one.id for one in change.before.members} - {one.id for one in change.after.members}
        before = {machine.id for machine in (await life.found()).machines}
        await life.run(OperationType.SCALE, back(2))
        after = {machine.id for machine in (await life.found()).machines}
        assert not leaving or before - after == leaving

    async def test_a_heal_makes_the_named_vnfcs_anew_and_leaves_the_others(self, life: Life) -> None:
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        sick, well = life.vnfcs()
        before = await life.found()
        await life.run(OperationType.HEAL, heal(sick))
        after = life.vnfcs()
        found = await life.found()
        assert (found.ports, found.volumes) == (before.ports, before.volumes), "addresses and data are kept"
        assert well in after
        assert sick not in after
        assert await life.counts() == {"base": 1, "work": 2}
        await life.agreed()

    async def test_what_takes_something_away_for_good_says_so(self, life: Life) -> None:
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        plan = await life.plan(OperationType.HEAL, heal(life.vnfcs()[0]))
        assert any(step.irreversible for step in plan.steps)

    async def test_nothing_is_left_of_a_half_made_instance(self, life: Life) -> None:
        plan = await life.plan(OperationType.INSTANTIATE, INSTANTIATE)
        context = life.context()
        await run_plan(life.driver, plan, context, stop_after=1)
        life.settle(OperationType.INSTANTIATE, INSTANTIATE, context)
        await life.run(OperationType.TERMINATE, TERMINATE)
        assert await life.found() == Found()

    async def test_instances_never_see_each_other(self, driver: VimDriver, connection: Connection, life: Life) -> None:
        other = Life(driver, connection, self.flavour, OTHER)
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        await other.run(OperationType.INSTANTIATE, INSTANTIATE)
        await life.run(OperationType.TERMINATE, TERMINATE)
        assert await life.found() == Found()
        await other.agreed()

    async def test_batches_are_kept_where_one_step_changes_everything(self, life: Life) -> None:
        """No step touches nodes of two batches, and those of a later one come later."""
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        change = life.change(OperationType.HEAL, HealRequest(vnfc_instance_id=tuple(life.vnfcs())))
        names = [one.name for one in (change.after.members if change.after else ()) if one.vdu == "work"]
        batches = tuple((name,) for name in names)
        found = as_recorded(await life.found(), life.recorded)
        plan = life.driver.steps(dataclasses.replace(change, batches=batches), found).checked()
        turn_of = {name: at for at, batch in enumerate(batches) for name in batch}
        for step in plan.steps:
            assert len({turn_of[node] for node in step.nodes if node in turn_of}) <= 1

    async def test_a_vnfd_of_the_other_kind_is_refused(self, life: Life) -> None:
        container = next(iter(self.flavour.vdus.values())).container
        other = Life(life.driver, life.connection, two_vdus(container=not container))
        with pytest.raises(Unprocessable, match="choose"):
            life.driver.refuse(other.change(OperationType.INSTANTIATE, INSTANTIATE))

    async def test_a_connection_without_an_endpoint_is_refused_by_name(self, life: Life) -> None:
        with pytest.raises(BadRequest, match="endpoint"):
            life.driver.validate(Connection(life.driver.vim_type, {}, {}, {}))


def _known(found: Found) -> tuple[Any, ...]:
    return (
        sorted(one.id for one in found.machines),
        sorted(one.id for one in found.networks),
        sorted((one.id, one.digest) for one in found.objects),
        sorted(one.id for one in found.ports),
    )
