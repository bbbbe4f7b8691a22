"""Calls of SDKs that block, in threads. Every driver whose SDK blocks uses this, so that cancelling and bounds are the
same for all of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar
from urllib.parse import urlsplit

from slipway.model.action import VimConnection
from slipway.model.errors import VimError, VimFault

THREADS = 64  # of a driver
THREADS_OF_ONE_PROJECT = 24  # so that no project takes them all
THREADS_OF_ONE_VIM = 16  # so that a VIM that does not answer leaves threads to the project's others
MOST_WAITING = 256  # calls of one project
PORTS = {"http": 80, "https": 443}

T = TypeVar("T")


class BlockingCalls:
    """A driver's threads. None is started before it is needed."""

    def __init__(
        self,
        threads: int = THREADS,
        of_one_project: int = THREADS_OF_ONE_PROJECT,
        of_one_vim: int = THREADS_OF_ONE_VIM,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._threads, self._of_one_project, self._of_one_vim = threads, of_one_project, of_one_vim
        self._most_waiting = most_waiting
        self._pool: ThreadPoolExecutor | None = None
        self._calls: Counter[str] = Counter()  # by project: those that run, and those that wait
        self._slots: dict[Hashable, asyncio.Semaphore] = {}
        self._users: Counter[Hashable] = Counter()
        self._is_closed = False

    async def run(
        self, connection: VimConnection, call: Callable[[], T], *, stop: Callable[[], None] | None = None
    ) -> T:
        """What the call returns or raises. A temporary VimError when too many of the connection's project wait.

        A call that has begun is waited for even if the step is cancelled: it can't be taken back, and an undo must not
        overtake it. So every call needs a time limit of its own, which SDKs have for each request. `stop` is called
        then, to make a long one end earlier. One that still waits for its turn is dropped.
        """
        project = connection.project
        if self._calls[project] >= self._of_one_project + self._most_waiting:
            raise VimError(
                f"{self._most_waiting} calls to VIMs of project {project} wait already.",
                VimFault.TEMPORARY,
                cure="try again later; if it stays like that, see which VIM of the project does not answer.",
            )
        self._calls[project] += 1
        try:
            vim = (project, _server(connection.interface_info.get("endpoint")))
            async with self._slot(vim, self._of_one_vim), self._slot(project, self._of_one_project):
                return await self._begun(call, stop)
        finally:
            self._calls[project] -= 1
            if not self._calls[project]:
                del self._calls[project]

    def close(self) -> None:
        """Calls that wait end with an error, and those that run when the SDK's connections are closed."""
        self._is_closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    @asynccontextmanager
    async def _slot(self, whose: Hashable, most: int) -> AsyncIterator[None]:
        slots = self._slots.setdefault(whose, asyncio.Semaphore(most))
        self._users[whose] += 1
        try:
            async with slots:
                yield
        finally:
            self._users[whose] -= 1
            if not self._users[whose]:
                del self._users[whose], self._slots[whose]

    async def _begun(self, call: Callable[[], T], stop: Callable[[], None] | None) -> T:
        if self._is_closed:
            raise _stopping()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="vim")
        begun = self._pool.submit(call)
        ended = asyncio.wrap_future(begun)
        cancelled: asyncio.CancelledError | None = None
        while not ended.done():
            try:
                await asyncio.wait([ended])
            except asyncio.CancelledError as error:  # may come more than once
                cancelled = error
                if not begun.cancel() and stop is not None:  # it runs already
                    stop()
        if cancelled is not None:
            _ = ended.cancelled() or ended.exception()  # looked at, or asyncio would warn that nobody did
            raise cancelled
        if ended.cancelled():  # by `close`
            raise _stopping()
        return ended.result()


def _server(endpoint: object) -> str:
    """However its path is written, it is the same server."""
    text = str(endpoint)
    try:
        parts = urlsplit(text)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return text
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else text


def _stopping() -> VimError:
    return VimError("Slipway is about to stop.", VimFault.TEMPORARY)
