"""What a VNFD's hooks do around the VIM's work in one operation: before it, after it, and in which batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slipway.model.plan import Plan

Edge = Literal["start", "end"]
Edges = frozenset[Edge]  # those of an operation's two hooks that are meant
EDGES: tuple[Edge, ...] = ("start", "end")


@dataclass(frozen=True)
class Batch:
    """Nodes that may be out of service at the same time. `back` are the steps whose end means that they serve again."""

    nodes: tuple[str, ...]
    back: tuple[str, ...]


Lane = tuple[Batch, ...]  # one batch after another


@dataclass(frozen=True)
class HookPlan:
    """`start` and `end` may name each other's steps: one planner makes both. Lanes go side by side."""

    start: Plan = Plan()  # noqa: RUF009 - frozen
    end: Plan = Plan()  # noqa: RUF009 - frozen
    lanes: tuple[Lane, ...] = ()

    def batches(self) -> tuple[tuple[str, ...], ...]:
        """For a VIM that makes one change at a time: the first of every lane, then the second, ..."""
        longest = max((len(lane) for lane in self.lanes), default=0)
        return tuple(
            tuple(node for lane in self.lanes if turn < len(lane) for node in lane[turn].nodes)
            for turn in range(longest)
        )
