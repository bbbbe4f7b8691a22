"""The sandbox's driver: the contract's verbs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

from slipway.model.action import Action, Connection
from slipway.model.errors import Forbidden, VimError, VimFault
from slipway.model.machine import Found, Wanted
from slipway.model.plan import Plan
from slipway.model.target import Change, Resource
from slipway.model.vim import SANDBOX
from slipway.vim.machine_by_machine import MachineByMachine
from slipway.vim.machine_by_machine.wanted import resources, wanted_of
from slipway.vim.sandbox import labels
from slipway.vim.sandbox.actions import PREFIX, TIMEOUT, Actions
from slipway.vim.sandbox.connection import LOCAL, access, endpoint
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.hands import Hands
from slipway.vim.sandbox.machines import DEFAULT_IMAGE
from slipway.vim.sandbox.places import Places, default_cache

THREADS = 16  # machines that are worked on at the same time
OFF = (
    "the sandbox VIM is turned off, because its machines have wide rights on this host; turn it on with "
    "`slipway serve --sandbox`, or with `sandbox = true` in the settings of every process (docs/sandbox.md)."
)
PLANNER = MachineByMachine(prefix=PREFIX, words="A sandbox", timeout=TIMEOUT)
T = TypeVar("T")


class SandboxDriver:
    """`directory` holds the engine's storage, where the engine is our own. Nothing starts before it is asked for.

    `sockets` are the engines that may be named by `unix://` and their path.
    """

    vim_type = SANDBOX

    def __init__(
        self, directory: Path, engines: Engines | None = None, *, on: bool = True, sockets: tuple[str, ...] = ()
    ) -> None:
        self.turned_off = None if on else OFF
        self._sockets = sockets
        self.engines = engines or Engines(Places(directory, default_cache()))
        self._threads: ThreadPoolExecutor | None = None
        self._actions = Actions(self)

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return self._actions.all

    def validate(self, connection: Connection) -> None:
        if self.turned_off:
            raise Forbidden(f"vimType: {self.turned_off}")
        if (where := endpoint(connection)) not in (LOCAL, *self._named()):
            raise Forbidden(f"interfaceInfo.endpoint: {self._unlisted(where)}")
        access(connection)

    async def check(self, connection: Connection) -> str:
        self.validate(connection)

        def look(hands: Hands) -> str:
            name, version = hands.engine.version()
            machines = len(hands.engine.containers({labels.KIND: "machine"}))
            image = hands.engine.has_image(f"localhost/slipway/{DEFAULT_IMAGE}") or self.engines.image_file.exists()
            missing = "" if image else f"; no machine image yet: {self.engines.places.build_command(DEFAULT_IMAGE)}"
            return (
                f"sandbox on {name} {version}: {machines} machine{'' if machines == 1 else 's'}{missing}; "
                "all machines are on one host, so anti-affinity is not kept"
            )

        return await self.work(connection, look)

    async def find(self, connection: Connection, instance_id: str, inventory: Found | None = None) -> Found:
        return await self.work(connection, lambda hands: hands.find(instance_id))

    def refuse(self, change: Change) -> None:
        PLANNER.refuse(change)

    def resources(self, change: Change) -> tuple[Resource, ...]:
        return tuple(resources(wanted_of(change)))

    def steps(self, change: Change, found: Found) -> Plan:
        return self.steps_towards(wanted_of(change), found)

    def steps_towards(self, wanted: Wanted, found: Found) -> Plan:
        return PLANNER.steps_towards(wanted, found)

    async def work(self, connection: Connection, work: Callable[[Hands], T]) -> T:
        """Blocking work on the connection's engine, in a thread."""
        where = endpoint(connection)
        if self.turned_off:
            raise VimError(self.turned_off[0].upper() + self.turned_off[1:], VimFault.PERMANENT)
        if where not in (LOCAL, *self._named()):
            raise VimError(self._unlisted(where), VimFault.PERMANENT)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="sandbox")
        begun = self._threads.submit(lambda: work(self.engines.hands(where)))
        try:
            return await asyncio.wrap_future(begun)
        except asyncio.CancelledError:
            # What has begun can't be taken back, and an undo must not overtake it. Every call in it has an end.
            await asyncio.to_thread(wait, [begun])
            raise

    def _named(self) -> Iterator[str]:
        return (f"unix://{path}" for path in self._sockets)

    def _unlisted(self, where: str) -> str:
        return f"{where} is not in the setting sandbox_sockets; add the path to it, or write {LOCAL}."

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        self.engines.close()
