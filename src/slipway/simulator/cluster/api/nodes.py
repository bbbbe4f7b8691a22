"""Nodes: Ready while their kubelet speaks and the pods' network is set up. Who else is silent loses its pods."""

from __future__ import annotations

import sqlite3

from slipway.kube.interface import Object
from slipway.kube.pods import condition, controller_kind, is_mirror
from slipway.simulator.cluster.api.kinds import DAEMON_SET, NODE
from slipway.simulator.cluster.api.objects import ObjectStore, now
from slipway.simulator.cluster.api.pods import end, schedule_pending
from slipway.simulator.cluster.api.workloads import reconcile_daemons_on, reconcile_deployments
from slipway.simulator.cluster.host import kubelet_of

CNI = "/etc/cni/net.d"


def reconcile_unreachable(db: sqlite3.Connection, store: ObjectStore, cluster_id: str) -> None:
    """Nodes whose machine has gone or was broken since the last call."""
    if silent := db.execute("SELECT node FROM silent WHERE cluster_id = ?", (cluster_id,)).fetchall():
        db.execute("DELETE FROM silent WHERE cluster_id = ?", (cluster_id,))
        for (name,) in silent:
            reconcile_node(db, store, cluster_id, name)


def reconcile_nodes(db: sqlite3.Connection, store: ObjectStore, cluster_id: str) -> None:
    for node in store.all_of(NODE):
        _reconcile(db, store, cluster_id, node, network=has_network(store))
    _reconcile_pods(store)


def reconcile_node(db: sqlite3.Connection, store: ObjectStore, cluster_id: str, name: str) -> None:
    if node := store.find(NODE, "", name):
        _reconcile(db, store, cluster_id, node, network=has_network(store))
        _reconcile_pods(store)


def remove_pods_of_node(store: ObjectStore, node: Object) -> None:
    """Pods of a node that is no more are no more; their controllers make others."""
    for pod in store.pods_on(node["metadata"]["name"]):
        end(store, pod, node_lives=False, grace=0)
    _reconcile_pods(store)


def has_network(store: ObjectStore) -> bool:
    """Some DaemonSet brings every node the configuration of a network."""
    return any(
        volume.get("hostPath", {}).get("path") == CNI
        for daemon_set in store.all_of(DAEMON_SET)
        for volume in daemon_set["spec"]["template"].get("spec", {}).get("volumes") or ()
    )


def _reconcile(db: sqlite3.Connection, store: ObjectStore, cluster_id: str, node: Object, *, network: bool) -> None:
    name = node["metadata"]["name"]
    lives = kubelet_of(db, cluster_id, name) is not None
    if lives:
        reconcile_daemons_on(store, node)
    else:
        for pod in store.pods_on(name):
            if not is_mirror(pod) and controller_kind(pod) != "DaemonSet":
                end(store, pod, node_lives=False)
    told = _ready(lives, network)
    before = condition(node, "Ready")
    if any(before.get(key) != value for key, value in told.items()):
        node.setdefault("status", {})["conditions"] = [{**told, "lastTransitionTime": now()}]
        store.put(NODE, node)


def _ready(lives: bool, network: bool) -> dict[str, str]:
    if not lives:
        told = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    elif not network:
        why = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
        told = ("False", "KubeletNotReady", f"{why} message:Network plugin returns error: cni plugin not initialized")
    else:
        told = ("True", "KubeletReady", "kubelet is posting ready status")
    return {"type": "Ready", "status": told[0], "reason": told[1], "message": told[2]}


def _reconcile_pods(store: ObjectStore) -> None:
    schedule_pending(store)
    reconcile_deployments(store)
