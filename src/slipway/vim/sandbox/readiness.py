"""When a machine is ready: its SSH server says hello. Seen from here where there is a way, else from inside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from slipway.model.errors import VimError, VimFault
from slipway.model.machine import FoundMachine, Machine
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.labels import engine_name
from slipway.vim.sandbox.machines import status
from slipway.waiting import Backoff

SECONDS = 120.0
LONGEST_PAUSE = 0.5
LOOK_EVERY = 2.0  # seconds between looks at whether it still runs
GREETING = b"SSH-"
FROM_INSIDE = ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/22 && read -t 2 -r hello <&3 && [[ $hello == SSH-* ]]"]
T = TypeVar("T")


class Probe(Protocol):
    def __call__(self, work: Callable[[EngineOperations], T]) -> Awaitable[T]: ...


async def until_ssh(machine: Machine, probe: Probe) -> None:
    """Wait with growing pauses; say what its last words were when it gives up."""
    address = await probe(lambda operations: reachable(operations, machine))
    looked, backoff = time.monotonic(), Backoff(0.02, LONGEST_PAUSE, timeout=SECONDS)
    while not await _greets(address, machine, probe):
        now = time.monotonic()
        if now - looked > LOOK_EVERY:
            looked = now
            await probe(lambda operations: _still_runs(operations, machine))
        if not await backoff.pause():
            raise VimError(
                f"timed out after {SECONDS:g} s waiting for SSH of machine {machine.name} on {address or 'it'}, which "
                "runs.",
                VimFault.TEMPORARY,
                cure=f"slipway sandbox logs {machine.name}",
            )


def reachable(operations: EngineOperations, machine: Machine | FoundMachine) -> str | None:
    """An address of the machine that this host has a way to."""
    for wire, address in operations.ways(machine):
        if not wire.isolated:
            return address
    return None


async def _greets(address: str | None, machine: Machine, probe: Probe) -> bool:
    if address is None:
        return await probe(
            lambda operations: operations.engine.execute(engine_name("machine", machine.id), FROM_INSIDE)[0] == 0
        )
    try:
        async with asyncio.timeout(2.0):
            reader, writer = await asyncio.open_connection(address, 22)
            try:
                return (await reader.read(16)).startswith(GREETING)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False


def _still_runs(operations: EngineOperations, machine: Machine) -> None:
    name = engine_name("machine", machine.id)
    container = operations.engine.container(name)
    if container is None or status(container) != "running":
        state = "is gone" if container is None else f"ended with {container['State'].get('ExitCode')}"
        said = "" if container is None else operations.engine.logs(name, 5).strip()
        raise VimError(f"Machine {machine.name} {state} while it started. {said}".strip(), VimFault.TEMPORARY,
                       cure="slipway sandbox check (few inotify instances are a usual cause)")  # fmt: skip
