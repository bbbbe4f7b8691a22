"""A call to a simulated host or to the API on it: counted, and subject to the rules of the VIM that has the machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

from slipway.cluster.simulated.tables import ensure_tables
from slipway.model.action import Connection
from slipway.vim.simulated.endpoint import file_of
from slipway.vim.simulated.remote import Explain, Remote, Work
from slipway.vim.simulated.rules import Target

T = TypeVar("T")


class Simulation:
    """All simulated VIMs in a directory, with what runs on their machines."""

    def __init__(self, directory: Path) -> None:
        self._remote = Remote(directory)
        self._known: set[Path] = set()

    async def call(
        self, connection: Connection, name: str, work: Work[T], target: Target, asked: str, explain: Explain
    ) -> T:
        await asyncio.sleep(0)  # as a real call would, it lets others go on
        self._prepare(connection)
        return await self._remote.call(connection, name, work, target, asked=asked, explain=explain)

    def look(self, connection: Connection, work: Work[T]) -> T:
        """At the records themselves: no call, no rules."""
        self._prepare(connection)
        with self._remote.behind(connection) as db:
            return work(db, ())

    def close(self) -> None:
        self._remote.close()

    def _prepare(self, connection: Connection) -> None:
        if (vim := file_of(connection, self._remote.directory)) not in self._known:
            with self._remote.behind(connection) as db:
                ensure_tables(db)
            self._known.add(vim)
