"""What the plans of a cluster are made of: steps with their arguments, turns, batches, and what several plans need."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from slipway.cluster.change import ClusterChange, Nodes
from slipway.cluster.spec import ClusterSpec, Node, StepArguments
from slipway.cluster.steps.actions import action_name
from slipway.cluster.steps.arguments import CheckQuorum, Drain, LeaveEtcd, Unregister, Upgrade
from slipway.model.plan import Effect, Step, Verb

T = TypeVar("T")

# Of the workers that an operation takes out of service, this part at a time: the pods of the others need room.
AT_ONCE = 1 / 3
# What can't be taken back once it has begun: an etcd member that left, a configuration of a newer version.
IRREVERSIBLE = (Unregister, LeaveEtcd, Upgrade)
DRAIN_MARGIN = 120.0  # seconds a drain's step may take beyond the time that pods have


def step(
    step_id: str,
    args: StepArguments,
    *,
    node: Node | None = None,
    nodes: Sequence[Node] = (),
    action: str | None = None,
    after: Sequence[str] = (),
    effects: Sequence[Effect] = (),
    timeout: float | None = None,
    irreversible: bool = False,
) -> Step:
    """`action`: of another driver than that of kubeadm."""
    plain = msgspec.json.decode(msgspec.json.encode(args))  # as the journal will give it back
    return Step(
        id=step_id,
        action=action or action_name(type(args)),
        args=plain,
        nodes=(node.slot,) if node else tuple(one.slot for one in nodes),
        timeout=timeout,
        after=tuple(after),
        effects=tuple(effects),
        irreversible=irreversible or isinstance(args, IRREVERSIBLE),
    )


def batches(nodes: Nodes, all_of_them: int) -> list[Nodes]:
    size = max(1, math.floor(all_of_them * AT_ONCE))
    return [nodes[at : at + size] for at in range(0, len(nodes), size)]


def pairs(items: Sequence[T]) -> Iterator[tuple[T | None, T]]:
    """Each with the one before it."""
    return zip((None, *items), items, strict=False)


def drain_step(
    change: ClusterChange, node: Node, cluster: ClusterSpec, after: Sequence[str] = (), unless: str | None = None
) -> Step:
    """`unless` its kubelet has that version already: what it was to be emptied for is done."""
    drain = change.parameters.drain
    args = Drain(
        node=node, cluster=cluster, timeout=drain.timeout, empty_dir=drain.empty_dir, force=drain.force, unless=unless
    )
    effects = [Effect(Verb.CHANGE, "node", node.name)]
    return step(drain_id(node), args, node=node, after=after, timeout=drain.timeout + DRAIN_MARGIN, effects=effects)


def quorum_step(node: Node, cluster: ClusterSpec, *, after: Sequence[str]) -> Step:
    """Whether etcd can do without that master, for a while or for good."""
    return step(quorum_id(node), CheckQuorum(node=node, cluster=cluster), node=node, after=after)


def leave_etcd_step(node: Node, cluster: ClusterSpec, *, after: Sequence[str]) -> Step:
    effects = [Effect(Verb.REMOVE, "etcd member", node.name)]
    return step(leave_etcd_id(node), LeaveEtcd(node=node, cluster=cluster), node=node, after=after, effects=effects)


def drain_id(node: Node) -> str:
    return f"drain {node.slot}"


def quorum_id(node: Node) -> str:
    return f"check quorum without {node.slot}"


def leave_etcd_id(node: Node) -> str:
    return f"leave etcd {node.slot}"
