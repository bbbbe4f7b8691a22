"""kubeadm on a host: begins a cluster, enters one, leaves it, and uploads what a new master needs."""

from __future__ import annotations

import sqlite3
import time
from typing import Any
from uuid import uuid4

import yaml

from slipway.cluster.simulated import etcd
from slipway.cluster.simulated.api import beginning
from slipway.cluster.simulated.api.kinds import NODE
from slipway.cluster.simulated.api.nodes import tend_node
from slipway.cluster.simulated.api.objects import ObjectStore
from slipway.cluster.simulated.authority import kubeconfig, new_authority
from slipway.cluster.simulated.cluster import (
    Cluster,
    Upload,
    answering,
    find_cluster,
    forget_deserted,
    has_quorum,
    save_cluster,
)
from slipway.cluster.simulated.host import ADMIN, KUBELET, MANIFESTS, Host, kubelet_of, save_host
from slipway.cluster.simulated.tickets import NotLetIn, check_certificates, check_discovery, hash_of
from slipway.cluster.simulated.wires import api_server_at
from slipway.kube.nodes import node_is_ready
from slipway.remote.output import Result

PKI = "/etc/kubernetes/pki/ca.crt"
UPLOAD_LIFE = 2 * 3600.0
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Documents = dict[str, dict[str, Any]]  # by kind


def init(db: sqlite3.Connection, host: Host, config: str) -> Result:
    reset(db, host)
    try:
        documents = _read(host, config)
        _preflight(host)
        _begin(db, host, documents, documents["ClusterConfiguration"])
    except NotLetIn as error:
        return _failed(error)
    return Result(0, b"Your Kubernetes control-plane has initialized successfully!\n", b"")


def join(db: sqlite3.Connection, host: Host, config: str) -> Result:
    reset(db, host)
    try:
        document = _read(host, config)["JoinConfiguration"]
        _preflight(host)
        _enter(db, host, document)
    except NotLetIn as error:
        return _failed(error)
    return Result(0, b"This node has joined the cluster\n", b"")


def reset(db: sqlite3.Connection, host: Host) -> None:
    """Nothing to do on a host that is in no cluster. The Node object stays, as kubeadm leaves it."""
    cluster = find_cluster(db, host.cluster)
    node, host.node, host.cluster = host.node, None, None
    for path in [path for path in host.files if path in (ADMIN, KUBELET, PKI) or path.startswith(MANIFESTS)]:
        del host.files[path]
    if cluster is None or node is None:
        return
    if (own := cluster.member_on(host.machine)) and len(cluster.members) > 1 and etcd.may_leave(db, cluster, own):
        cluster.members.remove(own)
        save_cluster(db, cluster)
    save_host(db, host)
    tend_node(db, ObjectStore(db, cluster.id), cluster.id, node)
    forget_deserted(db, cluster)


def upload_certificates(db: sqlite3.Connection, host: Host, config: str) -> Result:
    cluster = find_cluster(db, host.cluster)
    if cluster is None or not host.is_master or not has_quorum(db, cluster):
        why = "upload-certs: error uploading certs: error creating token: context deadline exceeded"
        return _failed(NotLetIn(why))
    key = _read(host, config)["InitConfiguration"]["certificateKey"]
    cluster.upload = Upload(hash_of(key), time.time() + UPLOAD_LIFE)
    save_cluster(db, cluster)
    return Result(0, b"", b"")


def _begin(db: sqlite3.Connection, host: Host, documents: Documents, configuration: dict[str, Any]) -> None:
    first = documents["InitConfiguration"]
    address = first["localAPIEndpoint"]["advertiseAddress"]
    cluster = Cluster(
        id=str(uuid4()),
        endpoint=configuration["controlPlaneEndpoint"],
        version=configuration["kubernetesVersion"],
        ca=new_authority(),
    )
    registration = first["nodeRegistration"]
    cluster.members.append(etcd.new_member(registration["name"], host.machine, address))
    save_cluster(db, cluster)
    _become_node(db, host, cluster, registration["name"], master=True)
    if api_server_at(db, host.machine, cluster.endpoint) is None:
        why = f"could not initialize a Kubernetes cluster: no answer from https://{cluster.endpoint}/livez"
        raise NotLetIn(f"wait-control-plane: {why}: context deadline exceeded")
    store = ObjectStore(db, cluster.id)
    tokens = [str(one["token"]) for one in first.get("bootstrapTokens", ())]
    beginning.fill(store, cluster, tokens, yaml.safe_dump(configuration))
    _register(db, store, host, cluster, registration, address, master=True)


def _enter(db: sqlite3.Connection, host: Host, document: dict[str, Any]) -> None:
    ticket, registration = document["discovery"]["bootstrapToken"], document["nodeRegistration"]
    through = api_server_at(db, host.machine, ticket["apiServerEndpoint"])
    cluster = find_cluster(db, through.cluster) if through else None
    if cluster is None or not has_quorum(db, cluster):
        place = f"https://{ticket['apiServerEndpoint']}/api/v1/namespaces/kube-public/configmaps/cluster-info"
        why = f'failed to request the cluster-info ConfigMap: Get "{place}": context deadline exceeded'
        raise NotLetIn(f"preflight: couldn't validate the identity of the API Server: {why}")
    store, name = ObjectStore(db, cluster.id), registration["name"]
    check_discovery(cluster, store, ticket)
    control = document.get("controlPlane")
    if control:
        check_certificates(cluster, str(control.get("certificateKey")))
        _check_etcd(db, cluster)
    _check_name(db, cluster, store, name)
    if control:
        address = control["localAPIEndpoint"]["advertiseAddress"]
        cluster.members.append(etcd.new_member(name, host.machine, address))
        save_cluster(db, cluster)
    _become_node(db, host, cluster, name, master=bool(control))
    address = _arguments(registration)["node-ip"]
    _register(db, store, host, cluster, registration, address, master=bool(control))


def _check_etcd(db: sqlite3.Connection, cluster: Cluster) -> None:
    """Every member must answer: kubeadm adds none to an etcd that is not whole."""
    there = answering(db, cluster)
    for member in cluster.members:
        if member not in there:
            why = f"failed to dial endpoint {member.client} with maintenance client: context deadline exceeded"
            raise NotLetIn(f"check-etcd: etcd cluster is not healthy: {why}")


def _check_name(db: sqlite3.Connection, cluster: Cluster, store: ObjectStore, name: str) -> None:
    taken = store.find(NODE, "", name)
    if taken and node_is_ready(taken) and kubelet_of(db, cluster.id, name):
        why = (
            f'a Node with name "{name}" and status "Ready" already exists in the cluster. You must delete the existing'
        )
        raise NotLetIn(f"kubelet-start: {why} Node or change the name of this new joining Node")


def _become_node(db: sqlite3.Connection, host: Host, cluster: Cluster, name: str, *, master: bool) -> None:
    host.cluster, host.node = cluster.id, name
    host.write(KUBELET, kubeconfig(cluster.endpoint, cluster.ca, f"system:node:{name}"))
    host.write(PKI, cluster.ca, 0o644)
    if master:
        host.write(ADMIN, kubeconfig(cluster.endpoint, cluster.ca, "kubernetes-admin"))
        for component in beginning.STATIC:
            host.write(f"{MANIFESTS}/{component}.yaml", "")
    save_host(db, host)


def _register(
    db: sqlite3.Connection,
    store: ObjectStore,
    host: Host,
    cluster: Cluster,
    registration: dict[str, Any],
    address: str,
    *,
    master: bool,
) -> None:
    name, taints = registration["name"], registration.get("taints")
    beginning.register_node(store, name, address, f"v{host.version}", master=master, taints=taints)
    if master:
        beginning.register_static_pods(store, name)
    tend_node(db, store, cluster.id, name)


def _preflight(host: Host) -> None:
    if not host.prepared:
        why = "[ERROR CRI]: could not connect to the container runtime: containerd.sock: connect: no such file"
        raise NotLetIn(f"preflight: [preflight] Some fatal errors occurred:\n\t{why}")


def _read(host: Host, path: str) -> Documents:
    file = host.files.get(path)
    if file is None:
        raise NotLetIn(f"preflight: unable to read config from {path!r}: open {path}: no such file or directory")
    return {document["kind"]: document for document in yaml.load_all(file.content, Loader=_Loader)}


def _arguments(registration: dict[str, Any]) -> dict[str, str]:
    """A list of names and values, or, in older versions, a map."""
    given = registration.get("kubeletExtraArgs") or {}
    return given if isinstance(given, dict) else {one["name"]: one["value"] for one in given}


def _failed(error: NotLetIn) -> Result:
    stderr = (
        f"error: error execution phase {error}\nTo see the stack trace of this error execute with --v=5 or higher\n"
    )
    return Result(1, b"", stderr.encode())
