"""A host comes to another version: kubeadm's part, then its kubelet's."""

from __future__ import annotations

import sqlite3

from slipway.cluster.simulated.api.kinds import NODE
from slipway.cluster.simulated.api.nodes import tend_node
from slipway.cluster.simulated.api.objects import ObjectStore
from slipway.cluster.simulated.cluster import find_cluster, has_quorum, save_cluster
from slipway.cluster.simulated.host import VERSIONS, Host
from slipway.cluster.versions import refuse_node, refuse_upgrade, version
from slipway.remote.output import Result


def upgrade(db: sqlite3.Connection, host: Host, wanted: str, how: str, source: str, *archives: str) -> Result:
    """`apply` changes the cluster; `node` follows it, and wants to be at its version."""
    cluster = find_cluster(db, host.cluster)
    if cluster is None or not has_quorum(db, cluster) or (how == "apply" and not host.is_master):
        return _failed("upgrade/config: failed to get config map: context deadline exceeded")
    if not _has(host, "kubeadm", wanted, source):
        return _failed(f"preflight: kubeadm {wanted} is not on this machine")
    if how == "apply":
        if refusal := refuse_upgrade(version(cluster.version), version(wanted)):
            return _failed(f"upgrade/version: {refusal.what}")
        cluster.version = f"v{wanted}"
        save_cluster(db, cluster)
    elif cluster.version != f"v{wanted}":
        return _failed(f"preflight: the cluster is at {cluster.version}, this kubeadm is {wanted}")
    return Result(0, b"", b"")


def restart_kubelet(db: sqlite3.Connection, host: Host, wanted: str, source: str) -> Result:
    cluster = find_cluster(db, host.cluster)
    if cluster is None or host.node is None or not _has(host, "kubelet", wanted, source):
        return Result(5, b"", b"Failed to restart kubelet.service\n")
    if refusal := refuse_node(version(cluster.version), version(wanted)):
        return Result(1, b"", f"kubelet: {refusal.what}\n".encode())
    host.version = wanted
    store = ObjectStore(db, cluster.id)
    if node := store.find(NODE, "", host.node):
        node["status"]["nodeInfo"]["kubeletVersion"] = f"v{wanted}"
        store.put(NODE, node)
        tend_node(db, store, cluster.id, host.node)
    return Result(0, b"", b"")


def _has(host: Host, program: str, wanted: str, source: str) -> bool:
    """From packages in its place, otherwise beside the one in use. Of fetched files kubeadm stands for all."""
    if source == "packages":
        in_place = host.files.get(f"/usr/bin/{program}")
        return host.version == wanted or (in_place is not None and in_place.content.decode() == wanted)
    return wanted in (*VERSIONS, host.version) or f"/opt/kubernetes/{wanted}/bin/kubeadm" in host.files


def _failed(why: str) -> Result:
    return Result(1, b"", f"error: error execution phase {why}\n".encode())
