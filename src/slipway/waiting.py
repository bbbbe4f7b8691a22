"""Waiting with back-off: the pauses of every loop that tries or looks again, and the wait for a condition."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from slipway.model.errors import StepError


class Backoff:
    """Pauses in seconds, each longer than the one before, until `timeout` seconds are over.

        backoff = Backoff(0.2, 3.0, timeout=300)
        while not await is_ready():
            if not await backoff.pause():
                raise ...

    `jitter` makes each pause between half and all of its length, so that many who wait do not come back at once.
    """

    def __init__(
        self,
        first: float,
        longest: float,
        *,
        factor: float = 1.5,
        timeout: float = math.inf,
        jitter: bool = False,
    ) -> None:
        self._first, self._longest, self._factor, self._jitter = first, longest, factor, jitter
        self._next = first
        self._end = time.monotonic() + timeout

    @property
    def remaining(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def reset(self) -> None:
        """Short pauses again, as after progress. The timeout stays."""
        self._next = self._first

    async def pause(self) -> bool:
        """False, without a pause, once the time is over. The last pause ends with it, for a last look."""
        if not (remaining := self.remaining):
            return False
        await asyncio.sleep(min(self._seconds(), remaining))
        return True

    def sleep(self) -> bool:
        """As `pause`, for a thread."""
        if not (remaining := self.remaining):
            return False
        time.sleep(min(self._seconds(), remaining))
        return True

    def _seconds(self) -> float:
        now, self._next = self._next, min(self._next * self._factor, self._longest)
        return random.uniform(now / 2, now) if self._jitter else now  # noqa: S311 - not for secrecy


@dataclass(frozen=True)
class Observation:
    """What one look found. `done` ends the wait; `hopeless` too, with an error."""

    done: bool
    condition: str
    hopeless: bool = False


async def wait_for(look: Callable[[], Awaitable[Observation]], what: str, timeout: float) -> None:  # noqa: ASYNC109
    """`what` is waited for: "node worker-1 to be Ready". A temporary StepError of a look is a condition like others."""
    backoff = Backoff(0.2, 3.0, factor=1.3, timeout=timeout)
    while True:
        try:
            last = await look()
        except StepError as error:
            if not error.temporary:
                raise
            last = Observation(False, error.detail)
        if last.done:
            return
        condition = last.condition.rstrip(".")
        if last.hopeless:
            raise StepError(f"stopped waiting for {what}: {condition}.")
        if not await backoff.pause():
            raise StepError(
                f"timed out after {timeout:g} s waiting for {what} (last condition: {condition}).", temporary=True
            )
