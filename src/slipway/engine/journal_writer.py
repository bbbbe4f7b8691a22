"""Group commit: writes that are waiting at the same time share one transaction, in the order they were given.

Each write keeps its own success or failure (a savepoint), so one operation's lost lease costs the others nothing. While
the database is unavailable writes wait: the fence in each of them says afterwards whether it still may be made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeVar

from sqlalchemy import Connection

from slipway.store.database import Database
from slipway.store.poll_loop import DATABASE_UNAVAILABLE
from slipway.waiting import Backoff

T = TypeVar("T")
Write = Callable[[Connection], Any]

log = logging.getLogger(__name__)

LONGEST_PAUSE = 2.0
BATCH = 200


class JournalWriter:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[Write, asyncio.Future[Any]]] = []
        self._writer: asyncio.Task[None] | None = None

    def write(self, write: Callable[[Connection], T]) -> asyncio.Future[T]:
        """Queue a write. The future is its result, once it is on disk."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        # Each write runs in the context of whoever gave it, and the writer in none: the log tells them apart.
        context = copy_context()
        self._waiting.append((lambda connection: context.run(write, connection), future))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_all(), name="journal", context=Context())
        return future

    async def _write_all(self) -> None:
        batch: list[tuple[Write, asyncio.Future[Any]]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
                results = await self._write_batch([write for write, _ in batch])
                for (_, future), result in zip(batch, results, strict=True):
                    if future.cancelled():
                        continue
                    if isinstance(result, BaseException):
                        future.set_exception(result)
                    else:
                        future.set_result(result)
        finally:
            self._writer = None
            # Broken off, as at the end of a process: no caller may wait for what will not be written.
            for _, future in (*batch, *self._waiting):
                future.cancel()
            self._waiting.clear()

    async def _write_batch(self, writes: list[Write]) -> list[Any]:
        backoff = Backoff(0.05, LONGEST_PAUSE, factor=2.0)
        while True:
            try:
                if len(writes) == 1:
                    return [await self._alone(writes[0])]
                return await self._database.write(_each_apart, writes)
            except DATABASE_UNAVAILABLE as error:
                log.warning("the database does not answer, trying again: %s", error.orig)
                await backoff.pause()

    async def _alone(self, write: Write) -> Any:
        """With the transaction for itself it needs no savepoint."""
        try:
            return await self._database.write(write)
        except DATABASE_UNAVAILABLE:
            raise
        except Exception as error:  # noqa: BLE001 - an edge, as below
            return error


def _each_apart(connection: Connection, writes: list[Write]) -> list[Any]:
    results: list[Any] = []
    for write in writes:
        try:
            with connection.begin_nested():
                results.append(write(connection))
        except DATABASE_UNAVAILABLE:
            raise
        except Exception as error:  # noqa: BLE001 - an edge: what one write raises is its own, the others are kept
            results.append(error)
    return results
