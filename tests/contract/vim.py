"""What a VIM driver that makes machine after machine must do (docs/contracts/vim.md): tests to be inherited.

Subclass VimContract, give the fixtures `driver` and `connection`, and fill in the hooks. The tests look at what the
VIM holds, never at how many steps a driver needs, so that one-stack, one-machine and one-wave drivers all fit.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address, ip_network
from typing import Protocol

import pytest
from msgspec.structs import replace

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest, VimError, VimFault
from slipway.model.machine import Found, FoundMachine, Wanted
from slipway.model.plan import Plan, Verb
from slipway.vim.contract import VimDriver
from tests.contract.clusters import CIDR, FIXED, Cluster, differences, healed, nothing, replugged
from tests.contract.plans import Context, hand, in_order, run_plan, undo_steps

ONE, OTHER = "instance-1", "instance-2"
OTHER_FIXED = "10.10.0.7"


def by_slot(found: Found) -> dict[str, FoundMachine]:
    return {machine.name: machine for machine in found.machines}


class MachineDriver(VimDriver, Protocol):
    """What drivers of this kind have in common beyond the contract of all."""

    async def find(self, connection: VimConnection, instance_id: str, inventory: Found | None = None) -> Found:
        """Machines are found by the instance's id alone."""
        ...

    def steps_towards(self, wanted: Wanted, found: Found) -> Plan:
        """What turns `found` into `wanted`; no step at all when they agree."""
        ...


class VimContract:
    """`cluster` says what images, sizes and outside networks this VIM knows."""

    cluster = Cluster()

    @pytest.fixture
    def driver(self) -> MachineDriver:
        raise NotImplementedError("give the driver to test")

    @pytest.fixture
    def connection(self) -> VimConnection:
        raise NotImplementedError("give a VIM that holds nothing for instance-1 and instance-2")

    async def break_machine(self, driver: MachineDriver, connection: VimConnection, machine_id: str) -> None:
        """Make the machine not ready, behind Slipway's back."""
        pytest.skip("this VIM's machines can't be broken by a test")

    async def fail_next_make(self, driver: MachineDriver, connection: VimConnection, fault: VimFault) -> None:
        """Let the VIM refuse the next making of a machine in this way."""
        pytest.skip("this VIM can't be told to fail")

    async def led_to(
        self,
        driver: MachineDriver,
        connection: VimConnection,
        wanted: Wanted,
        *,
        twice: bool = False,
        operation: str = "op-1",
    ) -> Found:
        """Find, plan, run, and what the VIM holds then."""
        found = await driver.find(connection, wanted.instance_id)
        ctx = Context(connection, wanted.instance_id, operation)
        await run_plan(driver, driver.steps_towards(wanted, found), ctx, twice=twice)
        return await driver.find(connection, wanted.instance_id)

    async def test_making_from_nothing_gives_what_is_wanted(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        wanted = self.cluster.wanted(ONE)
        found = await self.led_to(driver, connection, wanted)
        assert differences(found, wanted) == []
        assert all(machine.resource_id for machine in found.machines)

    async def test_outcomes_tell_all_that_was_made(self, driver: MachineDriver, connection: VimConnection) -> None:
        wanted, ctx = self.cluster.wanted(ONE), Context(connection, ONE)
        await run_plan(driver, driver.steps_towards(wanted, Found()), ctx)
        found = await driver.find(connection, ONE)
        told = [machine for outcome in ctx.outcomes.values() for machine in outcome.machines]
        assert sorted(told, key=lambda m: m.id) == sorted(found.machines, key=lambda m: m.id)
        networks = [network for outcome in ctx.outcomes.values() for network in outcome.networks]
        assert sorted(networks, key=lambda n: n.id) == sorted(found.networks, key=lambda n: n.id)

    async def test_no_steps_when_found_is_wanted(self, driver: MachineDriver, connection: VimConnection) -> None:
        wanted = self.cluster.wanted(ONE)
        found = await self.led_to(driver, connection, wanted)
        assert driver.steps_towards(wanted, found).steps == ()
        assert driver.steps_towards(nothing(ONE), Found()).steps == ()

    async def test_plans_are_valid_pure_and_say_what_they_do(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        wanted = self.cluster.wanted(ONE)
        plan = driver.steps_towards(wanted, Found()).checked()
        assert plan == driver.steps_towards(wanted, Found())
        names = {effect.name for step in plan.steps for effect in step.effects if effect.verb is Verb.MAKE}
        assert names >= {"masterNode-1", "workerNode-1", "workerNode-2"}
        known = {action.name for action in driver.actions}
        assert {step.action for step in plan.steps} <= known

    async def test_running_each_step_twice_makes_nothing_twice(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        wanted = self.cluster.wanted(ONE)
        assert differences(await self.led_to(driver, connection, wanted, twice=True), wanted) == []
        gone = await self.led_to(driver, connection, nothing(ONE), twice=True)
        assert gone == Found()

    async def test_two_workers_running_the_same_step_make_it_once(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        wanted, ctx = self.cluster.wanted(ONE), Context(connection, ONE)
        for step in in_order(driver.steps_towards(wanted, Found())):
            action, args = hand(driver, step)
            first, second = await asyncio.gather(action.run(args, ctx), action.run(args, ctx))
            assert first == second
        assert differences(await driver.find(connection, ONE), wanted) == []

    async def test_going_on_after_a_stop_at_any_step(self, driver: MachineDriver, connection: VimConnection) -> None:
        wanted = self.cluster.wanted(ONE)
        plan = driver.steps_towards(wanted, Found())
        for stop in range(len(plan.steps) + 1):
            await run_plan(driver, plan, Context(connection, ONE), stop_after=stop)
            half = await driver.find(connection, ONE)
            await run_plan(driver, driver.steps_towards(wanted, half), Context(connection, ONE))
            assert differences(await driver.find(connection, ONE), wanted) == [], f"stopped after {stop}"
            assert await self.led_to(driver, connection, nothing(ONE)) == Found()

    async def test_removal_from_half_made_leaves_nothing(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        plan = driver.steps_towards(self.cluster.wanted(ONE), Found())
        for stop in range(len(plan.steps) + 1):
            await run_plan(driver, plan, Context(connection, ONE), stop_after=stop)
            assert await self.led_to(driver, connection, nothing(ONE)) == Found(), f"stopped after {stop}"

    async def test_undoing_every_step_leaves_nothing(self, driver: MachineDriver, connection: VimConnection) -> None:
        plan = driver.steps_towards(self.cluster.wanted(ONE), Found())
        for stop in range(len(plan.steps) + 1):
            ctx = Context(connection, ONE)
            done = await run_plan(driver, plan, ctx, stop_after=stop)
            await undo_steps(driver, done, ctx, twice=True)
            assert await driver.find(connection, ONE) == Found(), f"stopped after {stop}"

    async def test_undo_of_a_scale_out_keeps_what_was_there(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        before = await self.led_to(driver, connection, self.cluster.wanted(ONE, workers=1))
        ctx = Context(connection, ONE, "op-2")
        plan = driver.steps_towards(self.cluster.wanted(ONE, workers=3), before)
        await undo_steps(driver, await run_plan(driver, plan, ctx), ctx)
        assert await driver.find(connection, ONE) == before

    async def test_undo_of_a_heal_keeps_ports_and_volumes(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        wanted = self.cluster.wanted(ONE)
        before = await self.led_to(driver, connection, wanted)
        ctx = Context(connection, ONE, "op-2")
        plan = driver.steps_towards(healed(wanted, "workerNode-1"), before)
        await undo_steps(driver, await run_plan(driver, plan, ctx), ctx)
        after = await driver.find(connection, ONE)
        assert (after.ports, after.volumes) == (before.ports, before.volumes)
        assert differences(await self.led_to(driver, connection, wanted), wanted) == []

    async def test_undo_of_a_repair_keeps_the_machine(self, driver: MachineDriver, connection: VimConnection) -> None:
        wanted = self.cluster.wanted(ONE)
        before = await self.led_to(driver, connection, wanted)
        await self.break_machine(driver, connection, before.machines[0].id)
        ctx = Context(connection, ONE, "op-2")
        plan = driver.steps_towards(wanted, await driver.find(connection, ONE))
        await undo_steps(driver, await run_plan(driver, plan, ctx), ctx)
        assert [m.id for m in (await driver.find(connection, ONE)).machines] == [m.id for m in before.machines]

    async def test_heal_changes_the_machine_and_keeps_ports_addresses_and_volumes(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        wanted = self.cluster.wanted(ONE)
        before = by_slot(await self.led_to(driver, connection, wanted))
        new = healed(wanted, "workerNode-1")
        found = await self.led_to(driver, connection, new, operation="op-2")
        after = by_slot(found)
        assert differences(found, new) == []
        assert after["workerNode-1"].id != before["workerNode-1"].id
        assert after["workerNode-1"].resource_id != before["workerNode-1"].resource_id
        assert after["workerNode-1"].ports == before["workerNode-1"].ports
        assert after["workerNode-1"].volumes == before["workerNode-1"].volumes
        assert after["workerNode-2"] == before["workerNode-2"]

    async def test_a_broken_machine_stands_again_under_its_id(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        wanted = self.cluster.wanted(ONE)
        before = by_slot(await self.led_to(driver, connection, wanted))
        await self.break_machine(driver, connection, before["workerNode-1"].id)
        found = await self.led_to(driver, connection, wanted, operation="op-2")
        assert differences(found, wanted) == []
        assert by_slot(found)["workerNode-1"].ports == before["workerNode-1"].ports

    @pytest.mark.parametrize("undoable", [True, False])
    async def test_another_port_takes_the_place_of_one_and_the_rest_stays(
        self, driver: MachineDriver, connection: VimConnection, undoable: bool
    ) -> None:
        wanted = self.cluster.wanted(ONE)
        first = await self.led_to(driver, connection, wanted)
        before = by_slot(first)
        new = replugged(wanted, "workerNode-1", OTHER_FIXED, first if undoable else None)
        found = await self.led_to(driver, connection, new, twice=True, operation="op-2")
        after = by_slot(found)
        assert differences(found, new) == []
        assert after["workerNode-1"].resource_id == before["workerNode-1"].resource_id
        assert after["workerNode-1"].volumes == before["workerNode-1"].volumes
        assert OTHER_FIXED in [port.address for port in after["workerNode-1"].ports]
        kept = [port for port in before["workerNode-1"].ports if port.name != "CP1"]
        assert [port for port in after["workerNode-1"].ports if port.name != "CP1"] == kept
        assert after["workerNode-2"] == before["workerNode-2"]

    async def test_undo_gives_back_a_port_that_another_took_the_place_of(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        wanted = self.cluster.wanted(ONE)
        before = await self.led_to(driver, connection, wanted)
        plan = driver.steps_towards(replugged(wanted, "workerNode-1", OTHER_FIXED, before), before)
        for stop in range(len(plan.steps) + 1):
            ctx = Context(connection, ONE, f"op-{stop + 2}")
            await undo_steps(driver, await run_plan(driver, plan, ctx, stop_after=stop), ctx, twice=True)
            after = await driver.find(connection, ONE)
            assert differences(after, wanted) == [], f"stopped after {stop}"
            assert {(p.id, p.address, p.mac) for p in after.ports} == {(p.id, p.address, p.mac) for p in before.ports}

    async def test_ports_say_what_they_are_on(self, driver: MachineDriver, connection: VimConnection) -> None:
        """Where a driver can't tell, nothing is said; what is said is true."""
        wanted = self.cluster.wanted(ONE)
        found = await self.led_to(driver, connection, wanted)
        asked = {p.id: p.network or p.external_network for machine in wanted.machines for p in machine.ports}
        assert [p.id for p in found.ports if p.network not in (None, asked[p.id])] == []

    async def test_scale_out_only_adds(self, driver: MachineDriver, connection: VimConnection) -> None:
        before = await self.led_to(driver, connection, self.cluster.wanted(ONE, workers=1))
        wanted = self.cluster.wanted(ONE, workers=3)
        found = await self.led_to(driver, connection, wanted, operation="op-2")
        assert differences(found, wanted) == []
        assert {m.id: m for m in before.machines}.items() <= {m.id: m for m in found.machines}.items()

    async def test_scale_in_only_removes(self, driver: MachineDriver, connection: VimConnection) -> None:
        before = by_slot(await self.led_to(driver, connection, self.cluster.wanted(ONE, workers=3)))
        wanted = self.cluster.wanted(ONE, workers=1)
        ctx = Context(connection, ONE, "op-2")
        await run_plan(driver, driver.steps_towards(wanted, await driver.find(connection, ONE)), ctx)
        found = await driver.find(connection, ONE)
        assert differences(found, wanted) == []
        assert by_slot(found).items() <= before.items()
        removed = {id_ for outcome in ctx.outcomes.values() for id_ in outcome.removed}
        for gone in (before["workerNode-2"], before["workerNode-3"]):
            assert removed >= {gone.id, *(port.id for port in gone.ports), *(volume.id for volume in gone.volumes)}

    async def test_retained_volumes_stay_and_are_told_and_a_next_life_leaves_them_alone(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        before = by_slot(await self.led_to(driver, connection, self.cluster.wanted(ONE)))
        (kept,) = before["masterNode-1"].volumes
        leaving = replace(nothing(ONE), retained=(kept.id,))
        ctx = Context(connection, ONE, "op-2")
        await run_plan(driver, driver.steps_towards(leaving, await driver.find(connection, ONE)), ctx, twice=True)
        assert await driver.find(connection, ONE) == Found()
        patches = [outcome.instance for outcome in ctx.outcomes.values() if outcome.instance]
        assert patches == [{"metadata": {"retainedVolumes": {kept.resource_id: kept.name}}}]
        assert driver.steps_towards(nothing(ONE), await driver.find(connection, ONE)).steps == ()

    async def test_instances_never_see_each_other(self, driver: MachineDriver, connection: VimConnection) -> None:
        mine, theirs = self.cluster.wanted(ONE), self.cluster.wanted(OTHER)
        await self.led_to(driver, connection, mine)
        there = await self.led_to(driver, connection, theirs)
        assert differences(await driver.find(connection, ONE), mine) == []
        assert await self.led_to(driver, connection, nothing(ONE)) == Found()
        assert await driver.find(connection, OTHER) == there

    async def test_addresses_are_unique_and_a_fixed_one_is_kept(
        self, driver: MachineDriver, connection: VimConnection
    ) -> None:
        slots = by_slot(await self.led_to(driver, connection, self.cluster.wanted(ONE, workers=5)))
        inside = [port.address for machine in slots.values() for port in machine.ports if port.name == "CP1"]
        assert len(set(inside)) == len(inside) == 6
        assert all(address and ip_address(address) in ip_network(CIDR) for address in inside)
        assert FIXED in [port.address for port in slots["masterNode-1"].ports]

    @pytest.mark.parametrize("fault", list(VimFault))
    async def test_a_refusal_has_its_class_and_is_survived(
        self, driver: MachineDriver, connection: VimConnection, fault: VimFault
    ) -> None:
        wanted = self.cluster.wanted(ONE)
        await self.fail_next_make(driver, connection, fault)
        with pytest.raises(VimError) as refused:
            await self.led_to(driver, connection, wanted)
        assert refused.value.fault is fault
        assert refused.value.temporary is (fault is VimFault.TEMPORARY)
        assert differences(await self.led_to(driver, connection, wanted), wanted) == []

    async def test_the_vim_says_what_is_there(self, driver: MachineDriver, connection: VimConnection) -> None:
        driver.validate(connection)
        assert await driver.check(connection)

    async def test_a_connection_without_an_endpoint_is_refused_by_name(self, driver: MachineDriver) -> None:
        with pytest.raises(BadRequest, match="endpoint"):
            driver.validate(VimConnection(driver.vim_type, {}, {}, {}))
