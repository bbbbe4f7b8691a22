"""A tiny interpreter of plans for contract tests: order respected, arguments through JSON as in a real journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from random import Random
from typing import Any

import msgspec

from slipway.model.action import Action, VimConnection
from slipway.model.errors import StepError
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.package_content import PackageContent
from slipway.model.plan import Plan, Step
from slipway.model.target import LoadedFiles
from slipway.vim.contract import VimDriver


@dataclass
class Context:
    """A StepContext without an engine."""

    vim: VimConnection
    instance_id: str
    operation_id: str = "operation-1"
    planned: dict[str, dict[str, Any]] = field(default_factory=dict)  # arguments of steps
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    files: LoadedFiles = field(default_factory=dict)
    told: list[str] = field(default_factory=list)  # of progress
    cancelled: bool = False

    async def connection(self) -> VimConnection:
        return self.vim

    async def machine(self, machine_id: str) -> FoundMachine:
        raise StepError(f"No machine {machine_id}: drivers of VIMs look by themselves.")

    async def port(self, name: str) -> FoundPort:
        raise StepError(f"No port {name}: drivers of VIMs look by themselves.")

    async def package_file(self, vnfd_id: str, path: str, digest: str) -> bytes:
        file = self.files.get(vnfd_id, {}).get(path)
        if file is None or file.digest != digest:
            raise StepError(f"No file {path} with the digest {digest} was planned with.")
        return file.content

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> PackageContent:
        content = await self.package_file(vnfd_id, path, digest)
        return PackageContent(path, len(content), digest, lambda: BytesIO(content))

    async def decrypt_secrets(self, document: Any) -> Any:
        return document

    def arguments(self, step_id: str) -> dict[str, Any]:
        return self.planned[step_id]

    def outcome(self, step_id: str) -> Outcome | None:
        return self.outcomes.get(step_id)

    def progress(self, text: str) -> None:
        self.told.append(text)


def arguments_of(plan: Plan) -> dict[str, dict[str, Any]]:
    """As a context has them for steps that say only what differs from another one's."""
    return {step.id: msgspec.json.decode(msgspec.json.encode(step.args)) for step in plan.steps}


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
    ctx.planned = arguments_of(plan)
    steps = in_order(plan, chance)[:stop_after]
    for step in steps:
        action, args = hand(driver, step)
        for _ in range(2 if twice else 1):
            ctx.outcomes[step.id] = await action.run(args, ctx)
    return steps


async def undo_steps(driver: VimDriver, done: list[Step], ctx: Context, *, twice: bool = False) -> None:
    """Undo what can be undone, newest first. An undone step's outcome is that of its undo, and the newest."""
    for step in reversed(done):
        action, args = hand(driver, step)
        if action.undo is not None:
            for _ in range(2 if twice else 1):
                ctx.outcomes.pop(step.id, None)
                ctx.outcomes[step.id] = await action.undo(args, ctx) or Outcome()
