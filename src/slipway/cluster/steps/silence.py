"""Asking one master after another, where some may be dead: a silent one costs seconds, and is asked last for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from slipway.cluster.site import Node
from slipway.model.errors import StepError

T = TypeVar("T")
LIMITS = (6.0, 60.0)  # seconds for one master: in the first round, and in the second when nobody answered in the first
REMEMBERED = 120.0  # seconds
MOST = 10_000


class Silence:
    """Which machines did not answer lately."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    async def first_to_answer(self, nodes: Iterable[Node], ask: Callable[[Node], Awaitable[T]], what: str) -> T:
        """The first answer. StepError, `what` and why the last one did not, when there is none."""
        asked = list(nodes)
        last = StepError("There is no master.")
        for limit in LIMITS:
            for node in sorted(asked, key=self._is_silent):
                try:
                    async with asyncio.timeout(limit):
                        answer = await ask(node)
                except TimeoutError:
                    last = StepError(f"{node.slot} gave no answer within {limit:g} s.", temporary=True)
                except StepError as error:
                    last = error
                else:
                    self._since.pop(node.machine, None)
                    return answer
                self._note(node)
            if not last.temporary:
                break
        names = ", ".join(node.slot for node in asked) or "(there is none)"
        raise StepError(f"{what}; asked: {names}. {last.detail}", temporary=last.temporary)

    def _is_silent(self, node: Node) -> bool:
        return time.monotonic() - self._since.get(node.machine, -REMEMBERED) < REMEMBERED

    def _note(self, node: Node) -> None:
        if len(self._since) >= MOST:
            self._since.clear()
        self._since[node.machine] = time.monotonic()
