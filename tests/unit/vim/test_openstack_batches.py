"""A change of a stack in many batches: what its plan carries, and what each of its steps makes of that."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from slipway.model.descriptor import Flavour
from slipway.model.errors import StepError
from slipway.model.plan import Plan
from slipway.model.target import Change, VnfTarget
from slipway.vim.openstack.stack_change import ChangeStack, as_args, following_change, whole_change
from slipway.vim.openstack.stack_steps import steps_of
from tests.unit.vim.openstack_hots import INDEXED, indexed_flavour
from tests.unit.vim.openstack_targets import fixed, flavour, link, target
from tests.unit.vim.test_openstack_package_change import change, standing, with_image
from tests.unit.vim.test_openstack_stack_step import ONE, SCALE_OUT, TWO, member

MEMBERS = 100
LARGEST = 400_000  # bytes: the stack before and after it, its members, and a few hundred bytes for each batch


def generated(made_of: Flavour, **more: Any) -> VnfTarget:
    return target(made_of, members=["base-0", *(f"work-{slot}" for slot in range(MEMBERS))], **more)


def copies(made_of: Flavour) -> VnfTarget:
    addresses = (fixed(f"192.0.2.{slot}") for slot in range(MEMBERS))
    links = (link("VDU1_CP1", *addresses, network="net0"), link("VDU2_CP1", network="net1"))
    names = [*(f"VDU1-{slot}" for slot in range(MEMBERS)), "VDU2-0"]
    return target(made_of, files=INDEXED, links=links, members=names)


def new_image(of_package: bool) -> Change:
    """For a hundred VNFCs, one after another; of a generated stack, or one of the package."""
    if of_package:
        return change(copies(indexed_flavour()), copies(with_image(indexed_flavour(), "VDU1", "debian-13")), "VDU1")
    return change(generated(flavour()), generated(with_image(flavour(), "work", "debian-13")), "work")


def planned(now: Change) -> Plan:
    assert now.before is not None
    return steps_of(now, standing(now.before)).checked()


def whole(plan: Plan) -> list[ChangeStack]:
    """As the journal gives them back."""
    journal = {step.id: msgspec.json.decode(msgspec.json.encode(step.args)) for step in plan.steps}
    return [whole_change(journal[step.id], journal.__getitem__) for step in plan.steps]


@pytest.mark.parametrize("of_package", [False, True])
def test_a_plan_grows_with_the_change_and_not_with_batches_times_members(of_package: bool) -> None:
    plan = planned(new_image(of_package))
    assert len(plan.steps) == MEMBERS
    assert len(msgspec.json.encode(plan)) < LARGEST
    assert max(len(msgspec.json.encode(step)) for step in plan.steps[1:]) < 2000


@pytest.mark.parametrize("of_package", [False, True])
def test_each_step_begins_where_the_one_before_it_ends(of_package: bool) -> None:
    now = new_image(of_package)
    changes = whole(planned(now))
    for before, after in pairwise(changes):
        assert after.before == before.after
        assert after.former == before.members
        assert after.known == before.known
    (at_once,) = whole(planned(dataclasses.replace(now, batches=())))
    assert changes[0].before == at_once.before
    assert changes[-1].after == at_once.after
    assert changes[-1].members == at_once.members


def test_a_step_that_follows_says_what_its_own_members_became() -> None:
    changes = whole(planned(new_image(False)))
    assert changes[0].reported == ()  # all
    assert [one.reported for one in changes[1:]] == [(f"work-{slot}",) for slot in range(1, MEMBERS)]


class TestDifferences:
    def went_on(self, earlier: ChangeStack, later: ChangeStack) -> ChangeStack:
        following = following_change("one", earlier, later)
        assert following is not None
        journal = {"one": as_args(earlier), "two": as_args(following)}
        return whole_change(journal["two"], journal.__getitem__)

    def test_members_come_and_go(self) -> None:
        back = ChangeStack(before=TWO, after=ONE, members=(member(0),), former=SCALE_OUT.members, known=SCALE_OUT.known)
        assert replace(self.went_on(SCALE_OUT, back), reported=()) == back
        assert self.went_on(SCALE_OUT, back).reported == ("work-0", "work-1"), "so that undo tells of who comes back"
        again = replace(SCALE_OUT, before=ONE, former=back.members, members=(member(0), member(1), member(2)))
        assert replace(self.went_on(back, again), reported=()) == again

    def test_what_a_request_says_is_null_stays_null(self) -> None:
        """A merge patch has no way to say so."""
        earlier = replace(SCALE_OUT, after=replace(TWO, parameters={"a": 1}))
        later = replace(
            earlier, before=earlier.after, former=earlier.members, after=replace(TWO, parameters={"a": None})
        )
        assert following_change("one", earlier, later) is None  # so it is carried whole

    def test_renewals_are_those_of_the_step_alone(self) -> None:
        earlier = replace(SCALE_OUT, renewed=("a",), held=("p",), leaving=("b",), stopped=("b",), recreated="1")
        later = ChangeStack(before=TWO, after=TWO, members=earlier.members, former=earlier.members, known=("vnfc-0",))
        assert self.went_on(earlier, later) == later

    def test_a_journal_without_the_step_before_is_named(self) -> None:
        def lost(step: str) -> dict[str, Any]:
            raise StepError(f"There is no step {step!r} in this plan.")

        with pytest.raises(StepError, match="no step 'one'"):
            whole_change({"follows": "one"}, lost)
