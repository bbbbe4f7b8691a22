"""What runs in the process that is killed. Apart from the tests, so that a fork server has it loaded beforehand."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from slipway.settings import Settings
from slipway.simulator.vim.driver import SimulatedDriver
from tests.drivers.objects import ObjectsDriver
from tests.drivers.stack import StackDriver
from tests.functional.lives import Place, deadly_boundary
from tests.functional.rig import Rig, rig_in

VIMS = ("machines", "stack", "objects")


def rig_on(vim: str, settings: Settings, **more: Any) -> AbstractAsyncContextManager[Rig]:
    """On a VIM that makes machine by machine, one stack, or objects in waves."""
    if vim == "objects":
        return rig_in(settings, objects=ObjectsDriver(settings.data_dir), **more)
    return rig_in(settings, simulated=StackDriver if vim == "stack" else SimulatedDriver, **more)


def work(
    settings: Settings,
    operation_id: str,
    deadly: Collection[Place] = (),
    grave: Path | None = None,
    vim: str = "machines",
) -> None:
    """Run the worker until the operation rests; the end is sudden at each deadly place, but once at each."""

    async def until_rest() -> None:
        async with rig_on(vim, settings, fault_injector=deadly_boundary(deadly, grave) if grave else None) as rig:
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
        async with rig_in(settings, fault_injector=count_down) as rig:
            await rig.rest(operation_id)

    asyncio.run(until_rest())
