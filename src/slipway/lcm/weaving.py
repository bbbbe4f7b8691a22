"""The VNFD's hooks and the VIM's work as one plan, in which no node waits for another without need.

A hook's step for a node comes before, or after, everything that the VIM does to that node. A hook's step for no node in
particular comes before, or after, everything. Nodes of a batch are touched when those of the batch before are back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise

from msgspec.structs import replace

from slipway.model.hooks import HookPlan, Lane
from slipway.model.plan import Plan, Step

Ids = tuple[str, ...]


def woven(hooks: HookPlan, work: Plan) -> Plan:
    start, vim, end = _Part(hooks.start), _Part(work), _Part(hooks.end)
    turns = _turns(hooks.lanes)  # a node with steps at the start waits in those
    return Plan(
        (
            *(start.waiting(step, of_node=turns) for step in hooks.start.steps),
            *(vim.waiting(step, of_node=turns | start.last_of, of_all=start.common) for step in work.steps),
            *(end.waiting(step, of_node=vim.last_of, of_all=_before_end(step, start, vim)) for step in hooks.end.steps),
        )
    )


def _before_end(step: Step, start: _Part, vim: _Part) -> Ids:
    """A step at the end whose nodes the VIM leaves alone waits for all its work; for the start, if there is none."""
    return () if any(node in vim.last_of for node in step.nodes) else vim.ends or start.ends


def _turns(lanes: Iterable[Lane]) -> dict[str, Ids]:
    """For each node what has to be done before anything is done to it."""
    return {node: before.back for lane in lanes for before, batch in pairwise(lane) for node in batch.nodes}


class _Part:
    """One of the three, and the steps that its own other steps do not wait for: of all, of each node, of no node."""

    def __init__(self, plan: Plan) -> None:
        self._nodes_of = {step.id: step.nodes for step in plan.steps}
        of_node: defaultdict[str, list[Step]] = defaultdict(list)
        for step in plan.steps:
            for node in step.nodes:
                of_node[node].append(step)
        self.last_of = {node: Plan(tuple(steps)).ends() for node, steps in of_node.items()}
        self.common = Plan(tuple(step for step in plan.steps if not step.nodes)).ends()
        self.ends = plan.ends()

    def waiting(self, step: Step, *, of_node: Mapping[str, Ids], of_all: Ids = ()) -> Step:
        """A step of this part behind those of another, unless a step that it waits for in this part does so already."""
        within = [before for before in step.after if before in self._nodes_of]
        behind = {node for before in within for node in self._nodes_of[before]}
        own = (id_ for node in step.nodes if node not in behind for id_ in of_node.get(node, ()))
        more = (id_ for id_ in (*(() if within else of_all), *own) if id_ not in step.after)
        return replace(step, after=(*step.after, *dict.fromkeys(more)))
