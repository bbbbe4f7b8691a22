"""A worker: claims operations, runs many at once, keeps its lease, and takes over from workers whose lease has ended.

Nothing here touches an operation of a live worker, neither at the start nor at the end of a process. A worker that was
frozen past its lease finds every write refused by the epoch and stops what it ran.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from slipway.engine.journal import Journal
from slipway.engine.run import Run
from slipway.engine.seam import Boundary, Lifecycle, Unwatched, Watch
from slipway.engine.slots import Slots
from slipway.model.action import Action
from slipway.model.errors import LeaseLost
from slipway.model.operation import CancelMode
from slipway.store import operations, steps, workers
from slipway.store.database import Database
from slipway.store.operations import Held
from slipway.store.rounds import DATABASE_AWAY, Rounds

log = logging.getLogger(__name__)

PRUNE_EVERY = 3600.0


class Worker:
    def __init__(
        self,
        database: Database,
        lifecycle: Lifecycle,
        actions: Mapping[str, Action[Any]],
        *,
        lease: float = 15.0,
        poll: float = 0.5,
        operations_at_once: int = 100,
        steps_at_once: int = 64,
        retention: float = 30 * 86400.0,
        boundary: Boundary | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.id = f"{socket.gethostname()[:32]}-{os.getpid()}-{secrets.token_hex(6)}"
        self._database = database
        self._lifecycle = lifecycle
        self._actions = actions
        self._lease = lease
        self._rounds = Rounds(min(poll, lease / 3))
        self._operations_at_once = operations_at_once
        self.slots = Slots(steps_at_once)
        self._retention = retention
        self._boundary = boundary
        self._watch = watch or Unwatched()
        self._journal = Journal(database)
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._beat_at = 0.0
        self._watch_orphans_from = 0.0
        self._prune_at = 0.0

    def wake(self) -> None:
        """There may be something to claim or to cancel: look now rather than at the next poll."""
        self._rounds.wake()

    def cancel(self, operation_id: str, mode: CancelMode) -> None:
        """Cancel at once what runs here; what runs elsewhere is found there at the next poll."""
        if run := self._runs.get(operation_id):
            run.cancel(mode)

    async def begin(self, *, alone: bool = False) -> None:
        """Take a lease. `alone`: nobody else uses the database, so all that looks claimed is orphaned."""
        if alone:
            await self._database.write(workers.forget_all)
        await self._database.write(workers.beat, self.id, self._lease)

    async def serve(self) -> None:
        """Until `leave` is called: keep the lease, claim, watch for cancels."""
        await self._rounds.run(self._round)

    async def leave(self, grace: float) -> None:
        """Begin nothing new, let steps under way end for `grace` seconds, hand back what is left."""
        self._rounds.end()
        for run in self._runs.values():
            run.leave()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._database.write(workers.leave, self.id)

    async def _round(self) -> None:
        now = time.monotonic()
        if now >= self._beat_at:
            await self._beat(now)
        room = self._operations_at_once - len(self._runs)
        orphans = now >= self._watch_orphans_from
        if room > 0 and await self._database.read(operations.any_claimable, self.id, list(self._runs), orphans=orphans):
            claimed = await self._database.write(operations.claim, self.id, list(self._runs), room, orphans=orphans)
            if self._rounds.over:  # since the claim began: `leave` does not know of these any more
                await self._database.write(_hand_back, claimed)
                return
            for held in claimed:
                self._start(held)
        if self._runs:
            for operation_id, mode in (await self._database.read(operations.cancels, self.id)).items():
                self.cancel(operation_id, mode)

    async def _beat(self, now: float) -> None:
        if not await self._database.write(workers.beat, self.id, self._lease):
            # Our lease had ended: the database was away or we were frozen, and the others may be in the same place.
            # They get a whole lease to say that they live before anything is taken from them.
            self._watch_orphans_from = time.monotonic() + self._lease
        self._beat_at = now + self._lease / 3
        if now >= self._prune_at:
            self._prune_at = now + PRUNE_EVERY
            await self._database.write(self._prune)

    def _prune(self, connection: Connection) -> None:
        workers.forget_dead(connection)
        steps.prune(connection, time.time() - self._retention)

    def _start(self, held: Held) -> None:
        operation_id = held.operation.id
        run = Run(held, self._actions, self._lifecycle, self._journal, self.slots, self._boundary, self._watch)
        self._runs[operation_id] = run
        task = asyncio.create_task(self._run(operation_id, run), name=f"operation {operation_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, operation_id: str, run: Run) -> None:
        try:
            with self._watch.operation(run.held.operation, begins=not run.held.planned):
                await _to_rest(run)
        finally:
            full = len(self._runs) >= self._operations_at_once
            if self._runs.get(operation_id) is run:
                del self._runs[operation_id]
            if full:
                self._rounds.wake()


async def _to_rest(run: Run) -> None:
    try:
        await run.to_rest()
    except LeaseLost as lost:
        log.warning("%s", lost.detail)
    except DATABASE_AWAY as error:
        # Still ours on paper, and no longer running here: the next round that reaches the database takes it up.
        log.warning("operation %s waits for the database: %s", run.held.operation.id, error.orig)


def _hand_back(connection: Connection, claimed: list[Held]) -> None:
    for held in claimed:
        operations.release(connection, held.operation.id, held.epoch)
