"""The hooks of a cluster's VNFD as steps: pure, from who joins and who leaves to what is done, in which order.

Everything that can be at once is at once. Masters join one after another, because etcd takes one new member at a time;
those that are healed leave and come back one by one, so that etcd keeps its quorum throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from slipway.cluster.change import ClusterChange, Nodes, masters, workers
from slipway.cluster.planning import (
    batches,
    drain_id,
    drain_step,
    leave_etcd_id,
    leave_etcd_step,
    pairs,
    quorum_id,
    quorum_step,
    step,
)
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.arguments import (
    Balance,
    DeleteNode,
    Init,
    InstallNetwork,
    Join,
    Prepare,
    Ready,
    Register,
    SmokeTest,
    Unregister,
)
from slipway.model.hooks import Batch, Edges, HookPlan, Rollout
from slipway.model.plan import Effect, Plan, Step, Verb

NETWORK = "set up the pods' network"
SMOKE = "run a pod"
REGISTER = "register the cluster as a VIM"
UNREGISTER = "unregister the cluster"
FETCH_SECONDS = 3600.0  # for a machine whose programs have to come from elsewhere


def plan_new_cluster(change: ClusterChange, edges: Edges) -> HookPlan:
    """All nodes are new: the first master begins, everybody else joins."""
    if "end" not in edges:
        return HookPlan()
    control = masters(change.after)
    first, cluster = control[0], change.cluster(control)
    begun = f"init {first.slot}"
    waits = [_prepare_id(first), *(_balance_id(node) for node in control if cluster.balanced)]
    init = step(begun, Init(node=first, cluster=cluster), node=first, after=waits,
                effects=[Effect(Verb.MAKE, "cluster", cluster.name)])  # fmt: skip
    return HookPlan(
        end=Plan.of(
            *_prepare(change, change.after, cluster),
            *_balance(control, cluster, after=[_prepare_id(node) for node in control]),
            init,
            step(NETWORK, InstallNetwork(cluster=cluster, cni=change.parameters.cni), after=[begun]),
            *_join(control[1:], cluster, behind=begun, cluster_stays=False),
            *_join(workers(change.after), cluster, behind=begun, cluster_stays=False),
            _ready(first, cluster, after=[NETWORK]),
            *(_ready(node, cluster, after=[_join_id(node), NETWORK]) for node in change.after if node != first),
            *_smoke_test_and_register(change, cluster),
        )
    )


def plan_scale(change: ClusterChange, edges: Edges) -> HookPlan:
    """Drain nodes before the VIM removes their machines; delete their Node objects and let others join after it."""
    return HookPlan(
        start=_drain_and_remove(change) if "start" in edges else Plan(),
        end=_delete_and_join(change, edges) if "end" in edges else _delete_nodes(change),
    )


def plan_heal(change: ClusterChange, edges: Edges) -> HookPlan:
    """Nodes leave, are made anew and join again: masters one by one, workers a third at a time."""
    return HookPlan(
        start=_drain_and_remove_in_batches(change) if "start" in edges else Plan(),
        end=_rejoin_in_batches(change, edges) if "end" in edges else _delete_nodes(change),
        rollouts=_heal_rollouts(change, _ready_id if "end" in edges else _delete_id),
    )


def plan_unregister(instance: str, cluster: ClusterSpec | None) -> Plan:
    gone = [Effect(Verb.REMOVE, "VIM", "of the cluster")]
    return Plan.of(step(UNREGISTER, Unregister(instance=instance, cluster=cluster), effects=gone))


def _heal_rollouts(change: ClusterChange, back: Callable[[Node], str]) -> tuple[Rollout, ...]:
    others = batches(workers(change.leaving), len(workers(change.after)))
    rollouts = ([(node,) for node in change.healed_masters], others)
    return tuple(tuple(_batch(nodes, back) for nodes in rollout) for rollout in rollouts)


def _batch(nodes: Nodes, back: Callable[[Node], str]) -> Batch:
    return Batch(tuple(node.slot for node in nodes), tuple(back(node) for node in nodes))


def _drain_and_remove(change: ClusterChange) -> Plan:
    """Before machines go for good: their pods move, masters leave etcd."""
    cluster = change.cluster(masters(change.staying))
    steps = [drain_step(change, node, cluster) for node in workers(change.leaving)]
    for before, node in pairs(masters(change.leaving)):
        steps += _drain_and_remove_master(change, node, cluster, after=[leave_etcd_id(before)] if before else [])
    return Plan.of(*steps)


def _drain_and_remove_in_batches(change: ClusterChange) -> Plan:
    """As `_drain_and_remove`, without an order among the nodes: the batches are their order."""
    cluster = change.cluster(masters(change.staying))
    steps = [drain_step(change, node, cluster) for node in workers(change.leaving)]
    for node in change.healed_masters:
        steps += _drain_and_remove_master(change, node, cluster, after=[])
    return Plan.of(*steps)


def _drain_and_remove_master(
    change: ClusterChange, node: Node, cluster: ClusterSpec, *, after: Sequence[str]
) -> Iterator[Step]:
    """Only if etcd keeps its quorum without it, which is asked before its pods have to move."""
    yield quorum_step(node, cluster, after=after)
    yield drain_step(change, node, cluster, after=[quorum_id(node)])
    yield leave_etcd_step(node, cluster, after=[drain_id(node)])


def _delete_and_join(change: ClusterChange, edges: Edges) -> Plan:
    """After the VIM made its changes: the Node objects of machines that are gone go, and new machines join."""
    cluster = change.cluster(masters(change.staying))
    gone = masters(change.leaving) if "start" not in edges else ()
    new = masters(change.joining)
    moved = new or masters(change.leaving)
    control = change.cluster(masters(change.after))
    balancing = [_prepare_id(node) for node in new] + [_delete_id(node) for node in masters(change.leaving)]
    return Plan.of(
        *(
            leave_etcd_step(node, cluster, after=[leave_etcd_id(before)] if before else [])
            for before, node in pairs(gone)
        ),
        *(_delete_node(node, cluster) for node in change.leaving),
        *_prepare(change, change.joining, cluster),
        *(_balance(control.masters, control, after=balancing) if moved else ()),
        *_join(new, cluster, behind=None, cluster_stays=True),
        *_join(workers(change.joining), cluster, behind=None, cluster_stays=True),
        *(_ready(node, cluster, after=[_join_id(node)]) for node in change.joining),
    )


def _rejoin_in_batches(change: ClusterChange, edges: Edges) -> Plan:
    """The old Node object of each healed node goes, and the node joins again. Load balancers learn its new address.

    A master that left without a hook before it is still a member of etcd, which takes no new one meanwhile.
    """
    cluster = change.cluster(masters(change.staying))
    new = {node.slot: node for node in change.joining}
    now = {node.slot: node for node in masters(change.before)}
    steps: list[Step] = []
    for old in change.healed_masters:
        now[old.slot] = new[old.slot]
        first = list(_rebalance(change, new[old.slot], change.cluster(now.values())))
        if "start" not in edges:
            first.append(leave_etcd_step(old, cluster, after=[]))
        steps += [*first, *_rejoin(change, new[old.slot], cluster, after=[one.id for one in first])]
    for node in workers(change.joining):
        steps += _rejoin(change, node, cluster)
    return Plan.of(*steps)


def _rejoin(change: ClusterChange, node: Node, cluster: ClusterSpec, after: Sequence[str] = ()) -> Iterator[Step]:
    yield _delete_node(node, cluster)
    yield from _prepare(change, [node], cluster)
    yield step(_join_id(node), Join(node=node, cluster=cluster, cluster_stays=True), node=node,
               after=[_prepare_id(node), _delete_id(node), *after])  # fmt: skip
    yield _ready(node, cluster, after=[_join_id(node)])


def _rebalance(change: ClusterChange, healed: Node, now: ClusterSpec) -> Iterator[Step]:
    """Every balancer with the machines of that moment, but for those machines that are yet to be healed themselves."""
    for node in now.masters if now.balanced else ():
        if node not in change.leaving:
            name = _balance_id(node) if node.slot == healed.slot else f"{_balance_id(node)} for {healed.slot}"
            yield step(name, Balance(node=node, cluster=now), node=node, after=[_prepare_id(healed)])


def _prepare(change: ClusterChange, nodes: Iterable[Node], cluster: ClusterSpec) -> Iterator[Step]:
    setup = change.request.setup
    longer = FETCH_SECONDS if change.parameters.source.kind != "image" else None
    for node in nodes:
        yield step(_prepare_id(node), Prepare(node=node, cluster=cluster, setup=setup), node=node, timeout=longer)


def _balance(nodes: Iterable[Node], cluster: ClusterSpec, *, after: Sequence[str]) -> Iterator[Step]:
    if cluster.balanced:
        for node in nodes:
            yield step(_balance_id(node), Balance(node=node, cluster=cluster), node=node, after=after)


def _join(nodes: Nodes, cluster: ClusterSpec, *, behind: str | None, cluster_stays: bool) -> Iterator[Step]:
    """Workers all at once, masters one after another."""
    for before, node in pairs(nodes):
        turn = [_join_id(before)] if before and node.master else []
        balanced = [_balance_id(node)] if node.master and cluster.balanced else []
        yield step(
            _join_id(node),
            Join(node=node, cluster=cluster, cluster_stays=cluster_stays),
            node=node,
            after=[_prepare_id(node), *([behind] if behind else []), *turn, *balanced],
            effects=[Effect(Verb.MAKE, "node", node.name)],
        )


def _ready(node: Node, cluster: ClusterSpec, *, after: Sequence[str]) -> Step:
    return step(_ready_id(node), Ready(node=node, cluster=cluster), node=node, after=after)


def _delete_nodes(change: ClusterChange) -> Plan:
    """The Node objects of machines that are gone, where no other hook would delete them."""
    cluster = change.cluster(masters(change.staying))
    return Plan.of(*(_delete_node(node, cluster) for node in change.leaving))


def _delete_node(node: Node, cluster: ClusterSpec) -> Step:
    effects = [Effect(Verb.REMOVE, "node", node.name)]
    return step(_delete_id(node), DeleteNode(node=node, cluster=cluster), node=node, effects=effects)


def _smoke_test_and_register(change: ClusterChange, cluster: ClusterSpec) -> Iterator[Step]:
    """That pods run, and the cluster's credentials for whoever uses it."""
    ready = [_ready_id(node) for node in change.after]
    if change.parameters.smoke_test:
        yield step(SMOKE, SmokeTest(cluster=cluster, nodes=change.after), after=ready)
    name = change.parameters.vim_name_for(cluster.instance)
    after = [SMOKE] if change.parameters.smoke_test else ready
    made = [Effect(Verb.MAKE, "VIM", name)]
    yield step(REGISTER, Register(cluster=cluster, vim_name=name), after=after, effects=made)


def _prepare_id(node: Node) -> str:
    return f"prepare {node.slot}"


def _balance_id(node: Node) -> str:
    return f"balance {node.slot}"


def _join_id(node: Node) -> str:
    return f"join {node.slot}"


def _ready_id(node: Node) -> str:
    return f"ready {node.slot}"


def _delete_id(node: Node) -> str:
    return f"delete node {node.slot}"
