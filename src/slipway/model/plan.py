"""A plan is data: named steps and the order between them.

Planners are pure functions that return a Plan; the engine runs all plans. What people see before
they approve, while it runs and afterwards is this same list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Verb(StrEnum):
    MAKE = "make"
    CHANGE = "change"
    REMOVE = "remove"


class Effect(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a step changes, for the person who reads the plan: make machine workerNode-2."""

    verb: Verb
    kind: str
    name: str


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One piece of work. `id` is unique in its plan and readable ("make machine workerNode-2")."""

    id: str
    action: str
    args: dict[str, Any] = {}
    nodes: tuple[str, ...] = ()  # all that it touches: what is to be done before or after that is ordered by them
    timeout: float | None = None  # seconds for one attempt, where the action's own limit does not fit
    after: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    irreversible: bool = False  # once begun, the operation can't be rolled back
    last: bool = False  # waits for all else of the operation: it frees what a rollback would need


class Plan(msgspec.Struct, frozen=True):
    steps: tuple[Step, ...] = ()

    @staticmethod
    def of(*steps: Step) -> Plan:
        """Steps with whatever order they name themselves; none between them otherwise."""
        return Plan(steps)

    @staticmethod
    def parallel(*plans: Plan) -> Plan:
        """All at once."""
        return Plan(tuple(step for plan in plans for step in plan.steps))

    @staticmethod
    def chain(*plans: Plan) -> Plan:
        """One after another: the first steps of each part wait for the last steps of the part before."""
        done: list[Step] = []
        ends: tuple[str, ...] = ()
        for plan in plans:
            if not plan.steps:
                continue
            here = {step.id for step in plan.steps}
            for step in plan.steps:
                first = not any(before in here for before in step.after)
                done.append(msgspec.structs.replace(step, after=step.after + ends) if first else step)
            ends = plan.ends()
        return Plan(tuple(done))

    @staticmethod
    def each(items: Iterable[T], steps: Callable[[T], Iterable[Step]]) -> Plan:
        """The same chain of steps for each item, the items at once."""
        return Plan.parallel(*(Plan.chain(*(Plan.of(step) for step in steps(item))) for item in items))

    def ends(self) -> tuple[str, ...]:
        """The steps that nothing in this plan waits for."""
        waited_for = {before for step in self.steps for before in step.after}
        return tuple(step.id for step in self.steps if step.id not in waited_for)

    def checked(self) -> Plan:
        """Itself, or ValueError when ids repeat, an order names a step that isn't there, or the order is a circle."""
        ids = [step.id for step in self.steps]
        if len(set(ids)) != len(ids):
            repeated = sorted({i for i in ids if ids.count(i) > 1})
            raise ValueError(f"steps named twice: {', '.join(repeated)}")
        waiting = {step.id: set(step.after) for step in self.steps}
        for step in self.steps:
            if unknown := waiting[step.id] - waiting.keys():
                raise ValueError(f"step {step.id!r} comes after unknown steps: {', '.join(sorted(unknown))}")
        while waiting:
            ready = [name for name, before in waiting.items() if not before & waiting.keys()]
            if not ready:
                raise ValueError(f"steps wait for each other: {', '.join(sorted(waiting))}")
            for name in ready:
                del waiting[name]
        return self
