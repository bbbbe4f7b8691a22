"""The VNFD's hooks and the VIM's work as one plan, in which no node waits for another without need.

A hook's step for a node comes before, or after, what the VIM does to that node. A step for no node in particular comes
before, or after, everything. Whatever order there is beyond that, the steps name themselves: also across the three
parts, as in a heal of masters one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec.structs import replace

from slipway.model.plan import Plan, Step

Ends = tuple[str, ...]


def woven(start: Plan, work: Plan, end: Plan) -> Plan:
    first, second, third = _Part(start), _Part(work), _Part(end)
    return Plan(
        (
            *start.steps,
            *(second.waiting(step, all_of=first.common, own=first.of_node(step)) for step in work.steps),
            *(third.waiting(step, **_before_end(step, first, second)) for step in end.steps),
        )
    )


def _before_end(step: Step, first: _Part, second: _Part) -> dict[str, Ends]:
    """What the VIM does to the node; all that it does, when that is nothing; what came before, when it has no work."""
    own = second.of_node(step)
    return {"all_of": () if own else second.ends or first.ends, "own": own}


class _Part:
    """One of the three, and the steps that its own other steps do not wait for: of all, of a node, of no node."""

    def __init__(self, plan: Plan) -> None:
        self._node_of = {step.id: step.node for step in plan.steps}
        members: defaultdict[str | None, list[Step]] = defaultdict(list)
        for step in plan.steps:
            members[step.node].append(step)
        self._ends = {node: _last(steps) for node, steps in members.items()}
        self.ends = plan.ends()
        self.common = self._ends.get(None, ())

    def of_node(self, step: Step) -> Ends:
        return self._ends.get(step.node, ()) if step.node is not None else ()

    def waiting(self, step: Step, *, all_of: Ends, own: Ends) -> Step:
        """A step of this part behind those of another one, unless a step that it waits for does so already."""
        within = [before for before in step.after if before in self._node_of]
        if any(self._node_of[before] == step.node for before in within):
            own = ()
        if within:
            all_of = ()
        more = (one for one in (*all_of, *own) if one not in step.after)
        return replace(step, after=(*step.after, *dict.fromkeys(more)))


def _last(steps: Sequence[Step]) -> Ends:
    waited_for = {before for step in steps for before in step.after}
    return tuple(step.id for step in steps if step.id not in waited_for)
