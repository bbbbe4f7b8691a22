"""The steps that plans of clusters by kubespray are made of, with their names and times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.cluster.change import Nodes
from slipway.cluster.planning import step
from slipway.cluster.spec import ClusterSpec, Node
from slipway.cluster.steps.arguments import Ready, SetHostName
from slipway.kubespray.arguments import (
    AnsibleServer,
    CleanServer,
    PointClusterInfo,
    PrepareServer,
    RemoveNodes,
    RunPlaybook,
    WriteInventory,
    kubespray_action,
)
from slipway.kubespray.change import KubesprayChange
from slipway.kubespray.steps.server import PREPARE
from slipway.model.plan import Effect, Step, Verb

CLUSTER, SCALE, FACTS, UPGRADE = "cluster.yml", "scale.yml", "playbooks/facts.yml", "upgrade-cluster.yml"
CLEAN, LEAVE = "clean the Ansible server", "clean the former Ansible server"
# Seconds that a run has: for itself, and for each node that it works on.
LIMITS = {CLUSTER: (3600, 600), SCALE: (1800, 600), FACTS: (600, 20), UPGRADE: (3600, 900)}
REMOVE_LIMIT = (1200, 600)
MARGIN = 300.0  # that a step has beyond its run


def prepare_step(change: KubesprayChange, *, claims: bool = False) -> Step:
    is_new = claims or change.former is not None
    args = PrepareServer(ansible=change.ansible, passwords=change.uses_passwords, claims=is_new)
    return _step(PREPARE, args)


def clean_step(change: KubesprayChange, *, forceful: bool) -> Step:
    gone = [Effect(Verb.REMOVE, "inventory", change.ansible.inventory)]
    return _step(CLEAN, CleanServer(ansible=change.ansible, forceful=forceful), effects=gone)


def leave_server_step(former: AnsibleServer) -> Step:
    """It may be gone: often that is why there is another one."""
    gone = [Effect(Verb.REMOVE, "inventory", f"{former.inventory} on {former.server.address}")]
    return _step(LEAVE, CleanServer(ansible=former, forceful=True), effects=gone)


def name_step(node: Node) -> Step:
    """The first contact with a machine: it gets its node's name, and shows its host key."""
    return step(name_id(node), SetHostName(node=node), node=node)


def inventory_step(
    change: KubesprayChange,
    step_id: str,
    cluster: ClusterSpec,
    nodes: Nodes,
    *,
    before: Nodes = (),
    of: Nodes = (),
    after: Sequence[str] = (),
    published: Nodes | None = None,
) -> Step:
    """`before`: to go back to in a rollback. `of`: those for which it is written.

    `published`: machines whose addresses certificates name; else the balancer's, unless that is made anew itself.
    """
    published = change.unchanged_balancer if published is None else published
    args = WriteInventory(
        ansible=change.ansible,
        cluster=cluster,
        nodes=nodes,
        before=before,
        published=published,
        plugin=change.plugin,
        setup=change.nodes.request.setup,
    )
    return _step(step_id, args, nodes=(*of, *published) if of else (), after=after)


def playbook_step(
    change: KubesprayChange,
    playbook: str,
    step_id: str,
    cluster: ClusterSpec,
    nodes: Nodes,
    *,
    of: Nodes,
    limit: Sequence[str] = (),
    joining: Nodes = (),
    variables: dict[str, Any] | None = None,
    after: Sequence[str],
    effects: Sequence[Effect] = (),
    irreversible: bool = False,
    if_changed: str | None = None,
) -> Step:
    """`of`: the nodes that it works on. `joining`: those that leave again in a rollback.

    `if_changed`: the step that writes the inventory, where there is nothing to do unless that has changed.
    """
    base, each = LIMITS[playbook]
    seconds = base + each * len(nodes if playbook == FACTS else of)  # those of all, whoever joins
    args = RunPlaybook(
        ansible=change.ansible,
        playbook=playbook,
        run=step_id,
        cluster=cluster,
        nodes=nodes,
        limit=tuple(limit),
        variables=variables or {},
        joining=joining,
        setup=change.nodes.request.setup,
        seconds=seconds,
        if_changed=if_changed,
    )
    return _step(
        step_id, args, nodes=of, after=after, effects=effects, timeout=seconds + MARGIN, irreversible=irreversible
    )


def remove_step(
    change: KubesprayChange, cluster: ClusterSpec, nodes: Nodes, leaving: Nodes, *, after: Sequence[str]
) -> Step:
    seconds = REMOVE_LIMIT[0] + REMOVE_LIMIT[1] * len(leaving)
    args = RemoveNodes(
        ansible=change.ansible,
        run=remove_id(leaving),
        cluster=cluster,
        nodes=nodes,
        leaving=leaving,
        setup=change.nodes.request.setup,
        seconds=seconds,
    )
    gone = [Effect(Verb.REMOVE, "node", node.name) for node in leaving]
    # Two runs at most: for the dead, and for those that answer.
    return _step(
        remove_id(leaving), args, nodes=leaving, after=after, effects=gone, timeout=2 * seconds + MARGIN,
        irreversible=True,
    )  # fmt: skip


def cluster_info_step(cluster: ClusterSpec, node: Node, *, after: Sequence[str]) -> Step:
    return _step(f"point cluster-info past {node.slot}", PointClusterInfo(cluster=cluster), nodes=(node,), after=after)


def ready_step(node: Node, cluster: ClusterSpec, *, after: Sequence[str]) -> Step:
    return step(ready_id(node), Ready(node=node, cluster=cluster), node=node, after=after)


def _step(step_id: str, args: Any, **more: Any) -> Step:
    return step(step_id, args, action=kubespray_action(type(args)), **more)


def slots(nodes: Nodes) -> str:
    return ", ".join(node.slot for node in nodes)


def name_id(node: Node) -> str:
    return f"name {node.slot}"


def ready_id(node: Node) -> str:
    return f"ready {node.slot}"


def remove_id(nodes: Nodes) -> str:
    return f"remove-node.yml for {slots(nodes)}"
