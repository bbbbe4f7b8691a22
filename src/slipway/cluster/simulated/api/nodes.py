"""Nodes: Ready while their kubelet speaks and the pods' network is set up. Who else is silent loses its pods."""

from __future__ import annotations

import sqlite3

from slipway.cluster.simulated.api.kinds import DAEMON_SET, NODE
from slipway.cluster.simulated.api.objects import ObjectStore, now
from slipway.cluster.simulated.api.pods import end, place_waiting
from slipway.cluster.simulated.api.workloads import tend_daemons_on, tend_deployments
from slipway.cluster.simulated.host import kubelet_of
from slipway.kube.pods import condition, controller_kind, is_mirror
from slipway.kube.seam import Object

CNI = "/etc/cni/net.d"


def tend_silent(db: sqlite3.Connection, store: ObjectStore, cluster_id: str) -> None:
    """Nodes whose machine has gone or was broken since the last call."""
    if silent := db.execute("SELECT node FROM silent WHERE cluster_id = ?", (cluster_id,)).fetchall():
        db.execute("DELETE FROM silent WHERE cluster_id = ?", (cluster_id,))
        for (name,) in silent:
            tend_node(db, store, cluster_id, name)


def tend_all(db: sqlite3.Connection, store: ObjectStore, cluster_id: str) -> None:
    for node in store.all_of(NODE):
        _tend(db, store, cluster_id, node, network=has_network(store))
    _settle(store)


def tend_node(db: sqlite3.Connection, store: ObjectStore, cluster_id: str, name: str) -> None:
    if node := store.find(NODE, "", name):
        _tend(db, store, cluster_id, node, network=has_network(store))
        _settle(store)


def forget_node(store: ObjectStore, node: Object) -> None:
    """Pods of a node that is no more are no more; their controllers make others."""
    for pod in store.pods_on(node["metadata"]["name"]):
        end(store, pod, node_lives=False, grace=0)
    _settle(store)


def has_network(store: ObjectStore) -> bool:
    """Some DaemonSet brings every node the configuration of a network."""
    return any(
        volume.get("hostPath", {}).get("path") == CNI
        for daemon_set in store.all_of(DAEMON_SET)
        for volume in daemon_set["spec"]["template"].get("spec", {}).get("volumes") or ()
    )


def _tend(db: sqlite3.Connection, store: ObjectStore, cluster_id: str, node: Object, *, network: bool) -> None:
    name = node["metadata"]["name"]
    lives = kubelet_of(db, cluster_id, name) is not None
    if lives:
        tend_daemons_on(store, node)
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


def _settle(store: ObjectStore) -> None:
    place_waiting(store)
    tend_deployments(store)
