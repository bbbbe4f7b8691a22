"""The hooks of a VNFD as steps, for clusters by kubespray. Pure: who joins and who leaves, in which order.

    new cluster   check the server, name machines, inventory, cluster.yml, Ready, balancer, a pod, registration
    scale out     inventory with the new nodes, facts.yml, scale.yml for them, Ready, their routes
    scale in      their routes go, drain, remove-node.yml, inventory without them; then the VIM removes the machines
    heal          both, a batch of nodes after another: masters one by one by cluster.yml, workers by scale.yml
    of balancer   set up again; where its address has changed, the API's certificates and the VIM follow

What a storage server adds to them is in cluster/storage_plan.py.

The inventory changes in one order, for all runs read it: so all batches of a heal are in one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from slipway.cluster.change import Nodes, masters, workers
from slipway.cluster.planning import (
    batches,
    drain_id,
    drain_step,
    leave_etcd_id,
    leave_etcd_step,
    quorum_id,
    quorum_step,
    step,
)
from slipway.cluster.plans import REGISTER, SMOKE, plan_unregister
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.arguments import DeleteNode, RecordVersion, Register, SmokeTest
from slipway.cluster.storage_plan import client_id
from slipway.cluster.upgrade import RECORD
from slipway.cluster.versions import Version
from slipway.kubespray.change import KubesprayChange, in_order
from slipway.kubespray.inventory import MASTERS
from slipway.kubespray.planning import (
    CLUSTER,
    FACTS,
    SCALE,
    UPGRADE,
    clean_step,
    cluster_info_step,
    inventory_step,
    leave_server_step,
    name_id,
    name_step,
    playbook_step,
    prepare_step,
    ready_id,
    ready_step,
    remove_id,
    remove_step,
    slots,
)
from slipway.kubespray.steps.server import PREPARE
from slipway.load_balancer.plans import add_routes, forget, remove_routes, set_up, set_up_id
from slipway.load_balancer.routes import API_FRONT_END
from slipway.model.hooks import Batch, Edges, HookPlan
from slipway.model.operation import OperationType
from slipway.model.plan import Effect, Plan, Step, Verb

INVENTORY = "write the inventory"


def plan_new_cluster(change: KubesprayChange, edges: Edges) -> HookPlan:
    """The server is looked at before any machine is made."""
    if "end" not in edges:
        return HookPlan()
    nodes = in_order(change.nodes.after)
    cluster = change.nodes.cluster(masters(nodes))
    made = [Effect(Verb.MAKE, "cluster", cluster.name)]
    return HookPlan(
        start=Plan.of(prepare_step(change, claims=not change.nodes.before)),
        end=Plan.of(
            *(name_step(node) for node in nodes),
            inventory_step(
                change,
                INVENTORY,
                cluster,
                nodes,
                of=nodes,
                after=[name_id(node) for node in nodes],
                published=change.published,
            ),
            playbook_step(change, CLUSTER, CLUSTER, cluster, nodes, of=nodes, after=[INVENTORY], effects=made),
            *(ready_step(node, cluster, after=[CLUSTER]) for node in nodes),
            *_set_up_balancer(change, nodes, after=[INVENTORY]),
            *_smoke_test(change, cluster, nodes, after=[ready_id(node) for node in nodes]),
            _register(change, cluster, after=[*(ready_id(node) for node in nodes), *_smoke_id(change)]),
        ),
    )


def plan_scale(change: KubesprayChange, edges: Edges) -> HookPlan:
    """Workers only. A node leaves the inventory after remove-node.yml has succeeded."""
    leaving, joining = change.nodes.leaving, change.nodes.joining
    start = [prepare_step(change)]
    if leaving and "start" in edges:
        start += _leave(change, leaving, in_order(change.nodes.before), after=[PREPARE])
        start.append(_inventory_without(change, leaving))
    if "end" not in edges or not joining:
        left_to_end = leaving if "start" not in edges else ()
        return HookPlan(start=Plan.of(*start), end=Plan.of(*_forget(change, left_to_end)))
    return HookPlan(
        start=Plan.of(*start),
        end=Plan.of(*_join(change, joining, in_order(change.nodes.staying, joining))),
    )


def plan_heal(change: KubesprayChange, edges: Edges) -> HookPlan:
    """Of nodes of a cluster that stays: each batch leaves, is made anew and joins before the next one leaves."""
    new = {node.slot: node for node in change.nodes.joining}
    present, waiting = list(change.nodes.staying), list(change.nodes.leaving)
    start, end = [prepare_step(change)], list(_heal_balancer(change) if "end" in edges else ())
    rollout: list[Batch] = []
    for batch in _batches(change):
        joining = tuple(new[node.slot] for node in batch)
        if "start" in edges:
            start += _leave_in_turn(change, batch, in_order(present, waiting))
        waiting = [node for node in waiting if node not in batch]
        gone = list(_remove_gone(change, batch)) if "start" not in edges else []
        left = [one.id for one in gone]
        joined = _join(change, joining, in_order([*present, *waiting], joining), after=left)
        end += [*gone, *joined] if "end" in edges else [_delete_node(change, node) for node in joining]
        present += joining
        back = Plan(tuple(joined)).ends() if "end" in edges else [_delete_id(node) for node in joining]
        rollout.append(Batch(tuple(node.slot for node in batch), tuple(back)))
    return HookPlan(start=Plan.of(*start), end=Plan.of(*end), rollouts=(tuple(rollout),) if rollout else ())


def plan_upgrade(change: KubesprayChange, new: Version, edges: Edges) -> HookPlan:
    """By upgrade-cluster.yml, which drains and upgrades node after node itself."""
    if "end" not in edges:
        return HookPlan()
    nodes = in_order(change.nodes.after)
    cluster = msgspec.structs.replace(change.nodes.cluster(masters(nodes)), version=str(new))
    old = msgspec.structs.replace(cluster, version=None)
    written = inventory_step(change, INVENTORY, cluster, nodes)
    changed = [Effect(Verb.CHANGE, "cluster", f"{cluster.name} to Kubernetes {new}")]
    run = playbook_step(
        change, UPGRADE, UPGRADE, old, nodes, of=nodes, after=[INVENTORY], effects=changed, irreversible=True,
        variables={"kube_version": str(new)},
    )  # fmt: skip
    ready = [ready_step(node, cluster, after=[UPGRADE]) for node in nodes]
    return HookPlan(
        start=Plan.of(prepare_step(change)),
        end=Plan.of(
            written,
            run,
            *ready,
            *_smoke_test(change, cluster, nodes, after=[one.id for one in ready]),
            step(RECORD, RecordVersion(cluster=cluster), after=[*(one.id for one in ready), *_smoke_id(change)]),
        ),
    )


def plan_move(change: KubesprayChange) -> HookPlan:
    """To another Ansible server. The inventory is written there by the next operation that needs it."""
    return HookPlan(start=Plan.of(prepare_step(change)))


def plan_terminate(change: KubesprayChange, edges: Edges, *, forceful: bool) -> HookPlan:
    """What is on the Ansible server goes when no machine is left that it could log in to."""
    control = masters(change.nodes.before)
    reachable = change.nodes.cluster(control) if control and "start" in edges else None
    unregister = plan_unregister(change.instance, reachable)
    former = [leave_server_step(change.former)] if change.former else []
    forgets = [forget(change.instance)] if change.has_balancer else []
    clean = Plan.of(clean_step(change, forceful=forceful), *former, *forgets)
    if "start" in edges:
        return HookPlan(start=unregister, end=clean)
    return HookPlan(end=Plan.chain(unregister, clean))


def between_servers(change: KubesprayChange, plan: HookPlan) -> HookPlan:
    """Where a request names another Ansible server, nothing of the instance runs or stays on the one before.

    Scale and heal use theirs once, for what they say is not kept: so nothing stays there either.
    """
    if change.former is None or not plan.start.steps:
        return plan
    start = Plan.chain(Plan.of(leave_server_step(change.former)), plan.start)
    once = change.nodes.situation.operation in (OperationType.SCALE, OperationType.HEAL)
    end = Plan.chain(plan.end, Plan.of(clean_step(change, forceful=False))) if once else plan.end
    return HookPlan(start, end, plan.rollouts)


def _batches(change: KubesprayChange) -> list[Nodes]:
    others = batches(workers(change.nodes.leaving), len(workers(change.nodes.after)))
    return [*((node,) for node in change.nodes.healed_masters), *others]


def _leave(change: KubesprayChange, leaving: Nodes, inventory: Nodes, *, after: Sequence[str]) -> Iterator[Step]:
    """Workers: no more requests come to them, their pods move, then they are removed."""
    cluster = change.nodes.cluster(masters(change.nodes.staying))
    written = f"{INVENTORY} to remove {slots(leaving)}"  # the server, or its directory, may be another than last time
    yield inventory_step(change, written, cluster, inventory, of=leaving, after=after)
    if without := _remove_routes(change, leaving, after=after):
        yield without
        after = [without.id]
    for node in leaving:
        yield drain_step(change.nodes, node, cluster, after=after)
    yield remove_step(change, cluster, inventory, leaving, after=[written, *(drain_id(node) for node in leaving)])


def _leave_in_turn(change: KubesprayChange, batch: Nodes, inventory: Nodes) -> Iterator[Step]:
    if not batch[0].master:
        yield from _leave(change, batch, inventory, after=[PREPARE])
        return
    (node,) = batch
    cluster = change.nodes.cluster(masters(change.nodes.staying))
    last = in_order([one for one in inventory if one != node], [node])
    moved = f"{INVENTORY} with {node.slot} last"
    yield quorum_step(node, cluster, after=[PREPARE])
    without = _remove_routes(change, batch, after=[quorum_id(node)])
    yield from [without] if without else []
    # kubespray can't remove the first master of its list.
    yield inventory_step(change, moved, cluster, last, of=(node,), after=[without.id if without else quorum_id(node)])
    yield drain_step(change.nodes, node, cluster, after=[moved])
    yield leave_etcd_step(node, cluster, after=[drain_id(node)])
    yield remove_step(change, cluster, last, batch, after=[leave_etcd_id(node)])


def _remove_gone(change: KubesprayChange, batch: Nodes) -> Iterator[Step]:
    """What the cluster still has of machines that went without a hook before it: it takes no others in their place."""
    cluster = change.nodes.cluster(masters(change.nodes.staying))
    for node in batch:
        if node.master:
            yield leave_etcd_step(node, cluster, after=[])
        yield _delete_node(change, node)


def _join(change: KubesprayChange, joining: Nodes, inventory: Nodes, *, after: Sequence[str] = ()) -> list[Step]:
    """Workers by scale.yml, once the facts of all are known; masters by cluster.yml, as kubespray wants it."""
    cluster = change.nodes.cluster(masters(change.nodes.staying))
    written = f"{INVENTORY} with {slots(joining)}"
    before = in_order(change.nodes.before)
    steps = [name_step(node) for node in joining]
    steps.append(
        inventory_step(change, written, cluster, inventory, before=before, of=joining,
                       after=[*after, *(name_id(node) for node in joining)])
    )  # fmt: skip
    made = [Effect(Verb.MAKE, "node", node.name) for node in joining]
    last = f"{SCALE} for {slots(joining)}"
    if joining[0].master:
        last = f"{CLUSTER} for {slots(joining)}"
        info = cluster_info_step(cluster, joining[0], after=[written])
        steps += [
            info,
            playbook_step(change, CLUSTER, last, cluster, inventory, of=joining, joining=joining, after=[info.id],
                          effects=made),
        ]  # fmt: skip
    else:
        facts = f"{FACTS} for {slots(joining)}"
        steps += [
            playbook_step(change, FACTS, facts, cluster, inventory, of=joining, after=[written]),
            playbook_step(change, SCALE, last, cluster, inventory, of=joining, joining=joining, after=[facts],
                          limit=[node.name for node in joining], effects=made),
        ]  # fmt: skip
    steps += [ready_step(node, cluster, after=[last]) for node in joining]
    if change.balancer and not change.balancer_is_new:
        steps.append(add_routes(change.balancer, joining, after=[ready_id(node) for node in joining]))
    return steps


def _inventory_without(change: KubesprayChange, leaving: Nodes) -> Step:
    cluster, left = change.nodes.cluster(masters(change.nodes.staying)), in_order(change.nodes.staying)
    name = f"{INVENTORY} without {slots(leaving)}"
    return inventory_step(change, name, cluster, left, of=leaving, after=[remove_id(leaving)])


def _forget(change: KubesprayChange, gone: Nodes) -> Iterator[Step]:
    """Of machines that went without a hook before it."""
    if not gone:
        return
    for node in gone:
        yield _delete_node(change, node)
    cluster, left = change.nodes.cluster(masters(change.nodes.staying)), in_order(change.nodes.staying)
    yield inventory_step(change, f"{INVENTORY} without {slots(gone)}", cluster, left, of=gone,
                         after=[_delete_id(node) for node in gone])  # fmt: skip


def _delete_node(change: KubesprayChange, node: Node) -> Step:
    cluster = change.nodes.cluster(masters(change.nodes.staying))
    return step(_delete_id(node), DeleteNode(node=node, cluster=cluster), node=node)


def _set_up_balancer(change: KubesprayChange, nodes: Nodes, *, after: Sequence[str]) -> Iterator[Step]:
    if change.balancer:
        yield set_up(change.balancer, nodes, after=after, again=bool(change.nodes.before))


def _remove_routes(change: KubesprayChange, leaving: Nodes, *, after: Sequence[str]) -> Step | None:
    """None without a balancer, and where it is made anew itself: it may be dead."""
    if change.balancer is None or change.balancer_is_new:
        return None
    return remove_routes(change.balancer, leaving, after=after)


def _heal_balancer(change: KubesprayChange) -> Iterator[Step]:
    """On its new machine, behind whatever nodes are healed with it."""
    if change.balancer is None or not change.balancer_is_new:
        return
    nodes = in_order(change.nodes.staying, change.nodes.joining)
    cluster, names = change.nodes.cluster(masters(change.nodes.staying)), f"{CLUSTER} for the balancer's address"
    new = change.nodes.joining
    # No playbook runs while packages are installed on a node.
    clients = [client_id(node) for node in new] if change.nodes.parameters.storage_server else []
    again = set_up(change.balancer, nodes, after=[ready_id(node) for node in new], again=True)
    yield again
    yield inventory_step(change, INVENTORY, cluster, nodes, after=[again.id, *clients], published=change.published)
    # With a limit kubespray wants to know all others: of a server that was another one last time it may know none.
    facts = playbook_step(
        change, FACTS, f"{FACTS} for the balancer's address", cluster, nodes, of=(), after=[INVENTORY],
        if_changed=INVENTORY,
    )  # fmt: skip
    yield facts
    yield playbook_step(
        change, CLUSTER, names, cluster, nodes, of=(), limit=[MASTERS], after=[facts.id], if_changed=INVENTORY
    )
    yield _register(change, cluster, after=[names])


def _register(change: KubesprayChange, cluster: ClusterSpec, *, after: Sequence[str]) -> Step:
    """With the balancer's address, where there is one, else with that of the first master."""
    name = change.nodes.parameters.vim_name_for(cluster.instance)
    args = Register(cluster=cluster, vim_name=name)
    if change.balancer:
        args = Register(cluster=cluster, vim_name=name, at=change.balancer.node, port=API_FRONT_END)
        after = [*after, set_up_id(change.balancer)]
    return step(REGISTER, args, after=after, effects=[Effect(Verb.MAKE, "VIM", name)])


def _smoke_test(change: KubesprayChange, cluster: ClusterSpec, nodes: Nodes, *, after: Sequence[str]) -> Iterator[Step]:
    if change.nodes.parameters.smoke_test:
        yield step(SMOKE, SmokeTest(cluster=cluster, nodes=nodes, foreign=True), after=after)


def _smoke_id(change: KubesprayChange) -> list[str]:
    return [SMOKE] if change.nodes.parameters.smoke_test else []


def _delete_id(node: Node) -> str:
    return f"delete node {node.slot}"
