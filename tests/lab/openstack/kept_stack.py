"""A VNF that several tests begin with: to make a stack for each of them takes longer than what most of them look at.

What a test leaves is there for the next one, scaled back if need be. Where that is not the VNF as it was made (another
package, something broken), it is removed and made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from slipway.model.errors import RequestError, StepError
from slipway.model.instance import Instance, InstantiationState
from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.model.target import Change
from slipway.vim.openstack.driver import OpenStackDriver
from tests.contract.life import FIRST, INSTANTIATE, Life, back
from tests.contract.plans import Context, run_plan
from tests.lab.openstack.openstack_lab import OpenStackLab

KEPT = "33333333-2222-4333-8444-555555555555"
AS_MADE = {"base-0", "work-0", "work-1"}
WORKERS = 2  # of `work`, as it is made


@dataclass
class KeptStack:
    """Its record, as the last test left it; None: there is none."""

    instance: Instance | None = None


@dataclass
class SharingLife(Life):
    """Its own instance, or, from `instantiated` on, the one that is kept."""

    kept: KeptStack = field(default_factory=KeptStack)

    async def instantiated(self) -> None:
        self.instance_id = KEPT
        self.__post_init__()
        if self.kept.instance is not None:
            self.instance = self.kept.instance
            if await self._is_as_made():
                return
            await self.removed()
            self.__post_init__()
        await self.run(OperationType.INSTANTIATE, INSTANTIATE)

    async def ended(self) -> None:
        """Its own instance goes, by the driver; the one that is kept stays for the next test."""
        if self.instance_id != KEPT:
            await self.removed()
        elif self.instance.vnf.instantiation_state is InstantiationState.INSTANTIATED:
            self.kept.instance = self.instance
        else:
            self.kept.instance = None

    async def removed(self) -> None:
        gone = Change(instance_id=self.instance_id, version=1, inventory=self.recorded)
        await run_plan(self.driver, self.driver.steps(gone, await self.found()), self.context())

    async def _is_as_made(self) -> bool:
        info = self.instance.vnf.instantiated_vnf_info
        if self.instance.vnf.vnfd_id != FIRST or info is None or info.ext_virtual_link_info:
            return False
        try:
            if (more := len(self.vnfcs()) - WORKERS) > 0:
                await self.run(OperationType.SCALE, back(more))
            await self.agreed()
        except (AssertionError, RequestError, StepError):
            return False
        machines = (await self.found()).machines
        return {one.name for one in machines} == AS_MADE and all(one.ready for one in machines)


@contextmanager
def a_kept_stack(lab: OpenStackLab) -> Iterator[KeptStack]:
    """Nothing is left of it, nor of what tests made beside it, or this fails."""
    with lab.nothing_left():
        yield KeptStack()
        asyncio.run(_remove(lab))


async def _remove(lab: OpenStackLab) -> None:
    driver, connection = OpenStackDriver(), lab.connection()
    try:
        gone = Change(instance_id=KEPT, version=1, inventory=Found())
        plan = driver.steps(gone, await driver.find(connection, KEPT, Found()))
        await run_plan(driver, plan, Context(connection, KEPT))
    finally:
        driver.close()
