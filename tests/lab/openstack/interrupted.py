"""A step whose process dies while Heat works."""

from __future__ import annotations

import asyncio

import pytest

from slipway.model.plan import Step
from slipway.vim.openstack.heat import stack_name
from tests.contract.life import Life
from tests.contract.plans import Context, hand
from tests.lab.openstack.openstack_lab import OpenStackLab


async def interrupted(life: Life, step: Step, context: Context, cloud: OpenStackLab) -> None:
    """Heat works when the process dies. A moment later it may be done: a server of the lab is gone within a second."""
    action, args = hand(life.driver, step)
    task = asyncio.ensure_future(action.run(args, context))
    while not (await asyncio.to_thread(cloud.status, stack_name(life.instance_id))).endswith("_IN_PROGRESS"):
        assert not task.done(), f"Heat was done before it was seen to work: {task}"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
