"""Plans as parameters adjust them: Helm on masters, the package's own node script in place of kubeadm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from slipway.cluster.change import ClusterChange, masters
from slipway.cluster.planning import step
from slipway.cluster.steps.actions import action_name
from slipway.cluster.steps.arguments import (
    Balance,
    Helm,
    Init,
    InstallNetwork,
    Join,
    Prepare,
    Ready,
    RunNodeScript,
    SetHostName,
    SmokeTest,
)
from slipway.model.plan import Plan, Step

LEFT_OUT = {action_name(Balance), action_name(InstallNetwork)}
BALANCE = "balance "  # how the names of those steps begin, in whichever part of the plan they are


def with_helm(plan: Plan, change: ClusterChange) -> Plan:
    """On every master that has just become ready."""
    wanted, path = change.parameters.helm, change.parameters.helm_installation_script_path
    if path is None and (wanted is None or not wanted.install):
        return plan
    source = (
        {"url": wanted.url, "path": wanted.path, "sha256": wanted.sha256, "version": wanted.version} if wanted else {}
    )
    given = {key: value for key, value in source.items() if value is not None}
    ready = {node: one.id for one in plan.steps if one.action == action_name(Ready) for node in one.nodes}
    cluster = change.cluster(masters(change.after))
    added = [
        step(f"helm {node.slot}", Helm(node=node, cluster=cluster, given=given, path=path, setup=_setup(plan)),
             node=node, after=[ready[node.slot]])
        for node in cluster.masters
        if node.slot in ready
    ]  # fmt: skip
    return Plan((*plan.steps, *added))


def with_node_script(plan: Plan, change: ClusterChange) -> Plan:
    """With `script_path`, machines only get their names before it, and what it does is not done by us."""
    path = change.parameters.script_path
    if path is None:
        return plan
    gone = {step.id: step.after for step in plan.steps if step.action in LEFT_OUT}
    return Plan(tuple(_scripted(step, path, _setup(plan), gone) for step in plan.steps if step.id not in gone))


def _scripted(step: Step, path: str, setup: object, gone: Mapping[str, tuple[str, ...]]) -> Step:
    step = replace(step, after=tuple(dict.fromkeys(_without(gone, step.after))))
    if step.action == action_name(Prepare):
        args = {"node": step.args["node"], "cluster_ip": step.args["site"].get("vip")}
        return replace(step, action=action_name(SetHostName), args=args, timeout=None)
    if step.action == action_name(SmokeTest):
        return replace(step, args={**step.args, "foreign": True})
    if step.action in (action_name(Init), action_name(Join)):
        first = step.action == action_name(Init)
        args = {"kept": False, **step.args, "first": first, "path": path, "setup": setup}
        return replace(step, action=action_name(RunNodeScript), args=args)
    return step


def _without(gone: Mapping[str, tuple[str, ...]], after: Iterable[str]) -> Iterator[str]:
    """What a step waits for when some steps are gone: for what those waited for."""
    for before in after:
        if before in gone:
            yield from _without(gone, gone[before])
        elif not before.startswith(BALANCE):
            yield before


def _setup(plan: Plan) -> dict[str, object]:
    """What machines are prepared with in this plan."""
    prepared = (one.args.get("setup", {}) for one in plan.steps if one.action == action_name(Prepare))
    return next(prepared, {})
