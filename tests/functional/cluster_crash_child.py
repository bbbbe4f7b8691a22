"""What runs in the process that is killed, again and again, in a cluster's operation."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Collection
from pathlib import Path

from slipway.settings import Settings
from tests.functional.cluster_rig import cluster_rig

Place = tuple[str, str]  # the edge of a step, and the step


def work(settings: Settings, operation_id: str, deadly: Collection[Place], grave: Path) -> None:
    """Run the worker until the operation rests; the end is sudden at each deadly place, but once at each."""
    survived = deaths_in(grave)

    def die(edge: str, step: str, /) -> None:
        if (edge, step) in deadly and (edge, step) not in survived:
            with grave.open("a") as file:
                file.write(f"{edge}\t{step}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    async def until_rest() -> None:
        async with cluster_rig(settings, boundary=die) as rig:
            await rig.rig.rest(operation_id)

    asyncio.run(until_rest())


def deaths_in(grave: Path) -> set[Place]:
    lines = grave.read_text().splitlines() if grave.exists() else []
    return {(edge, step) for edge, _, step in (line.partition("\t") for line in lines)}
