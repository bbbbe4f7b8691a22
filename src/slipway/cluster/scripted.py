"""A package's own node script in a cluster's plans: the same order of things, with the script where we would work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from slipway.cluster.roster import Roster
from slipway.cluster.steps.actions import action_name
from slipway.cluster.steps.arguments import Balance, Init, Join, Name, Network, Prepare, Script, Smoke
from slipway.model.plan import Plan, Step

LEFT_OUT = {action_name(Balance), action_name(Network)}
BALANCE = "balance "  # how the names of those steps begin, in whichever part of the plan they are


def scripted(plan: Plan, roster: Roster) -> Plan:
    """With `script_path`, machines only get their names before it, and what it does is not done by us."""
    path = roster.parameters.script_path
    if path is None:
        return plan
    gone = {step.id: step.after for step in plan.steps if step.action in LEFT_OUT}
    setup: object = next((step.args.get("setup", {}) for step in plan.steps if step.action == action_name(Prepare)), {})
    return Plan(tuple(_scripted(step, path, setup, gone) for step in plan.steps if step.id not in gone))


def _scripted(step: Step, path: str, setup: object, gone: Mapping[str, tuple[str, ...]]) -> Step:
    step = replace(step, after=tuple(dict.fromkeys(_behind(step.after, gone))))
    if step.action == action_name(Prepare):
        return replace(step, action=action_name(Name), args={"node": step.args["node"]}, timeout=None)
    if step.action == action_name(Smoke):
        return replace(step, args={**step.args, "foreign": True})
    if step.action in (action_name(Init), action_name(Join)):
        first = step.action == action_name(Init)
        args = {"kept": False, **step.args, "first": first, "path": path, "setup": setup}
        return replace(step, action=action_name(Script), args=args)
    return step


def _behind(after: Iterable[str], gone: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """What a step waits for when some are gone: for what those waited for."""
    for before in after:
        if before in gone:
            yield from _behind(gone[before], gone)
        elif not before.startswith(BALANCE):
            yield before
