"""A tiny interpreter of plans for contract tests: order respected, arguments through JSON as in a real journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from slipway.model.action import Action, Connection
from slipway.model.errors import StepError
from slipway.model.machine import FoundMachine, Outcome
from slipway.model.plan import Plan, Step
from slipway.vim.contract import VimDriver


@dataclass
class Context:
    """A StepContext without an engine."""

    vim: Connection
    instance_id: str
    operation_id: str = "operation-1"
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    async def connection(self) -> Connection:
        return self.vim

    async def machine(self, machine_id: str) -> FoundMachine:
        raise StepError(f"No machine {machine_id}: drivers of VIMs look by themselves.")

    async def reveal(self, document: Any) -> Any:
        return document

    def outcome(self, step_id: str) -> Outcome | None:
        return self.outcomes.get(step_id)


def in_order(plan: Plan, chance: Random | None = None) -> list[Step]:
    """The steps, one at a time, each after those it names: last ones first, or as chance has it.

    Never as they are listed, so that an order that a plan forgot to name is missed at once.
    """
    waiting, done = list(plan.checked().steps), list[Step]()
    while waiting:
        ended = {step.id for step in done}
        ready = [step for step in waiting if ended.issuperset(step.after)]
        step = chance.choice(ready) if chance else ready[-1]
        waiting.remove(step)
        done.append(step)
    return done


def hand(driver: VimDriver, step: Step) -> tuple[Action[Any], Any]:
    """The action that a step names, and its arguments as they come back from a journal."""
    action = next(action for action in driver.actions if action.name == step.action)
    return action, msgspec.json.decode(msgspec.json.encode(step.args), type=action.args)


async def run_plan(
    driver: VimDriver,
    plan: Plan,
    ctx: Context,
    *,
    stop_after: int | None = None,
    twice: bool = False,
    chance: Random | None = None,
) -> list[Step]:
    """Run the plan, or its first `stop_after` steps, each step once or twice. Answers the steps that ran."""
    steps = in_order(plan, chance)[:stop_after]
    for step in steps:
        action, args = hand(driver, step)
        for _ in range(2 if twice else 1):
            ctx.outcomes[step.id] = await action.run(args, ctx)
    return steps


async def undo_steps(driver: VimDriver, done: list[Step], ctx: Context, *, twice: bool = False) -> None:
    """Undo what can be undone, newest first."""
    for step in reversed(done):
        action, args = hand(driver, step)
        if action.undo is not None:
            for _ in range(2 if twice else 1):
                await action.undo(args, ctx)
