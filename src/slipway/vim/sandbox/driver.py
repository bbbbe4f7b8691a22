"""The sandbox's driver: the contract's verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from slipway.model.action import Action, VimConnection
from slipway.model.errors import Forbidden, Unprocessable, VimError, VimFault
from slipway.model.machine import Found
from slipway.model.target import Change
from slipway.model.vim import SANDBOX
from slipway.vim.blocking import BlockingCalls
from slipway.vim.machine_by_machine import MachineByMachine, MachineByMachineDriver
from slipway.vim.machine_by_machine.wanted import wanted_of
from slipway.vim.sandbox import labels
from slipway.vim.sandbox.actions import PREFIX, TIMEOUT, SandboxActions
from slipway.vim.sandbox.connection import LOCAL, access, endpoint
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.machines import DEFAULT_IMAGE
from slipway.vim.sandbox.paths import SandboxPaths, default_cache

OFF = (
    "the sandbox VIM is turned off, because its machines have wide rights on this host; turn it on with "
    "`slipway serve --sandbox`, or with `sandbox = true` in the settings of every process (docs/sandbox.md)."
)
PLANNER = MachineByMachine(prefix=PREFIX, words="A sandbox", timeout=TIMEOUT)
T = TypeVar("T")


class SandboxDriver(MachineByMachineDriver):
    """`directory` holds the engine's storage, where the engine is our own. Nothing starts before it is asked for.

    `sockets` are the engines that may be named by `unix://` and their path.
    """

    vim_type = SANDBOX
    planner = PLANNER

    def __init__(
        self, directory: Path, engines: Engines | None = None, *, on: bool = True, sockets: tuple[str, ...] = ()
    ) -> None:
        self.turned_off = None if on else OFF
        self._sockets = sockets
        self.engines = engines or Engines(SandboxPaths(directory, default_cache()))
        self._calls = BlockingCalls()
        self._actions = SandboxActions(self)

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return self._actions.all

    def validate(self, connection: VimConnection) -> None:
        if self.turned_off:
            raise Forbidden(f"vimType: {self.turned_off}")
        if (where := endpoint(connection)) not in (LOCAL, *self._named()):
            raise Forbidden(f"interfaceInfo.endpoint: {self._unlisted(where)}")
        access(connection)

    async def check(self, connection: VimConnection) -> str:
        self.validate(connection)

        def look(operations: EngineOperations) -> str:
            name, version = operations.engine.version()
            machines = len(operations.engine.containers({labels.KIND: "machine"}))
            image = (
                operations.engine.has_image(f"localhost/slipway/{DEFAULT_IMAGE}") or self.engines.image_file.exists()
            )
            missing = "" if image else f"; no machine image yet: {self.engines.paths.build_command(DEFAULT_IMAGE)}"
            return (
                f"sandbox on {name} {version}: {machines} machine{'' if machines == 1 else 's'}{missing}; "
                "all machines are on one host, so anti-affinity is not kept"
            )

        return await self.work(connection, look)

    def refuse(self, change: Change) -> None:
        super().refuse(change)
        _refuse_ports(change)

    async def find(self, connection: VimConnection, instance_id: str, inventory: Found | None = None) -> Found:
        return await self.work(connection, lambda operations: operations.find(instance_id))

    async def work(self, connection: VimConnection, work: Callable[[EngineOperations], T]) -> T:
        """Blocking work on the connection's engine, in a thread."""
        where = endpoint(connection)
        if self.turned_off:
            raise VimError(self.turned_off[0].upper() + self.turned_off[1:], VimFault.PERMANENT)
        if where not in (LOCAL, *self._named()):
            raise VimError(self._unlisted(where), VimFault.PERMANENT)
        return await self._calls.run(connection, lambda: work(self.engines.operations(where)))

    def _named(self) -> Iterator[str]:
        return (f"unix://{path}" for path in self._sockets)

    def _unlisted(self, where: str) -> str:
        return f"{where} is not in the setting sandbox_sockets; add the path to it, or write {LOCAL}."

    def close(self) -> None:
        self._calls.close()
        self.engines.close()


def _refuse_ports(change: Change) -> None:
    """An engine plugs a container into a network once, and a port is on one. A grant may still connect some."""
    for machine in wanted_of(change).machines:
        there: dict[tuple[str | None, str | None], str] = {}
        for port in machine.ports:
            place = (port.network, port.external_network)
            if not any(place):
                if change.grant_follows:
                    continue
                raise Unprocessable(
                    f"VDU {machine.vdu}: nothing connects its connection point {port.name}, and a sandbox makes no "
                    "port without a network; name it in extVirtualLinks."
                )
            other = there.setdefault(place, port.name)
            if other != port.name:
                raise Unprocessable(
                    f"VDU {machine.vdu}: its connection points {other} and {port.name} are on one network, and a "
                    "sandbox plugs a machine into a network once; put them on two."
                )
