"""Another image and size on a real OpenStack: VNFC by VNFC, back again, and after a crash while Heat works.

What every driver must do in a change of package is in the contract. Here is what Nova and Cinder say about it.
Tests of one form of template share a stack (`kept_stack.py`); those that leave it as it was made come first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.descriptor import Flavour
from slipway.model.errors import StepError
from slipway.model.operation import OperationType
from slipway.model.plan import Step
from slipway.model.target import Change, PackageFile
from slipway.vim.openstack.driver import OpenStackDriver
from tests.contract.life import FIRST, INSTANTIATE, NEXT, ONE, UPDATE, Life, out, two_vdus
from tests.contract.plans import Context, arguments_of, hand, in_order, run_plan, undo_steps
from tests.lab.openstack.hot_packages import grouped, indexed
from tests.lab.openstack.interrupted import interrupted
from tests.lab.openstack.kept_stack import KeptStack, SharingLife, a_kept_stack
from tests.lab.openstack.openstack_lab import OpenStackLab

pytestmark = pytest.mark.group(name="openstack")

KIND = OperationType.CHANGE_VNFPKG
TEMPLATES: dict[str, Callable[[str], dict[str, PackageFile]]] = {
    "generated": lambda vnfd_id: {},
    "copies": lambda vnfd_id: indexed(FIRST),  # the same for both: only images and sizes change
    "group": lambda vnfd_id: grouped(FIRST),
}


@pytest.fixture
def driver() -> Iterator[OpenStackDriver]:
    driver = OpenStackDriver()
    yield driver
    driver.close()


@pytest.fixture(scope="module", params=list(TEMPLATES))
def template(request: pytest.FixtureRequest) -> str:
    """Tests may name those that they need."""
    return str(request.param)


@pytest.fixture(scope="module")
def kept(openstack_lab: OpenStackLab, template: str) -> Iterator[KeptStack]:
    with a_kept_stack(openstack_lab) as kept:
        yield kept


@pytest.fixture
def cloud(openstack_lab: OpenStackLab) -> OpenStackLab:
    """What is left is counted after all tests of a form, for there is always the stack that is kept."""
    return openstack_lab


@pytest.fixture
async def life(
    driver: OpenStackDriver, cloud: OpenStackLab, template: str, kept: KeptStack
) -> AsyncIterator[SharingLife]:
    files = TEMPLATES[template]
    life = SharingLife(
        driver, cloud.connection(), flavours(), files_of=lambda globs, vnfd_id: files(vnfd_id), kept=kept
    )
    yield life
    await life.ended()


def flavours(change: Callable[[Flavour], Flavour] = lambda flavour: flavour) -> dict[str, Flavour]:
    """Another image and size for `work`, and all else as it was."""
    first = two_vdus()
    work = replace(first.vdus["work"], image=two_vdus(version=NEXT).vdus["work"].image, flavour=f"size-{NEXT}")
    return {FIRST: first, NEXT: change(replace(first, vdus={**first.vdus, "work": work}))}


def without_its_image(flavour: Flavour) -> Flavour:
    work = flavour.vdus["work"]
    assert work.image is not None
    missing = replace(work, image=replace(work.image, name="no-such-image"))
    return replace(flavour, vdus={**flavour.vdus, "work": missing})


async def servers(life: Life, cloud: OpenStackLab) -> dict[str, Any]:
    """As Nova has them, by VNFC."""
    found = (await life.found()).machines
    return {one.name: await asyncio.to_thread(cloud.user.compute.get_server, one.resource_id) for one in found}


def made_from(there: dict[str, Any], cloud: OpenStackLab) -> dict[str, tuple[str, str]]:
    names = {one.id: one.name for one in cloud.user.image.images()}
    return {name: (names[one.image.id], one.flavor["original_name"]) for name, one in there.items()}


OLD, NEW = (f"image-{FIRST}", f"size-{FIRST}"), (f"image-{NEXT}", f"size-{NEXT}")


async def addresses(life: Life) -> dict[str, list[tuple[str, str | None]]]:
    return {one.name: [(port.id, port.address) for port in one.ports] for one in (await life.found()).machines}


async def run(life: Life, step: Step, context: Context) -> None:
    action, args = hand(life.driver, step)
    context.outcomes[step.id] = await action.run(args, context)


# Copies are resources of their own, as generated ones.
@pytest.mark.parametrize("template", ["generated", "group"], scope="module")
async def test_an_image_that_is_missing_is_named_and_the_way_back_leaves_what_was(
    life: Life, cloud: OpenStackLab
) -> None:
    life.flavours = flavours(without_its_image)
    await life.instantiated()
    ports = await addresses(life)
    first, *_ = in_order(await life.plan(KIND, UPDATE))
    context = life.context()
    with pytest.raises(StepError, match="no-such-image"):
        await run(life, first, context)
    await undo_steps(life.driver, [first], context, twice=True)
    life.settle(KIND, UPDATE, context, completed=False)
    there = await servers(life, cloud)
    assert made_from(there, cloud) == {"base-0": OLD, "work-0": OLD, "work-1": OLD}
    assert all(one.status == "ACTIVE" for one in there.values())
    assert await addresses(life) == ports
    await life.agreed()
    await life.run(OperationType.SCALE, out())
    await life.agreed()


@pytest.mark.parametrize(("template", "goes_on"), [("generated", True), ("group", False)], scope="module")
async def test_a_change_is_gone_on_with_or_taken_back_while_heat_works(
    life: Life, cloud: OpenStackLab, goes_on: bool
) -> None:
    await life.instantiated()
    ports, plan, context = await addresses(life), await life.plan(KIND, UPDATE), life.context()
    first, *_ = in_order(plan)
    await interrupted(life, first, context, cloud)
    if goes_on:
        await run_plan(life.driver, plan, context)
    else:
        await undo_steps(life.driver, [first], context)
    life.settle(KIND, UPDATE, context, completed=goes_on)
    made = NEW if goes_on else OLD
    assert made_from(await servers(life, cloud), cloud) == {"base-0": OLD, "work-0": made, "work-1": made}
    assert await addresses(life) == ports
    await life.agreed()


async def test_a_rollback_brings_all_back_and_each_update_changes_the_servers_of_its_turn_and_no_other(
    life: Life, cloud: OpenStackLab, template: str
) -> None:
    await life.instantiated()
    ports = await addresses(life)
    await life.roll_back(KIND, UPDATE)
    assert made_from(await servers(life, cloud), cloud) == {"base-0": OLD, "work-0": OLD, "work-1": OLD}
    assert await addresses(life) == ports
    await life.agreed()

    before = await servers(life, cloud)
    plan = await life.plan(KIND, UPDATE)
    steps = in_order(plan)
    assert [step.nodes for step in steps] == (
        [("work-0", "work-1")] if template == "group" else [("work-0",), ("work-1",)]
    )
    context, done = life.context(), set[str]()
    context.planned = arguments_of(plan)
    for step in steps:
        await run(life, step, context)
        done.update(step.nodes)
        found = await life.found()
        standing = {one.resource_id for one in found.machines}
        assert {before[name].id for name in before if name not in done} <= standing
    life.settle(KIND, UPDATE, context)
    after = await servers(life, cloud)
    assert made_from(after, cloud) == {"base-0": OLD, "work-0": NEW, "work-1": NEW}
    assert after["base-0"].id == before["base-0"].id
    assert await addresses(life) == ports
    await life.agreed()
    await life.run(OperationType.SCALE, out())
    assert made_from(await servers(life, cloud), cloud)["work-2"] == NEW


class TestBootVolumes:
    """Servers without an image, which boot from a volume that has one."""

    @pytest.fixture
    def cloud(self, openstack_lab: OpenStackLab) -> Iterator[OpenStackLab]:
        with openstack_lab.nothing_left():
            yield openstack_lab

    @pytest.fixture
    async def life(self, driver: OpenStackDriver, cloud: OpenStackLab) -> AsyncIterator[Life]:
        life = Life(driver, cloud.connection(), {}, files_of=lambda globs, vnfd_id: {})
        yield life
        gone = Change(instance_id=ONE, version=1, inventory=life.recorded)
        await run_plan(driver, driver.steps(gone, await life.found()), life.context())

    def booting(self, image: str, size: str) -> Flavour:
        flavour = two_vdus()
        work = flavour.vdus["work"]
        assert work.image is not None
        root = replace(flavour.storages["data"], image=replace(work.image, name=image))
        return replace(
            flavour,
            vdus={**flavour.vdus, "work": replace(work, image=None, flavour=size)},
            storages={**flavour.storages, "data": root},
        )

    async def test_a_new_size_keeps_the_volume_and_comes_back_with_it(self, life: Life, cloud: OpenStackLab) -> None:
        life.flavours = {
            FIRST: self.booting(f"image-{FIRST}", f"size-{FIRST}"),
            NEXT: self.booting(f"image-{FIRST}", f"size-{NEXT}"),
        }
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        before = {one.id for one in (await life.found()).volumes}
        for change in (life.roll_back, life.run):
            await change(KIND, UPDATE)
            assert {one.id for one in (await life.found()).volumes} == before
            await life.agreed()
        there = await servers(life, cloud)
        assert {there[name].flavor["original_name"] for name in ("work-0", "work-1")} == {f"size-{NEXT}"}

    async def test_a_new_image_makes_the_volume_anew(self, life: Life) -> None:
        life.flavours = {
            FIRST: self.booting(f"image-{FIRST}", f"size-{FIRST}"),
            NEXT: self.booting(f"image-{NEXT}", f"size-{FIRST}"),
        }
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        before, ports = {one.id for one in (await life.found()).volumes}, await addresses(life)
        await life.run(KIND, UPDATE)
        after = await life.found()
        assert not before & {one.id for one in after.volumes}
        assert all(one.ready for one in after.machines)
        assert await addresses(life) == ports
        await life.agreed()
