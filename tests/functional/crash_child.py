"""What runs in the process that is killed. Apart from the tests, so that a fork server has it loaded beforehand."""

from __future__ import annotations

import asyncio
import os
import signal

from slipway.settings import Settings
from tests.functional.rig import rig_in


def work(settings: Settings, operation_id: str, edge: str, step_id: str) -> None:
    def end_here(at_edge: str, at_step: str, /) -> None:
        if (at_edge, at_step) == (edge, step_id):
            os.kill(os.getpid(), signal.SIGKILL)

    async def until_rest() -> None:
        async with rig_in(settings, boundary=end_here) as rig:
            await rig.rest(operation_id)

    asyncio.run(until_rest())


def work_with_luck(settings: Settings, operation_id: str, boundaries_left: int | None) -> None:
    """Run the worker until the operation rests, or until so many boundaries are passed: then the end is sudden."""
    left = boundaries_left

    def count_down(edge: str, step: str, /) -> None:
        nonlocal left
        if left is not None:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    async def until_rest() -> None:
        async with rig_in(settings, boundary=count_down) as rig:
            await rig.rest(operation_id)

    asyncio.run(until_rest())
