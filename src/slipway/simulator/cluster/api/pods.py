"""Pods: placed on a node that takes them, run there, and ended."""

from __future__ import annotations

from slipway.kube.interface import Object, Objects
from slipway.kube.nodes import node_is_ready
from slipway.kube.pods import is_finished, is_terminating
from slipway.simulator.cluster.api.kinds import NODE, POD
from slipway.simulator.cluster.api.objects import ObjectStore, now


def tolerated(spec: Object, node: Object) -> bool:
    return all(
        any(_tolerates(toleration, taint) for toleration in spec.get("tolerations") or ())
        for taint in node.get("spec", {}).get("taints") or ()
        if taint["effect"] in ("NoSchedule", "NoExecute")
    )


def fits(spec: Object, node: Object) -> bool:
    labels = node["metadata"].get("labels") or {}
    wanted = spec.get("nodeSelector") or {}
    return tolerated(spec, node) and all(labels.get(key) == value for key, value in wanted.items())


def place(store: ObjectStore, pods: Objects) -> None:
    """Each on the node with the fewest pods of those that take it; where there is none, it waits and says so."""
    if not pods:
        return
    nodes, load = store.all_of(NODE), store.pods_by_node()
    open_ = [node for node in nodes if node_is_ready(node) and not node.get("spec", {}).get("unschedulable")]
    for pod in pods:
        names = [node["metadata"]["name"] for node in open_ if fits(pod["spec"], node)]
        if not names:
            _wait(store, pod, f"0/{len(nodes)} nodes are available")
            continue
        chosen = min(names, key=lambda name: load.get(name, 0))
        load[chosen] = load.get(chosen, 0) + 1
        pod["spec"]["nodeName"] = chosen
        run(store, pod)


def schedule_pending(store: ObjectStore) -> None:
    place(store, [pod for pod in store.pods_on("") if not is_terminating(pod)])


def run(store: ObjectStore, pod: Object) -> Object:
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    conditions = [{"type": kind, "status": "True"} for kind in kinds]
    pod["status"] = {"phase": "Running", "startTime": now(), "conditions": conditions}
    return store.put(POD, pod)


def end(store: ObjectStore, pod: Object, *, node_lives: bool, grace: int | None = None) -> None:
    """Gone when its kubelet says so; where there is none, it takes a forced deletion, or the removal of the node."""
    if node_lives or grace == 0 or not pod["spec"].get("nodeName") or is_finished(pod):
        store.remove(POD, pod)
    elif not is_terminating(pod):
        pod["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 30 if grace is None else grace}
        store.put(POD, pod)


def _wait(store: ObjectStore, pod: Object, why: str) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    status = {"phase": "Pending", "conditions": [condition]}
    if pod.get("status") != status:
        pod["status"] = status
        store.put(POD, pod)


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, taint["effect"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, taint["key"])
    return bool(toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", ""))
