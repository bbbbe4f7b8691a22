"""Where registries come into the plans of a cluster: on each node, in a step of its own.

A node that we prepare knows its registries before it joins, so that no pod comes to it that it can't pull for, and
Kubernetes' own images may be in one of them. Where a script of the package makes the node, they come after the script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from slipway.cluster.change import ClusterChange, masters
from slipway.cluster.parameters import REGISTRIES
from slipway.cluster.planning import step
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.actions import action_name
from slipway.cluster.steps.arguments import (
    CheckRegistries,
    ConnectRegistries,
    Init,
    Join,
    Prepare,
    Ready,
    RunNodeScript,
)
from slipway.model.plan import Effect, Plan, Step, Verb

Registries = tuple[dict[str, Any], ...]
BEGINS = {action_name(Prepare), action_name(RunNodeScript)}  # after these there is a containerd
WAITS = {action_name(Init), action_name(Join), action_name(Ready)}


def with_registries(plan: Plan, change: ClusterChange) -> Plan:
    """On every node that comes."""
    registries = tuple(change.request.document.get(REGISTRIES) or ())
    if not registries:
        return plan
    cluster, nodes = change.cluster(masters(change.after)), {node.slot: node for node in change.after}
    added = {
        begun.nodes[0]: connect_step(change, nodes[begun.nodes[0]], cluster, registries, after=[begun.id])
        for begun in plan.steps
        if begun.action in BEGINS
    }
    return Plan(tuple(_with_connection(plan, added)))


def connect_step(
    change: ClusterChange,
    node: Node,
    cluster: ClusterSpec,
    registries: Registries,
    step_id: str | None = None,
    after: Sequence[str] = (),
) -> Step:
    """Nothing of it is undone: a new node goes with the operation, and one that stays has these registries anyway."""
    args = ConnectRegistries(node=node, cluster=cluster, registries=registries, setup=change.request.setup)
    return step(step_id or connect_id(node.slot), args, node=node, after=after, effects=_effects(registries))


def _with_connection(plan: Plan, added: Mapping[str, Step]) -> Iterator[Step]:
    for one in plan.steps:
        connected = added.get(one.nodes[0]) if one.nodes else None
        if connected and one.action in WAITS and one.id not in connected.after:
            yield replace(one, after=(*one.after, connected.id))
        else:
            yield one
        if connected and one.id in connected.after:
            yield connected


def plan_modified_registries(change: ClusterChange, former: Registries, registries: Registries) -> Plan:
    """All nodes are asked whether they can use the registries before any of them changes."""
    cluster, setup = change.cluster(masters(change.before)), change.request.setup
    checks = [
        step(
            f"check registries {node.slot}",
            CheckRegistries(node=node, cluster=cluster, registries=registries, setup=setup),
            node=node,
        )
        for node in change.before
    ]
    connections = [
        step(
            connect_id(node.slot),
            ConnectRegistries(node=node, cluster=cluster, registries=registries, former=former, setup=setup),
            node=node,
            effects=_effects(registries) or [Effect(Verb.REMOVE, "registries", node.name)],
        )
        for node in change.before
    ]
    return Plan.chain(Plan.of(*checks), Plan.of(*connections))


def connect_id(slot: str) -> str:
    return f"connect registries {slot}"


def _effects(registries: Sequence[Mapping[str, Any]]) -> list[Effect]:
    return [Effect(Verb.CHANGE, "registry", str(one["server"])) for one in registries]
