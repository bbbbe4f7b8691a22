"""What a VNFD's hooks do around the VIM's work in one operation: before it, after it, and in which batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slipway.model.plan import Plan

Edge = Literal["start", "end"]
Edges = frozenset[Edge]  # those of an operation's two hooks that are meant
CLUSTER_DRIVERS = ("kubernetes", "mgmt-drivers-kubernetes", "mgmt_drivers_kubernetes")  # one, and its aliases
KUBESPRAY_DRIVERS = ("kubespray", "mgmt-drivers-kubespray", "mgmt_drivers_kubespray")
EDGES: tuple[Edge, ...] = ("start", "end")
HOOKED_OPERATIONS = (
    "instantiate",
    "scale",
    "heal",
    "change_external_connectivity",
    "change_current_package",
    "modify_information",
    "terminate",
)
HOOKS = frozenset(
    f"{operation}_{way}{edge}" for operation in HOOKED_OPERATIONS for way in ("", "rollback_") for edge in EDGES
)


@dataclass(frozen=True)
class Batch:
    """Nodes that may be out of service at the same time. `back` are the steps whose end means that they serve again."""

    nodes: tuple[str, ...]
    back: tuple[str, ...]


Rollout = tuple[Batch, ...]  # one batch after another; rollouts go side by side


@dataclass(frozen=True)
class HookPlan:
    """`start` and `end` may name each other's steps: one planner makes both. Rollouts go side by side."""

    start: Plan = Plan()  # noqa: RUF009 - frozen
    end: Plan = Plan()  # noqa: RUF009 - frozen
    rollouts: tuple[Rollout, ...] = ()

    def batches(self) -> tuple[tuple[str, ...], ...]:
        """For a VIM that makes one change at a time: the first batches of all rollouts, then the second, ..."""
        longest = max((len(rollout) for rollout in self.rollouts), default=0)
        return tuple(
            tuple(node for rollout in self.rollouts if turn < len(rollout) for node in rollout[turn].nodes)
            for turn in range(longest)
        )
