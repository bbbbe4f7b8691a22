"""The built-in pods' network: flannel, a part of the network for each node, in VXLAN."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

VERSION = "v0.26.7"
NAMESPACE = "kube-flannel"
REPOSITORY = "ghcr.io/flannel-io"
PLUGIN_VERSIONS = {REPOSITORY: "v1.6.2-flannel1"}  # the project numbers its plugin apart; a mirror of ours does not

Manifest = dict[str, Any]


def flannel_manifests(pods: str, image_repository: str | None = None) -> list[Manifest]:
    """In the order they are applied. `image_repository` must have `flannel` and `flannel-cni-plugin`."""
    repository = image_repository or REPOSITORY
    daemon = f"{repository}/flannel:{VERSION}"
    plugin = f"{repository}/flannel-cni-plugin:{PLUGIN_VERSIONS.get(repository, VERSION)}"
    return [*_account(), _configuration(pods), _daemon_set(daemon, plugin)]


def _account() -> list[Manifest]:
    enforce = {"pod-security.kubernetes.io/enforce": "privileged"}
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": enforce}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named("flannel")},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "flannel"}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "flannel"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "flannel"},
            "subjects": [{"kind": "ServiceAccount", "name": "flannel", "namespace": NAMESPACE}],
        },
    ]


def _configuration(pods: str) -> Manifest:
    is_ipv6 = ipaddress.ip_network(pods).version == 6
    family = {"EnableIPv4": False, "EnableIPv6": True, "IPv6Network": pods} if is_ipv6 else {"Network": pods}
    delegate = {"hairpinMode": True, "isDefaultGateway": True}
    plugins = [
        {"type": "flannel", "delegate": delegate},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    data = {
        "cni-conf.json": json.dumps({"name": "cbr0", "cniVersion": "0.3.1", "plugins": plugins}),
        "net-conf.json": json.dumps({**family, "EnableNFTables": False, "Backend": {"Type": "vxlan"}}),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _named("flannel"), "data": data}


def _daemon_set(daemon: str, plugin: str) -> Manifest:
    label = {"app": "flannel"}
    copy_configuration = ["cp", "-f", "/etc/kube-flannel/cni-conf.json", "/etc/cni/net.d/10-flannel.conflist"]
    pod = {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "serviceAccountName": "flannel",
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "initContainers": [
            {
                "name": "plugin",
                "image": plugin,
                "command": ["cp", "-f", "/flannel", "/opt/cni/bin/flannel"],
                "volumeMounts": [_mount("plugin", "/opt/cni/bin")],
            },
            {
                "name": "configuration",
                "image": daemon,
                "command": copy_configuration,
                "volumeMounts": [_mount("network", "/etc/cni/net.d"), _mount("configuration", "/etc/kube-flannel")],
            },
        ],
        "containers": [
            {
                "name": "flannel",
                "image": daemon,
                # The interface that has the node's own address: a machine may have others, and a default route there.
                "command": ["/opt/bin/flanneld", "--ip-masq", "--kube-subnet-mgr", "--iface=$(NODE_ADDRESS)"],
                "env": [
                    _field("POD_NAME", "metadata.name"),
                    _field("POD_NAMESPACE", "metadata.namespace"),
                    _field("NODE_ADDRESS", "status.hostIP"),
                ],
                "resources": {"requests": {"cpu": "50m", "memory": "30Mi"}},
                "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
                "volumeMounts": [
                    _mount("run", "/run/flannel"),
                    _mount("configuration", "/etc/kube-flannel"),
                    _mount("lock", "/run/xtables.lock"),
                ],
            }
        ],
        "volumes": [
            _of_host("run", "/run/flannel", "DirectoryOrCreate"),
            _of_host("plugin", "/opt/cni/bin", "DirectoryOrCreate"),
            _of_host("network", "/etc/cni/net.d", "DirectoryOrCreate"),
            {"name": "configuration", "configMap": {"name": "flannel"}},
            _of_host("lock", "/run/xtables.lock", "FileOrCreate"),
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _named("flannel") | {"labels": label},
        "spec": {"selector": {"matchLabels": label}, "template": {"metadata": {"labels": label}, "spec": pod}},
    }


def _named(name: str) -> Manifest:
    return {"name": name, "namespace": NAMESPACE}


def _mount(volume: str, path: str) -> Manifest:
    return {"name": volume, "mountPath": path}


def _of_host(volume: str, path: str, kind: str) -> Manifest:
    return {"name": volume, "hostPath": {"path": path, "type": kind}}


def _field(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
