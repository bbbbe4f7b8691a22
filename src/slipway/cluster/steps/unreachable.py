"""Asking several masters of which some may be unreachable: the next is asked before the one before has timed out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Generic, TypeVar

from slipway.cluster.spec import Node
from slipway.model.errors import StepError
from slipway.model.failure_groups import Failure, grouped, listed

T = TypeVar("T")
LIMITS = (6.0, 60.0)  # seconds for all masters: in the first round, and in the second when none answered in the first
HEAD_START = 0.7  # seconds that a master has before the next one is asked as well
REMEMBERED = 120.0  # seconds
MOST = 10_000


class NoMasterAnswers(StepError):
    """Each was asked and none answered: `why` by slot."""

    def __init__(self, what: str, why: dict[str, StepError]) -> None:
        alike = grouped(Failure(slot, error.detail.rstrip("."), (slot,)) for slot, error in why.items())
        reasons = "; ".join(f"{listed(one.who for one in group)}: {group[0].why}" for group in alike)
        temporary = any(error.temporary for error in why.values())
        super().__init__(f"{what}. Asked: {reasons or 'none, for there is no master'}.", temporary=temporary)
        self.why = why


class UnreachableHosts:
    """Which machines did not answer lately: they are asked last for a time."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    async def first_to_answer(
        self,
        nodes: Iterable[Node],
        ask: Callable[[Node], Awaitable[T]],
        what: str,
        discard: Callable[[T], Awaitable[None]] | None = None,
        within: float | None = None,
    ) -> T:
        """The first answer. NoMasterAnswers, `what` and why, when there is none.

        `within` so many seconds, where a person waits; otherwise as long as a step may.
        `discard` is given the answers that came too late, where they hold something open.
        """
        asked = sorted(nodes, key=self._is_unreachable)
        why: dict[str, StepError] = {}
        for limit in (within,) if within else LIMITS:
            race = _Race(asked, ask, limit, discard)
            found = await race.run()
            for node in race.unreachable:
                self._remember(node)
            if found is not None:
                node, answer = found
                self._since.pop(node.machine, None)
                return answer
            why = {node.slot: race.errors[node.machine] for node in asked}
            if not any(error.temporary for error in why.values()):
                break
        raise NoMasterAnswers(what, why)

    def _is_unreachable(self, node: Node) -> bool:
        return time.monotonic() - self._since.get(node.machine, -REMEMBERED) < REMEMBERED

    def _remember(self, node: Node) -> None:
        if len(self._since) >= MOST:
            self._since.clear()
        self._since[node.machine] = time.monotonic()


class _Race(Generic[T]):
    """One round: each gets its head start, unless those before it have failed already."""

    def __init__(
        self,
        nodes: Sequence[Node],
        ask: Callable[[Node], Awaitable[T]],
        limit: float,
        discard: Callable[[T], Awaitable[None]] | None,
    ) -> None:
        self._nodes = nodes
        self._ask = ask
        self._limit = limit
        self._discard = discard
        self.errors: dict[str, StepError] = {}

    @property
    def unreachable(self) -> list[Node]:
        return [node for node in self._nodes if node.machine in self.errors]

    async def run(self) -> tuple[Node, T] | None:
        now = asyncio.get_running_loop().time
        end = now() + self._limit
        running: dict[asyncio.Task[T], Node] = {}
        waiting = list(self._nodes)
        try:
            while (waiting or running) and now() < end:
                if waiting:
                    node = waiting.pop(0)
                    running[asyncio.create_task(self._asked(node))] = node
                pause = min(HEAD_START, end - now()) if waiting else end - now()
                done, _ = await asyncio.wait(running, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(done, key=lambda one: self._nodes.index(running[one])):
                    if error := task.exception():
                        if not isinstance(error, StepError):
                            raise error
                        self.errors[running.pop(task).machine] = error
                    else:
                        return running.pop(task), task.result()
            for node in (*running.values(), *waiting):
                self.errors[node.machine] = StepError(f"no answer within {self._limit:g} s.", temporary=True)
            return None
        finally:
            await self._end(list(running))

    async def _asked(self, node: Node) -> T:
        return await self._ask(node)

    async def _end(self, tasks: list[asyncio.Task[T]]) -> None:
        """Cancels the calls that lost the race. What one of them has answered at the same moment is discarded."""
        for task in tasks:
            task.cancel()
        for answer in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(answer, BaseException) and self._discard is not None:
                await self._discard(answer)
