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
from typing import Any, Literal

from sqlalchemy import Connection

from slipway.engine.interfaces import EngineObserver, FaultInjector, NoObserver, OperationHandler
from slipway.engine.journal_writer import JournalWriter
from slipway.engine.operation_run import OperationRun
from slipway.model.action import Action
from slipway.model.errors import LeaseLost
from slipway.model.operation import CancelMode
from slipway.store import operations, steps, workers
from slipway.store.database import Database
from slipway.store.operations import ClaimedOperation
from slipway.store.poll_loop import DATABASE_UNAVAILABLE, PollLoop

log = logging.getLogger(__name__)

PRUNE_EVERY = 3600.0


class StepSlots(asyncio.Semaphore):
    """Limits how many steps run at once, and counts those that run and those that wait."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.waiting = 0
        self.taken = 0

    async def acquire(self) -> Literal[True]:
        self.waiting += 1
        try:
            await super().acquire()
        finally:
            self.waiting -= 1
        self.taken += 1
        return True

    def release(self) -> None:
        self.taken -= 1
        super().release()


class Worker:
    def __init__(
        self,
        database: Database,
        handler: OperationHandler,
        actions: Mapping[str, Action[Any]],
        *,
        lease: float = 15.0,
        poll: float = 0.5,
        operations_at_once: int = 100,
        steps_at_once: int = 64,
        retention: float = 30 * 86400.0,
        fault_injector: FaultInjector | None = None,
        observer: EngineObserver | None = None,
    ) -> None:
        self.id = f"{socket.gethostname()[:32]}-{os.getpid()}-{secrets.token_hex(6)}"
        self._database = database
        self._handler = handler
        self._actions = actions
        self._lease = lease
        self._poll_loop = PollLoop(min(poll, lease / 3))
        self._operations_at_once = operations_at_once
        self._share = max(1, operations_at_once - operations_at_once // 10)
        self.slots = StepSlots(steps_at_once)
        self._retention = retention
        self._fault_injector = fault_injector
        self._observer = observer or NoObserver()
        self._journal = JournalWriter(database)
        self._runs: dict[str, OperationRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._renew_at = 0.0
        self._watch_orphans_from = 0.0
        self._prune_at = 0.0

    def wake(self) -> None:
        """Poll now: there may be something to claim or to cancel."""
        self._poll_loop.wake()

    def cancel(self, operation_id: str, mode: CancelMode) -> None:
        """Cancel at once what runs here; what runs elsewhere is found there at the next poll."""
        if run := self._runs.get(operation_id):
            run.cancel(mode)

    async def take_lease(self, *, alone: bool = False) -> None:
        """Take a lease. `alone`: no other process uses the database, so all that looks claimed is orphaned."""
        if alone:
            await self._database.write(workers.forget_all)
        await self._database.write(workers.renew_lease, self.id, self._lease)

    async def serve(self) -> None:
        """Until `shut_down` is called: keep the lease, claim, watch for cancels."""
        await self._poll_loop.run(self._poll)

    async def shut_down(self, grace: float) -> None:
        """Shut down: start nothing new, give running steps `grace` seconds to end, release all operations."""
        self._poll_loop.end()
        for run in self._runs.values():
            run.stop()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._database.write(workers.release_lease, self.id)

    async def _poll(self) -> None:
        now = time.monotonic()
        if now >= self._renew_at:
            await self._renew_lease(now)
        room = self._operations_at_once - len(self._runs)
        orphans = now >= self._watch_orphans_from
        if room > 0 and await self._database.read(operations.any_claimable, self.id, list(self._runs), orphans=orphans):
            claimed = await self._database.write(
                operations.claim, self.id, list(self._runs), room, self._share, orphans=orphans
            )
            if self._poll_loop.ended:  # since the claim began: `shut_down` does not know of these any more
                await self._database.write(_hand_back, claimed)
                return
            for operation in claimed:
                self._start(operation)
        if self._runs:
            for operation_id, mode in (await self._database.read(operations.cancels, self.id)).items():
                self.cancel(operation_id, mode)

    async def _renew_lease(self, now: float) -> None:
        if not await self._database.write(workers.renew_lease, self.id, self._lease):
            # Our lease had ended: the database was unavailable or we were frozen, and so may be the other workers.
            # They get a whole lease to renew theirs before anything is taken from them.
            self._watch_orphans_from = time.monotonic() + self._lease
        self._renew_at = now + self._lease / 3
        if now >= self._prune_at:
            self._prune_at = now + PRUNE_EVERY
            await self._database.write(self._prune)

    def _prune(self, connection: Connection) -> None:
        workers.forget_dead(connection)
        steps.prune(connection, time.time() - self._retention)

    def _start(self, claimed: ClaimedOperation) -> None:
        operation_id = claimed.operation.id
        run = OperationRun(
            claimed, self._actions, self._handler, self._journal, self.slots, self._fault_injector, self._observer
        )
        self._runs[operation_id] = run
        task = asyncio.create_task(self._run(operation_id, run), name=f"operation {operation_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, operation_id: str, run: OperationRun) -> None:
        try:
            with self._observer.operation(run.claimed.operation, begins=not run.claimed.planned):
                await _run_until_rest(run)
        finally:
            full = len(self._runs) >= self._operations_at_once
            if self._runs.get(operation_id) is run:
                del self._runs[operation_id]
            if full:
                self._poll_loop.wake()


async def _run_until_rest(run: OperationRun) -> None:
    try:
        await run.run_until_rest()
    except LeaseLost as lost:
        log.warning("%s", lost.detail)
    except DATABASE_UNAVAILABLE as error:
        # Still ours on paper, and no longer running here: the next round that reaches the database takes it up.
        log.warning("operation %s waits for the database: %s", run.claimed.operation.id, error.orig)


def _hand_back(connection: Connection, claimed: list[ClaimedOperation]) -> None:
    for one in claimed:
        operations.release(connection, one.operation.id, one.epoch)
