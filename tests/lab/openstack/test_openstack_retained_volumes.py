"""A termination that retains data on a real OpenStack: of the whole VNF its volumes are left, and said, whatever form
its template has."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.model.target import PackageFile
from slipway.vim.openstack.driver import OpenStackDriver
from tests.contract.life import FIRST, INSTANTIATE, TERMINATE, Life, two_vdus
from tests.contract.plans import run_plan
from tests.lab.openstack.hot_packages import grouped, indexed
from tests.lab.openstack.interrupted import interrupted
from tests.lab.openstack.openstack_lab import OpenStackLab

pytestmark = pytest.mark.group(name="storage")

RETAINING = replace(TERMINATE, additional_params={"retain_data": True})


def generated(vnfd_id: str) -> dict[str, PackageFile]:
    return {}


@pytest.fixture
def driver() -> Iterator[OpenStackDriver]:
    driver = OpenStackDriver()
    yield driver
    driver.close()


def remove_volumes(cloud: OpenStackLab, volumes: set[str]) -> None:
    api = cloud.user.block_storage
    for id_ in volumes:
        volume = api.get_volume(id_)
        assert volume.status == "available"
        api.delete_volume(volume)
        api.wait_for_delete(volume)


@pytest.mark.parametrize("form", [generated, indexed, grouped])
async def test_the_volumes_are_left_and_nothing_else(
    form: Callable[[str], dict[str, PackageFile]], driver: OpenStackDriver, cloud: OpenStackLab
) -> None:
    """Killed while Heat is told, too: the next run finds that, and goes on."""
    life = Life(driver, cloud.connection(), {FIRST: two_vdus()}, files_of=lambda globs, vnfd_id: form(vnfd_id))
    before = cloud.holdings()
    await life.run(OperationType.INSTANTIATE, INSTANTIATE)
    volumes = {one.id for one in (await life.found()).volumes}
    assert len(volumes) == 2
    context, plan = life.context(), await life.plan(OperationType.TERMINATE, RETAINING)
    await interrupted(life, plan.steps[0], context, cloud)
    await run_plan(driver, plan, context)
    assert context.outcomes["remove stack"].instance == {
        "metadata": {"retainedVolumes": dict.fromkeys(volumes, "data")}
    }
    assert await life.found() == Found()
    assert cloud.left_since(before) == {"volumes": volumes}
    remove_volumes(cloud, volumes)


async def test_one_without_it_after_one_that_was_given_up_leaves_nothing(
    driver: OpenStackDriver, cloud: OpenStackLab
) -> None:
    life = Life(driver, cloud.connection(), {FIRST: two_vdus()}, files_of=lambda globs, vnfd_id: grouped(vnfd_id))
    await life.run(OperationType.INSTANTIATE, INSTANTIATE)
    context, plan = life.context(), await life.plan(OperationType.TERMINATE, RETAINING)
    await interrupted(life, plan.steps[0], context, cloud)
    await life.run(OperationType.TERMINATE, TERMINATE)
    assert await life.found() == Found()
