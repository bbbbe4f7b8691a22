"""The slots that steps run in, and how many want one: the length of a worker's queue."""

from __future__ import annotations

import asyncio
from typing import Literal


class Slots(asyncio.Semaphore):
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
