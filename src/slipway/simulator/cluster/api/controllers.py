"""The controllers of a cluster: they reconcile within the call that writes, not in the background."""

from __future__ import annotations

import sqlite3

from slipway.kube.interface import Object
from slipway.simulator.cluster.api import workloads
from slipway.simulator.cluster.api.kinds import (
    CLAIM,
    DAEMON_SET,
    DEFINITION,
    DEPLOYMENT,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    POD,
    Kind,
)
from slipway.simulator.cluster.api.nodes import (
    reconcile_node,
    reconcile_nodes,
    remove_pods_of_node,
)
from slipway.simulator.cluster.api.objects import ObjectStore
from slipway.simulator.cluster.api.pods import end, run, schedule_pending
from slipway.simulator.cluster.api.volumes import reconcile_claim, reconcile_volume, release_claim, remove_volume
from slipway.simulator.cluster.host import kubelet_of


def reconcile(db: sqlite3.Connection, store: ObjectStore, cluster_id: str, kind: Kind, made: Object) -> Object:
    """The object as it is after all that follows from it."""
    name = made["metadata"]["name"]
    if kind == POD:
        _pod_written(db, store, cluster_id, made)
    elif kind == NODE:
        reconcile_node(db, store, cluster_id, name)
    elif kind == DAEMON_SET:
        reconcile_nodes(db, store, cluster_id)
    elif kind == DEPLOYMENT:
        workloads.reconcile_deployment(store, made)
    elif kind == PERSISTENT_VOLUME:
        reconcile_volume(store, made)
    elif kind == CLAIM:
        reconcile_claim(store, made)
    elif kind == DEFINITION:
        conditions = [{"type": condition, "status": "True"} for condition in ("NamesAccepted", "Established")]
        if made.get("status") != {"conditions": conditions}:
            store.put(kind, made | {"status": {"conditions": conditions}})
    return store.find(kind, made["metadata"].get("namespace", "") if kind.namespaced else "", name) or made


def remove(
    db: sqlite3.Connection, store: ObjectStore, cluster_id: str, kind: Kind, there: Object, grace: int | None = None
) -> None:
    if kind == POD:
        node = there["spec"].get("nodeName")
        end(store, there, node_lives=bool(node and kubelet_of(db, cluster_id, node)), grace=grace)
        workloads.reconcile_deployments(store)
        if node:
            reconcile_node(db, store, cluster_id, node)
        return
    if kind == PERSISTENT_VOLUME:
        remove_volume(store, there)
        return
    store.remove(kind, there)
    if kind == CLAIM:
        release_claim(store, there)
    elif kind == NODE:
        remove_pods_of_node(store, there)
    elif kind in (DEPLOYMENT, DAEMON_SET):
        workloads.remove_pods_of(store, there)
    elif kind == NAMESPACE:
        store.remove_namespace(there["metadata"]["name"])


def _pod_written(db: sqlite3.Connection, store: ObjectStore, cluster_id: str, pod: Object) -> None:
    if "phase" in pod.get("status", {}):
        return
    node = pod["spec"].get("nodeName")
    if node is None:
        schedule_pending(store)
    elif kubelet_of(db, cluster_id, node):
        run(store, pod)
