"""A loop that polls the database, and does so at once when it is woken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import InterfaceError, OperationalError

log = logging.getLogger(__name__)

DATABASE_UNAVAILABLE = (OperationalError, InterfaceError)


class PollLoop:
    """While the database is unavailable it goes on polling."""

    def __init__(self, poll: float) -> None:
        self._poll = poll
        self._wake = asyncio.Event()
        self.ended = False

    def wake(self) -> None:
        self._wake.set()

    def end(self) -> None:
        """No round begins any more; one may be under way."""
        self.ended = True
        self._wake.set()

    async def run(self, poll: Callable[[], Awaitable[None]]) -> None:
        """Until `end` is called."""
        while not self.ended:
            self._wake.clear()
            try:
                await poll()
            except DATABASE_UNAVAILABLE as error:
                log.warning("the database does not answer, trying again: %s", error.orig)
            try:
                async with asyncio.timeout(self._poll):
                    await self._wake.wait()
            except TimeoutError:
                pass
