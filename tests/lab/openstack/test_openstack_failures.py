"""What goes wrong on a real OpenStack: whose fault it was is told; what was begun is gone on with, or taken back.

Tests that begin with a VNF as it is made share one stack (`kept_stack.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from msgspec.structs import replace

from slipway.model.errors import StepError, VimError, VimFault
from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.model.requests import AnyRequest, HealRequest
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.heat import stack_name
from tests.contract.life import FIRST, INSTANTIATE, TERMINATE, Life, back, out, two_vdus
from tests.contract.plans import Context, hand, run_plan
from tests.lab.openstack.interrupted import interrupted
from tests.lab.openstack.kept_stack import KeptStack, SharingLife, a_kept_stack
from tests.lab.openstack.openstack_lab import OpenStackLab

pytestmark = pytest.mark.group(name="openstack")


@pytest.fixture
def driver() -> Iterator[OpenStackDriver]:
    driver = OpenStackDriver()
    yield driver
    driver.close()


@pytest.fixture(scope="module")
def kept(openstack_lab: OpenStackLab) -> Iterator[KeptStack]:
    with a_kept_stack(openstack_lab) as kept:
        yield kept


@pytest.fixture
def cloud(openstack_lab: OpenStackLab) -> OpenStackLab:
    """What is left is counted after all tests, for there is always the stack that is kept."""
    return openstack_lab


@pytest.fixture
async def life(driver: OpenStackDriver, cloud: OpenStackLab, kept: KeptStack) -> AsyncIterator[Life]:
    flavours = {FIRST: two_vdus()}
    life = SharingLife(driver, cloud.connection(), flavours, files_of=lambda globs, vnfd_id: {}, kept=kept)
    yield life
    await life.ended()


def with_image(life: Life, image: str) -> None:
    flavour = life.flavours[FIRST]
    work = flavour.vdus["work"]
    assert work.image is not None
    vdus = {**flavour.vdus, "work": replace(work, image=replace(work.image, name=image))}
    life.flavours = {FIRST: replace(flavour, vdus=vdus)}


async def fails(life: Life, kind: OperationType, request: AnyRequest) -> StepError:
    with pytest.raises(StepError) as caught:
        await life.run(kind, request)
    return caught.value


async def half_done(life: Life, kind: OperationType, request: AnyRequest, cloud: OpenStackLab) -> Context:
    """The step begins, and this process dies while Heat works."""
    context, plan = life.context(), await life.plan(kind, request)
    (step,) = plan.steps
    await interrupted(life, step, context, cloud)
    return context


async def test_an_image_that_is_not_there_is_named_with_its_vnfc(life: Life) -> None:
    with_image(life, "no-such-image")
    error = await fails(life, OperationType.INSTANTIATE, INSTANTIATE)
    assert "no-such-image" in error.detail
    assert "Cure: " in error.detail
    assert not error.temporary


async def test_a_failed_scale_out_is_named_and_mended_by_the_next_try(life: Life, cloud: OpenStackLab) -> None:
    await life.instantiated()
    with cloud.quota(instances=4):
        error = await fails(life, OperationType.SCALE, out(2))
    assert isinstance(error, VimError)
    assert error.fault is VimFault.QUOTA
    assert "work-" in error.detail
    assert "uota exceeded" in error.detail
    await life.run(OperationType.SCALE, out(2))
    assert await life.counts() == {"base": 1, "work": 4}
    await life.agreed()


async def test_an_instantiation_is_gone_on_with_while_heat_works(life: Life, cloud: OpenStackLab) -> None:
    context = await half_done(life, OperationType.INSTANTIATE, INSTANTIATE, cloud)
    await run_plan(life.driver, await life.plan(OperationType.INSTANTIATE, INSTANTIATE), context)
    life.settle(OperationType.INSTANTIATE, INSTANTIATE, context)
    assert await life.counts() == {"base": 1, "work": 2}
    await life.agreed()


async def test_an_instantiation_is_taken_back_while_heat_works(life: Life, cloud: OpenStackLab) -> None:
    plan = await life.plan(OperationType.INSTANTIATE, INSTANTIATE)
    context = await half_done(life, OperationType.INSTANTIATE, INSTANTIATE, cloud)
    action, args = hand(life.driver, plan.steps[0])
    assert action.undo is not None
    await action.undo(args, context)
    assert await life.found() == Found()


async def test_a_scale_in_is_gone_on_with_while_heat_works(life: Life, cloud: OpenStackLab) -> None:
    await life.instantiated()
    await life.run(OperationType.SCALE, out(2))
    plan = await life.plan(OperationType.SCALE, back())
    context = await half_done(life, OperationType.SCALE, back(), cloud)
    await run_plan(life.driver, plan, context)
    life.settle(OperationType.SCALE, back(), context)
    assert await life.counts() == {"base": 1, "work": 3}
    await life.agreed()


async def test_a_stack_deleted_behind_our_back_is_named_and_made_again_by_a_heal_of_all(
    life: Life, cloud: OpenStackLab
) -> None:
    await life.instantiated()
    await asyncio.to_thread(cloud.clear)
    error = await fails(life, OperationType.SCALE, out())
    name = stack_name(life.instance_id)
    assert f"There is no stack {name}: somebody else deleted it. Cure: heal the whole VNF" in error.detail
    await life.run(OperationType.HEAL, HealRequest(additional_params={"all": True}))
    assert await life.counts() == {"base": 1, "work": 2}
    await life.agreed()


async def test_a_heal_with_all_makes_ports_and_volumes_anew_and_of_the_whole_the_stack(life: Life) -> None:
    await life.instantiated()
    (sick, well), before = life.vnfcs(), await life.found()
    held = {one.id: {*(port.id for port in one.ports), *(disk.id for disk in one.volumes)} for one in before.machines}
    await life.run(OperationType.HEAL, HealRequest(vnfc_instance_id=(sick,), additional_params={"all": True}))
    after = await life.found()
    there = {*(port.id for port in after.ports), *(disk.id for disk in after.volumes)}
    assert not held[sick] & there
    assert held[well] <= there
    await life.agreed()
    await life.run(OperationType.HEAL, HealRequest(additional_params={"all": True}))
    assert (await life.found()).objects[0].id != before.objects[0].id
    assert await life.counts() == {"base": 1, "work": 2}
    await life.agreed()


async def test_a_server_deleted_behind_our_back_is_shown_as_broken_and_healed_with_its_port(
    life: Life, cloud: OpenStackLab
) -> None:
    await life.instantiated()
    (sick, _), before = life.vnfcs(), await life.found()
    (machine,) = (one for one in before.machines if one.id == sick)
    await asyncio.to_thread(cloud.remove_server, machine.resource_id)
    assert [one.id for one in (await life.found()).machines if not one.ready] == [sick]
    await life.run(OperationType.SCALE, out())
    await life.run(OperationType.HEAL, HealRequest(vnfc_instance_id=(sick,), cause="silent since noon"))
    assert "silent since noon" in await asyncio.to_thread(cloud.reasons, stack_name(life.instance_id))
    after = await life.found()
    assert {port.id for port in machine.ports} <= {port.id for port in after.ports}
    assert all(one.ready for one in after.machines)
    await life.agreed()


async def test_what_somebody_marked_is_not_made_anew_by_a_scale(life: Life, cloud: OpenStackLab) -> None:
    await life.instantiated()
    before = {one.name: one.resource_id for one in (await life.found()).machines}
    await asyncio.to_thread(cloud.mark_unhealthy, stack_name(life.instance_id), "work-0")
    await life.run(OperationType.SCALE, out())
    after = {one.name: one.resource_id for one in (await life.found()).machines}
    assert before.items() <= after.items()
    await life.agreed()


async def test_a_termination_while_heat_works_leaves_nothing(life: Life, cloud: OpenStackLab) -> None:
    await life.instantiated()
    await half_done(life, OperationType.SCALE, out(), cloud)
    await life.run(OperationType.TERMINATE, TERMINATE)
    assert await life.found() == Found()
