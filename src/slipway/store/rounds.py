"""Looking at the database again and again: at every poll, and at once when woken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import InterfaceError, OperationalError

log = logging.getLogger(__name__)

DATABASE_AWAY = (OperationalError, InterfaceError)


class Rounds:
    """A database that is away is waited for."""

    def __init__(self, poll: float) -> None:
        self._poll = poll
        self._wake = asyncio.Event()
        self.over = False

    def wake(self) -> None:
        self._wake.set()

    def end(self) -> None:
        """No round begins any more; one may be under way."""
        self.over = True
        self._wake.set()

    async def run(self, look: Callable[[], Awaitable[None]]) -> None:
        """Until `end` is called."""
        while not self.over:
            self._wake.clear()
            try:
                await look()
            except DATABASE_AWAY as error:
                log.warning("the database does not answer, trying again: %s", error.orig)
            try:
                async with asyncio.timeout(self._poll):
                    await self._wake.wait()
            except TimeoutError:
                pass
