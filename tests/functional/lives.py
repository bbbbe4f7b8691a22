"""Lives of a worker that end suddenly: it is killed at places of an operation, and started again until that rests."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Collection
from pathlib import Path

from slipway.settings import Settings

Place = tuple[str, str]  # the edge of a step, and the step
Work = Callable[[Settings, str, Collection[Place], Path], None]

forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(["tests.functional.crash_child", "tests.functional.cluster_crash_child"])


def deadly_boundary(deadly: Collection[Place], grave: Path) -> Callable[[str, str], None]:
    """In the process that is killed: the end is sudden at each deadly place, but once at each."""
    survived = deaths_in(grave)

    def die(edge: str, step: str, /) -> None:
        if (edge, step) in deadly and (edge, step) not in survived:
            with grave.open("a") as file:
                file.write(f"{edge}\t{step}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def deaths_in(grave: Path) -> set[Place]:
    lines = grave.read_text().splitlines() if grave.exists() else []
    return {(edge, step) for edge, _, step in (line.partition("\t") for line in lines)}


async def one_life(work: Work, settings: Settings, operation_id: str, deadly: Collection[Place]) -> set[Place]:
    """Until the operation rests. The places where it ended suddenly."""
    grave = settings.data_dir / "grave"
    while code := await _in_a_process(work, settings, operation_id, deadly, grave):
        assert code == -signal.SIGKILL, f"ended with {code} after {grave.read_text() if grave.exists() else 'nothing'}"
    return deaths_in(grave)


async def _in_a_process(work: Work, *args: object) -> int | None:
    process = forks.Process(target=work, args=args)
    process.start()
    ended = asyncio.Event()
    # Several are waited for at once. Threads that join them would take each other's exit codes.
    asyncio.get_running_loop().add_reader(process.sentinel, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), 60)
    finally:
        asyncio.get_running_loop().remove_reader(process.sentinel)
    process.join()
    code = process.exitcode
    process.close()
    return code
