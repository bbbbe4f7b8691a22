"""What every VIM driver must do, whatever it is made of (docs/contracts/vim.md): lives of an instance on it.

Subclass DriverContract and give what docs/contracts/vim.md lists: at least the fixtures `driver` and `connection`, and
`container` and `has_ports` where they are others. The tests look at what the VIM holds and at what the record says,
never at how many steps a driver needs.
"""

from __future__ import annotations

import dataclasses
import itertools
from random import Random

import pytest

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import HealRequest
from slipway.model.target import Renewal
from slipway.vim.contract import VimDriver
from tests.contract.driver_changes import ChangesContract
from tests.contract.life import FIRST, INSTANTIATE, OTHER, TERMINATE, UPDATE, Life, back, heal, known_ids, out, two_vdus
from tests.contract.plans import run_plan, undo_steps


class DriverContract(ChangesContract):
    async def test_what_was_made_is_what_was_wanted_and_what_the_record_says(self, life: Life) -> None:
        await life.instantiated()
        assert await life.counts() == {"base": 1, "work": 2}
        await life.agreed()

    async def test_when_all_is_as_wanted_there_is_nothing_to_do(self, life: Life) -> None:
        await life.instantiated()
        found = await life.reconciled()
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
        await life.instantiated()
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
        await life.run(OperationType.SCALE, back(), twice=True)
        assert await life.counts() == {"base": 1, "work": 2}
        await life.agreed()
        await life.run(OperationType.HEAL, HealRequest(), twice=True)
        await life.agreed()
        await life.run(OperationType.TERMINATE, TERMINATE, twice=True)
        assert await life.found() == Found()

    async def test_a_vim_that_has_nothing_of_an_instance_says_so_whatever_its_record_has(self, life: Life) -> None:
        """Else an instance could be led to another VIM, and what it has be left behind."""
        await life.instantiated()
        recorded = life.recorded
        assert recorded.own_ids & (await life.driver.find(life.connection, life.instance_id, recorded)).own_ids
        await life.run(OperationType.TERMINATE, TERMINATE)
        assert (await life.driver.find(life.connection, life.instance_id, recorded)).own_ids == set()

    async def test_it_goes_on_after_a_stop_at_any_step(self, life: Life) -> None:
        steps = len((await life.plan(OperationType.INSTANTIATE, INSTANTIATE)).steps)
        for stop in self.stops(steps):
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
        for stop in self.stops(steps):
            context = life.context()
            plan = await life.plan(OperationType.INSTANTIATE, INSTANTIATE)
            done = await run_plan(life.driver, plan, context, stop_after=stop)
            await undo_steps(life.driver, done, context, twice=True)
            assert await life.found() == Found(), f"stopped after {stop}"

    async def test_undo_of_a_scale_out_leaves_what_was_there(self, life: Life) -> None:
        await life.instantiated()
        before = await life.found()
        plan = await life.plan(OperationType.SCALE, out(2))
        assert not any(step.irreversible for step in plan.steps)
        for stop in self.stops(len(plan.steps)):
            await life.roll_back(OperationType.SCALE, out(2), stop)
            assert known_ids(await life.found()) == known_ids(before), f"stopped after {stop}"
            await life.agreed()

    async def test_a_scale_out_only_adds_and_a_scale_in_only_removes(self, life: Life) -> None:
        await life.instantiated()
        first = set(life.vnfcs())
        await life.run(OperationType.SCALE, out(2))
        grown = set(life.vnfcs())
        assert first < grown
        await life.run(OperationType.SCALE, back(1))
        assert set(life.vnfcs()) < grown
        assert await life.counts() == {"base": 1, "work": 3}
        await life.agreed()

    async def test_members_that_leave_are_those_that_were_chosen(self, life: Life) -> None:
        await life.instantiated()
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
        await life.instantiated()
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
        await life.instantiated()
        plan = await life.plan(OperationType.HEAL, heal(life.vnfcs()[0]))
        assert any(step.irreversible for step in plan.steps)

    async def test_nothing_is_left_of_a_half_made_instance(self, life: Life) -> None:
        plan = await life.plan(OperationType.INSTANTIATE, INSTANTIATE)
        context = life.context()
        await run_plan(life.driver, plan, context, stop_after=1)
        life.settle(OperationType.INSTANTIATE, INSTANTIATE, context)
        await life.run(OperationType.TERMINATE, TERMINATE)
        assert await life.found() == Found()

    async def test_instances_never_see_each_other(
        self, driver: VimDriver, elsewhere: VimConnection, life: Life
    ) -> None:
        other = Life(driver, elsewhere, self.flavours(), OTHER, files_of=self.files_of)
        await life.instantiated()
        await other.run(OperationType.INSTANTIATE, INSTANTIATE)
        await life.run(OperationType.TERMINATE, TERMINATE)
        assert await life.found() == Found()
        await other.agreed()

    async def test_batches_come_one_after_another_where_one_step_changes_several_nodes(self, life: Life) -> None:
        """No step touches nodes of two batches, and those of a later one name those of an earlier one.

        Where each node has steps of its own, these wait for the hooks that bring the batch before back (lcm/).
        """
        await life.instantiated()
        healed = heal(*life.vnfcs())
        change = life.change(OperationType.HEAL, healed)
        names = [one.name for one in (change.after.members if change.after else ()) if one.vdu == "work"]
        found = await life.reconciled()
        at_once = life.driver.steps(change, found).checked()
        for batches in (tuple((name,) for name in names), tuple((name,) for name in reversed(names))):
            plan = life.driver.steps(dataclasses.replace(change, batches=batches), found).checked()
            turns = [{step.id for step in plan.steps if {*step.nodes}.intersection(batch)} for batch in batches]
            assert all(turns), "no step names the nodes of a batch"
            assert sum(len(turn) for turn in turns) == len(set[str]().union(*turns)), "a step of two batches"
            if any(len(step.nodes) > 1 for step in at_once.steps):
                for earlier, later in itertools.pairwise(turns):
                    assert all(earlier <= _all_before(plan, id_) for id_ in later)

    async def test_a_heal_in_batches_leads_where_one_at_once_does(self, life: Life) -> None:
        await life.instantiated()
        healed = heal(*life.vnfcs())
        change = life.change(OperationType.HEAL, healed)
        members = change.after.members if change.after else ()
        batches = tuple((one.name,) for one in members if one.vdu == "work")
        found = await life.reconciled()
        context = life.context()
        await run_plan(life.driver, life.driver.steps(dataclasses.replace(change, batches=batches), found), context)
        life.settle(OperationType.HEAL, healed, context)
        assert {one.id for one in members} <= {one.id for one in (await life.found()).machines}
        assert await life.counts() == {"base": 1, "work": 2}
        await life.agreed()

    @pytest.mark.parametrize("seed", range(4))
    async def test_a_step_that_needs_another_names_it(self, life: Life, seed: int) -> None:
        """Steps run in any order that their `after` allows. Without a chance the last in the plan come first."""
        life.chance = Random(seed)
        for kind, request in (
            (OperationType.INSTANTIATE, INSTANTIATE),
            (OperationType.SCALE, out(2)),
            (OperationType.HEAL, HealRequest()),
            (OperationType.CHANGE_VNFPKG, UPDATE),
            (OperationType.SCALE, back()),
        ):
            await life.run(kind, request)
            await life.agreed()
        await life.run(OperationType.TERMINATE, TERMINATE)
        assert await life.found() == Found()

    async def test_a_vnfd_of_the_other_kind_is_refused(self, life: Life) -> None:
        other = Life(
            life.driver, life.connection, {FIRST: two_vdus(container=not self.container)}, files_of=self.files_of
        )
        with pytest.raises(Unprocessable, match="choose"):
            life.driver.refuse(other.change(OperationType.INSTANTIATE, INSTANTIATE))

    async def test_a_connection_without_an_endpoint_is_refused_by_name(self, life: Life) -> None:
        with pytest.raises(BadRequest, match="endpoint"):
            life.driver.validate(VimConnection(life.driver.vim_type, {}, {}, {}))


def _all_before(plan: Plan, step_id: str) -> set[str]:
    """The steps that it waits for, directly or not."""
    after = {step.id: step.after for step in plan.steps}
    before, open_ = set[str](), [step_id]
    while open_:
        new = {*after[open_.pop()]} - before
        before |= new
        open_ += new
    return before
