"""The VNFD's hooks and the VIM's work as one plan, in which no node waits for another without need.

A hook's step for a node comes before, or after, everything that the VIM does to that node. A hook's step for no node in
particular comes before, or after, everything. Nodes of a batch are touched when those of the batch before are back.
What the VIM does `last` comes after the hooks, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from slipway.model.hooks import HookPlan, Rollout
from slipway.model.plan import Plan, Step

Ids = tuple[str, ...]


def with_hooks(hooks: HookPlan, work: Plan) -> Plan:
    last = [step for step in work.steps if step.last]
    work = Plan(tuple(step for step in work.steps if not step.last))
    start, vim, end = _Part(hooks.start), _Part(work), _Part(hooks.end)
    turns = _turns(hooks.rollouts)  # a node with steps at the start waits in those
    woven = Plan(
        (
            *(start.waiting(step, of_node=turns) for step in hooks.start.steps),
            *(vim.waiting(step, of_node=turns | start.last_of, of_all=start.common) for step in work.steps),
            *(end.waiting(step, of_node=vim.last_of, of_all=_before_end(step, start, vim)) for step in hooks.end.steps),
        )
    )
    ends = woven.ends()
    return Plan((*woven.steps, *(replace(step, after=tuple(dict.fromkeys((*step.after, *ends)))) for step in last)))


def in_turns(work: Plan, turns: Sequence[Sequence[str]]) -> Plan:
    """Nodes of a turn are touched when all is done to those of the turn before.

    A step for nodes of several turns is in the last of them, and waits for nothing that waits for it.
    """
    turn_of = {node: number for number, nodes in enumerate(turns) for node in nodes}
    steps = {step.id: step for step in work.steps}
    in_turn: defaultdict[int, list[Step]] = defaultdict(list)
    for step in work.steps:
        if own := [turn_of[node] for node in step.nodes if node in turn_of]:
            in_turn[max(own)].append(step)
    for earlier, later in pairwise(sorted(in_turn)):
        ends, ids = Plan(tuple(in_turn[earlier])).ends(), {step.id for step in in_turn[later]}
        for step in in_turn[later]:
            if ids.isdisjoint(step.after):
                more = (id_ for id_ in ends if id_ not in step.after and not _waits(steps, id_, step.id))
                steps[step.id] = replace(step, after=(*step.after, *more))
    return Plan(tuple(steps.values()))


def _waits(steps: Mapping[str, Step], step_id: str, other: str) -> bool:
    """Whether a step waits for another, directly or not."""
    open_, seen = [step_id], set[str]()
    while open_:
        for before in steps[open_.pop()].after:
            if before == other:
                return True
            if before not in seen:
                seen.add(before)
                open_.append(before)
    return False


def _before_end(step: Step, start: _Part, vim: _Part) -> Ids:
    """A step at the end whose nodes the VIM leaves alone waits for all its work; for the start, if there is none."""
    return () if any(node in vim.last_of for node in step.nodes) else vim.ends or start.ends


def _turns(rollouts: Iterable[Rollout]) -> dict[str, Ids]:
    """For each node the steps of the batch before its own, for which it waits."""
    return {node: before.back for rollout in rollouts for before, batch in pairwise(rollout) for node in batch.nodes}


class _Part:
    """Start hooks, VIM steps or end hooks; and its last steps: of all, for each node, and of those without a node."""

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
