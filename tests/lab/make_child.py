"""A worker of its own process: makes the machine that it reads, and dies before a call of the engine if told to."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from slipway.model.action import VimConnection
from slipway.model.machine import Wanted
from slipway.model.vim import SANDBOX
from slipway.vim.machine_by_machine.arguments import MakeMachine
from slipway.vim.sandbox import SandboxDriver
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.paths import SandboxPaths, default_cache
from tests.contract.plans import Context


class MortalEngine(Engine):
    """Dies, as by kill -9, at the call named."""

    killed_at = ""

    def __getattribute__(self, name: str) -> Any:
        if name and name == type(self).killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


class MortalEngines(Engines):
    def make(self, url: str) -> Engine:
        return MortalEngine(url)


async def main(directory: Path, killed_at: str) -> None:
    MortalEngine.killed_at = killed_at
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=Wanted)
    driver = SandboxDriver(directory, MortalEngines(SandboxPaths(directory, default_cache()), {}, ()))
    make = next(action for action in driver.actions if action.name == "sandbox.make_machine")
    ctx = Context(VimConnection(SANDBOX, {"endpoint": LOCAL}, {}, {}), wanted.instance_id, "op-1")
    for machine in wanted.machines:
        await make.run(MakeMachine(machine=machine), ctx)
    driver.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
