"""The objects that kubeadm makes in a new cluster, and those of a node that joins."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

from slipway.kube.interface import Object
from slipway.kube.pods import MIRROR
from slipway.simulator.cluster.api.kinds import (
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE,
    NODE,
    POD,
    SECRET,
    SERVICE_ACCOUNT,
)
from slipway.simulator.cluster.api.objects import ObjectStore
from slipway.simulator.cluster.api.pods import run
from slipway.simulator.cluster.cluster import Cluster, kubeconfig

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SYSTEM = "kube-system"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
STATIC = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
BOOTSTRAP_TOKEN_LIFETIME = timedelta(hours=2)


def add_initial_objects(store: ObjectStore, cluster: Cluster, tokens: list[str], configuration: str) -> None:
    for name in NAMESPACES:
        store.add(NAMESPACE, {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}})
        store.add(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": name}})
    info = {"kubeconfig": kubeconfig(cluster.endpoint, cluster.ca)}
    store.add(CONFIG_MAP, {"metadata": {"name": "cluster-info", "namespace": "kube-public"}, "data": info})
    data = {"ClusterConfiguration": configuration}
    store.add(CONFIG_MAP, {"metadata": {"name": "kubeadm-config", "namespace": SYSTEM}, "data": data})
    for token in tokens:
        _add_token(store, token)
    everywhere = {"hostNetwork": True, "tolerations": [{"operator": "Exists"}]}
    store.add(DAEMON_SET, _workload("kube-proxy", everywhere, {}))
    taint = {"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}
    store.add(DEPLOYMENT, _workload("coredns", {"tolerations": [taint]}, {"replicas": 2}))


def register_node(
    store: ObjectStore, name: str, address: str, version: str, *, master: bool, taints: list[Any] | None
) -> None:
    """One that is there already keeps what others said of it: labels, and that it is cordoned."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if master:
        labels |= {CONTROL_PLANE: "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}
    addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
    status: Object = {"addresses": addresses, "nodeInfo": {"kubeletVersion": version}, "conditions": []}
    there = store.find(NODE, "", name)
    if there is not None:
        there["metadata"]["labels"] = {**(there["metadata"].get("labels") or {}), **labels}
        store.put(NODE, there | {"status": status})
        return
    wanted = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}] if master and taints is None else taints
    spec = {"taints": wanted} if wanted else {}
    store.add(NODE, {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status})


def register_static_pods(store: ObjectStore, node: str) -> None:
    for component in STATIC:
        name = f"{component}-{node}"
        if store.find(POD, SYSTEM, name) is None:
            metadata = {"name": name, "namespace": SYSTEM, "annotations": {MIRROR: "simulated"}}
            metadata |= {"labels": {"component": component, "tier": "control-plane"}}
            run(store, store.add(POD, {"metadata": metadata, "spec": {"nodeName": node, "hostNetwork": True}}))


def _add_token(store: ObjectStore, token: str) -> None:
    identifier, secret = token.split(".")
    until = (datetime.now(UTC) + BOOTSTRAP_TOKEN_LIFETIME).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = {"token-id": identifier, "token-secret": secret, "expiration": until}
    store.add(
        SECRET,
        {
            "metadata": {"name": f"bootstrap-token-{identifier}", "namespace": SYSTEM},
            "type": "bootstrap.kubernetes.io/token",
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
        },
    )


def _workload(name: str, pod: Object, spec: Object) -> Object:
    labels = {"k8s-app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "metadata": {"name": name, "namespace": SYSTEM, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }
