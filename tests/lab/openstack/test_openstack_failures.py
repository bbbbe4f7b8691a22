"""What goes wrong on a real OpenStack: whose fault it was is told; what was begun is gone on with, or taken back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from msgspec.structs import replace

from slipway.model.errors import StepError, VimError, VimFault
from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.model.requests import AnyRequest, HealRequest
from slipway.model.target import Change
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.heat import stack_name
from tests.contract.life import FIRST, INSTANTIATE, ONE, TERMINATE, Life, back, heal, out, two_vdus
from tests.contract.plans import Context, hand, run_plan
from tests.lab.openstack.openstack_lab import OpenStackLab

pytestmark = pytest.mark.group(name="openstack")

NAME = stack_name(ONE)


@pytest.fixture
def driver() -> Iterator[OpenStackDriver]:
    driver = OpenStackDriver()
    yield driver
    driver.close()


@pytest.fixture
async def life(driver: OpenStackDriver, cloud: OpenStackLab) -> AsyncIterator[Life]:
    life = Life(driver, cloud.connection(), {FIRST: two_vdus()}, files_of=lambda globs, vnfd_id: {})
    yield life
    gone = Change(instance_id=ONE, version=1, inventory=life.recorded)
    await run_plan(driver, driver.steps(gone, await life.found()), life.context())


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
    action, args = hand(life.driver, step)
    task = asyncio.ensure_future(action.run(args, context))
    await asyncio.to_thread(cloud.until, lambda: cloud.status(NAME).endswith("_IN_PROGRESS"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await asyncio.to_thread(cloud.status, NAME)).endswith("_IN_PROGRESS")
    return context


async def test_an_image_that_is_not_there_is_named_with_its_vnfc(life: Life) -> None:
    with_image(life, "no-such-image")
    error = await fails(life, OperationType.INSTANTIATE, INSTANTIATE)
    assert "no-such-image" in error.detail
    assert "Cure: " in error.detail
    assert not error.temporary


async def test_a_failed_scale_out_is_named_and_mended_by_the_next_try(life: Life, cloud: OpenStackLab) -> None:
    await life.run(OperationType.INSTANTIATE, INSTANTIATE)
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
    await life.run(OperationType.INSTANTIATE, INSTANTIATE)
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
    await life.run(OperationType.INSTANTIATE, INSTANTIATE)
    await asyncio.to_thread(cloud.clear)
    error = await fails(life, OperationType.SCALE, out())
    assert f"There is no stack {NAME}: somebody else deleted it. Cure: heal the whole VNF" in error.detail
    await life.run(OperationType.HEAL, HealRequest(additional_params={"all": True}))
    assert await life.counts() == {"base": 1, "work": 2}
    await life.agreed()


async def test_a_server_deleted_behind_our_back_is_shown_as_broken_and_healed_with_its_port(
    life: Life, cloud: OpenStackLab
) -> None:
    await life.run(OperationType.INSTANTIATE, INSTANTIATE)
    (sick, _), before = life.vnfcs(), await life.found()
    (machine,) = (one for one in before.machines if one.id == sick)
    await asyncio.to_thread(cloud.remove_server, machine.resource_id)
    assert [one.id for one in (await life.found()).machines if not one.ready] == [sick]
    await life.run(OperationType.SCALE, out())
    await life.run(OperationType.HEAL, heal(sick))
    after = await life.found()
    assert {port.id for port in machine.ports} <= {port.id for port in after.ports}
    assert all(one.ready for one in after.machines)
    await life.agreed()


async def test_a_termination_while_heat_works_leaves_nothing(life: Life, cloud: OpenStackLab) -> None:
    await life.run(OperationType.INSTANTIATE, INSTANTIATE)
    await half_done(life, OperationType.SCALE, out(), cloud)
    await life.run(OperationType.TERMINATE, TERMINATE)
    assert await life.found() == Found()
