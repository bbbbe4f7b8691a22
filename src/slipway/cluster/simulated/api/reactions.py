"""What a cluster's controllers make of a write, at once: nothing here works in the background."""

from __future__ import annotations

import sqlite3

from slipway.cluster.simulated.api import workloads
from slipway.cluster.simulated.api.kinds import DAEMON_SET, DEFINITION, DEPLOYMENT, NAMESPACE, NODE, POD, Kind
from slipway.cluster.simulated.api.nodes import forget_node, tend_all, tend_node, tend_silent
from slipway.cluster.simulated.api.objects import ObjectStore
from slipway.cluster.simulated.api.pods import end, place_waiting, run
from slipway.cluster.simulated.host import kubelet_of
from slipway.kube.seam import Object

catch_up = tend_silent


def written(db: sqlite3.Connection, store: ObjectStore, cluster_id: str, kind: Kind, made: Object) -> Object:
    """The object as it is after all that follows from it."""
    name = made["metadata"]["name"]
    if kind == POD:
        _pod_written(db, store, cluster_id, made)
    elif kind == NODE:
        tend_node(db, store, cluster_id, name)
    elif kind == DAEMON_SET:
        tend_all(db, store, cluster_id)
    elif kind == DEPLOYMENT:
        workloads.tend_deployment(store, made)
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
        workloads.tend_deployments(store)
        if node:
            tend_node(db, store, cluster_id, node)
        return
    store.remove(kind, there)
    if kind == NODE:
        forget_node(store, there)
    elif kind in (DEPLOYMENT, DAEMON_SET):
        workloads.remove_pods_of(store, there)
    elif kind == NAMESPACE:
        store.remove_namespace(there["metadata"]["name"])


def _pod_written(db: sqlite3.Connection, store: ObjectStore, cluster_id: str, pod: Object) -> None:
    if "phase" in pod.get("status", {}):
        return
    node = pod["spec"].get("nodeName")
    if node is None:
        place_waiting(store)
    elif kubelet_of(db, cluster_id, node):
        run(store, pod)
