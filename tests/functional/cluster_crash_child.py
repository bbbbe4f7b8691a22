"""What runs in the process that is killed, again and again, in a cluster's operation."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from slipway.settings import Settings
from slipway.simulator.vim.driver import SimulatedDriver
from tests.functional.cluster_rig import cluster_rig
from tests.functional.lives import Place, deadly_boundary


def work_on_a_cluster(
    settings: Settings,
    operation_id: str,
    deadly: Collection[Place],
    grave: Path,
    simulated: type[SimulatedDriver] = SimulatedDriver,
) -> None:
    """Run the worker until the operation rests; the end is sudden at each deadly place, but once at each."""

    async def until_rest() -> None:
        async with cluster_rig(settings, fault_injector=deadly_boundary(deadly, grave), simulated=simulated) as rig:
            await rig.rig.rest(operation_id)

    asyncio.run(until_rest())
