"""Registries in the plans of clusters by kubespray: on each node when it is Ready, and wherever a playbook came past.

cluster.yml and upgrade-cluster.yml write containerd's configuration anew on every node that they reach, without what
Slipway wrote there: so those nodes are connected again before anything goes on, and before the next run begins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from slipway.cluster.change import ClusterChange, Nodes
from slipway.cluster.parameters import REGISTRIES
from slipway.cluster.registry_plans import connect_id, connect_step
from slipway.cluster.steps.actions import action_name
from slipway.cluster.steps.arguments import Ready
from slipway.kubespray.arguments import RunPlaybook, kubespray_action
from slipway.kubespray.inventory import MASTERS
from slipway.kubespray.planning import CLUSTER, UPGRADE
from slipway.model.hooks import Batch, HookPlan
from slipway.model.plan import Plan, Step

REWRITES = (CLUSTER, UPGRADE)  # scale.yml is limited to the nodes that join


def with_registries(plan: HookPlan, change: ClusterChange) -> HookPlan:
    """Whoever waits for a node to be Ready waits for its registries, too."""
    registries = tuple(change.request.document.get(REGISTRIES) or ())
    if not registries:
        return plan
    ready = {one.id: msgspec.convert(one.args, Ready) for one in plan.end.steps if one.action == action_name(Ready)}
    added: dict[str, list[Step]] = {}  # by the step that they come after
    for one in plan.end.steps:
        if one.id in ready:
            node, cluster = ready[one.id].node, ready[one.id].cluster
            added[one.id] = [connect_step(change, node, cluster, registries, after=[one.id])]
        if one.action == kubespray_action(RunPlaybook):
            run = msgspec.convert(one.args, RunPlaybook)
            joining = {ready[later.id].node.machine for later in plan.end.steps
                       if later.id in ready and one.id in later.after}  # fmt: skip
            added[one.id] = [
                connect_step(change, node, run.cluster, registries, f"{connect_id(node.slot)} after {one.id}", [one.id])
                for node in _reached(run, change)
                if node.machine not in joining
            ]
    more = {one.id: [step.id for before in (*one.after, one.id) for step in added.get(before, ())]
            for one in plan.end.steps if one.id in ready}  # fmt: skip
    rollouts = tuple(tuple(_back(batch, more) for batch in rollout) for rollout in plan.rollouts)
    return dataclasses.replace(plan, end=Plan(tuple(_woven(plan.end, added, more))), rollouts=rollouts)


def _reached(run: RunPlaybook, change: ClusterChange) -> Nodes:
    """Nodes whose containerd the run configures: those of the inventory that stay, and have power."""
    if run.playbook not in REWRITES:
        return ()
    there, off = {node.machine for node in run.nodes}, change.situation.found.broken
    return tuple(
        node
        for node in change.after
        if node.machine in there and node.machine not in off and (node.master or run.limit != (MASTERS,))
    )


def _woven(plan: Plan, added: Mapping[str, list[Step]], more: Mapping[str, list[str]]) -> Iterator[Step]:
    for one in plan.steps:
        yield replace(one, after=_with(one.after, more))
        yield from added.get(one.id, ())


def _back(batch: Batch, more: Mapping[str, list[str]]) -> Batch:
    return dataclasses.replace(batch, back=_with(batch.back, more))


def _with(ids: tuple[str, ...], more: Mapping[str, list[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*ids, *(new for one in ids for new in more.get(one, ())))))
