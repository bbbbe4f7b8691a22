"""Deployments and DaemonSets: as many pods as they want, where they want them."""

from __future__ import annotations

import copy
import hashlib
import secrets

from slipway.kube.interface import Object, Objects
from slipway.kube.pods import condition, is_finished, is_terminating
from slipway.simulator.cluster.api.kinds import DAEMON_SET, DEPLOYMENT, POD
from slipway.simulator.cluster.api.objects import ObjectStore
from slipway.simulator.cluster.api.pods import end, fits, place, run


def reconcile_deployments(store: ObjectStore) -> None:
    for deployment in store.all_of(DEPLOYMENT):
        reconcile_deployment(store, deployment)


def reconcile_deployment(store: ObjectStore, deployment: Object) -> None:
    uid, wanted = deployment["metadata"]["uid"], deployment["spec"].get("replicas", 1)
    pods = _living(store.owned_by(uid))
    for pod in pods[wanted:]:
        end(store, pod, node_lives=True)
    if missing := wanted - len(pods):
        place(store, [_new_pod(store, deployment, "ReplicaSet") for _ in range(missing)])
    _tell(store, deployment, _living(store.owned_by(uid)), wanted)


def reconcile_daemons_on(store: ObjectStore, node: Object) -> None:
    for daemon_set in store.all_of(DAEMON_SET):
        _run_daemon(store, daemon_set, node)


def with_daemon_set_status(store: ObjectStore, daemon_set: Object) -> Object:
    """With its status, which is told when it is asked for: with every node that comes it would cost more."""
    pods = _living(store.owned_by(daemon_set["metadata"]["uid"]))
    ready = sum(1 for pod in pods if condition(pod, "Ready").get("status") == "True")
    status = {
        "observedGeneration": daemon_set["metadata"]["generation"],
        "desiredNumberScheduled": len(pods),
        "currentNumberScheduled": len(pods),
        "updatedNumberScheduled": len(pods),
        "numberReady": ready,
        "numberAvailable": ready,
    }
    return {**daemon_set, "status": status}


def remove_pods_of(store: ObjectStore, owner: Object) -> None:
    for pod in store.owned_by(owner["metadata"]["uid"]):
        end(store, pod, node_lives=True)


def _run_daemon(store: ObjectStore, daemon_set: Object, node: Object) -> None:
    """Its name comes from the node's, so that one look tells whether it is there."""
    node_name = node["metadata"]["name"]
    name = f"{daemon_set['metadata']['name']}-{hashlib.sha256(node_name.encode()).hexdigest()[:5]}"
    there = store.find(POD, daemon_set["metadata"]["namespace"], name)
    if there is None and fits(daemon_set["spec"]["template"].get("spec", {}), node):
        pod = _new_pod(store, daemon_set, "DaemonSet", name)
        pod["spec"]["nodeName"] = node_name
        run(store, pod)


def _new_pod(store: ObjectStore, owner: Object, controller: str, name: str | None = None) -> Object:
    template, metadata = owner["spec"]["template"], owner["metadata"]
    reference = {"apiVersion": "apps/v1", "kind": controller, "controller": True}
    reference |= {"name": metadata["name"], "uid": metadata["uid"]}
    pod = {
        "metadata": {
            "name": name or f"{metadata['name']}-{secrets.token_hex(5)}",
            "namespace": metadata["namespace"],
            "labels": dict(template.get("metadata", {}).get("labels") or {}),
            "ownerReferences": [reference],
        },
        "spec": copy.deepcopy(template.get("spec", {})),
    }
    return store.add(POD, pod)


def _living(pods: Objects) -> Objects:
    return [pod for pod in pods if not is_terminating(pod) and not is_finished(pod)]


def _tell(store: ObjectStore, deployment: Object, pods: Objects, wanted: int) -> None:
    ready = sum(1 for pod in pods if condition(pod, "Ready").get("status") == "True")
    enough = ready >= wanted - wanted // 4
    status = {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": len(pods),
        "updatedReplicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "conditions": [{"type": "Available", "status": "True" if enough else "False"}],
    }
    if deployment.get("status") != status:
        deployment["status"] = status
        store.put(DEPLOYMENT, deployment)
