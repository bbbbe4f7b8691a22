"""kubeadm on a host: init, join, reset, upload of certificates, upgrade; and the checks that a real one makes."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import yaml

from slipway.cluster.versions import refuse_node, refuse_upgrade, version
from slipway.kube.bootstrap import ca_hash
from slipway.kube.nodes import node_is_ready
from slipway.remote.output import Result
from slipway.simulator.cluster import etcd
from slipway.simulator.cluster.addresses import api_server_at
from slipway.simulator.cluster.api import initial_objects
from slipway.simulator.cluster.api.kinds import NODE, SECRET
from slipway.simulator.cluster.api.nodes import reconcile_node
from slipway.simulator.cluster.api.objects import ObjectStore
from slipway.simulator.cluster.cluster import (
    Cluster,
    Upload,
    answering,
    delete_if_unused,
    find_cluster,
    has_quorum,
    kubeconfig,
    new_ca,
    save_cluster,
)
from slipway.simulator.cluster.host import ADMIN, KUBELET, MANIFESTS, VERSIONS, SimulatedHost, kubelet_of, save_host

PKI = "/etc/kubernetes/pki/ca.crt"
UPLOAD_LIFE = 2 * 3600.0
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Documents = dict[str, dict[str, Any]]  # by kind
_UNKNOWN = "couldn't validate the identity of the API Server"


def init(db: sqlite3.Connection, host: SimulatedHost, config: str) -> Result:
    reset(db, host)
    try:
        documents = _read(host, config)
        _preflight(host)
        _init(db, host, documents, documents["ClusterConfiguration"])
    except JoinError as error:
        return _failed(str(error))
    return Result(0, b"Your Kubernetes control-plane has initialized successfully!\n", b"")


def join(db: sqlite3.Connection, host: SimulatedHost, config: str) -> Result:
    reset(db, host)
    try:
        document = _read(host, config)["JoinConfiguration"]
        _preflight(host)
        _join(db, host, document)
    except JoinError as error:
        return _failed(str(error))
    return Result(0, b"This node has joined the cluster\n", b"")


def reset(db: sqlite3.Connection, host: SimulatedHost) -> None:
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
    reconcile_node(db, ObjectStore(db, cluster.id), cluster.id, node)
    delete_if_unused(db, cluster)


def upload_certificates(db: sqlite3.Connection, host: SimulatedHost, config: str) -> Result:
    cluster = find_cluster(db, host.cluster)
    if cluster is None or not host.is_master or not has_quorum(db, cluster):
        why = "upload-certs: error uploading certs: error creating token: context deadline exceeded"
        return _failed(why)
    key = _read(host, config)["InitConfiguration"]["certificateKey"]
    cluster.upload = Upload(key_hash(key), time.time() + UPLOAD_LIFE)
    save_cluster(db, cluster)
    return Result(0, b"", b"")


def _init(db: sqlite3.Connection, host: SimulatedHost, documents: Documents, configuration: dict[str, Any]) -> None:
    first = documents["InitConfiguration"]
    address = first["localAPIEndpoint"]["advertiseAddress"]
    cluster = Cluster(
        id=str(uuid4()),
        endpoint=configuration["controlPlaneEndpoint"],
        version=configuration["kubernetesVersion"],
        ca=new_ca(),
    )
    registration = first["nodeRegistration"]
    cluster.members.append(etcd.new_member(registration["name"], host.machine, address))
    save_cluster(db, cluster)
    _become_node(db, host, cluster, registration["name"], master=True)
    if api_server_at(db, host.machine, cluster.endpoint) is None:
        why = f"could not initialize a Kubernetes cluster: no answer from https://{cluster.endpoint}/livez"
        raise JoinError(f"wait-control-plane: {why}: context deadline exceeded")
    store = ObjectStore(db, cluster.id)
    tokens = [str(one["token"]) for one in first.get("bootstrapTokens", ())]
    initial_objects.add_initial_objects(store, cluster, tokens, yaml.safe_dump(configuration))
    _register(db, store, host, cluster, registration, address, master=True)


def _join(db: sqlite3.Connection, host: SimulatedHost, document: dict[str, Any]) -> None:
    bootstrap, registration = document["discovery"]["bootstrapToken"], document["nodeRegistration"]
    through = api_server_at(db, host.machine, bootstrap["apiServerEndpoint"])
    cluster = find_cluster(db, through.cluster) if through else None
    if cluster is None or not has_quorum(db, cluster):
        place = f"https://{bootstrap['apiServerEndpoint']}/api/v1/namespaces/kube-public/configmaps/cluster-info"
        why = f'failed to request the cluster-info ConfigMap: Get "{place}": context deadline exceeded'
        raise JoinError(f"preflight: couldn't validate the identity of the API Server: {why}")
    check_discovery(cluster, ObjectStore(db, cluster.id), bootstrap)
    control = document.get("controlPlane")
    if control:
        check_certificates(cluster, str(control.get("certificateKey")))
    add_node(db, host, cluster, registration, control)


def add_node(
    db: sqlite3.Connection,
    host: SimulatedHost,
    cluster: Cluster,
    registration: dict[str, Any],
    control: dict[str, Any] | None,
) -> None:
    """What follows once a node is let in. `control`: as in the configuration of one that becomes a master."""
    store, name = ObjectStore(db, cluster.id), registration["name"]
    if control:
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
            raise JoinError(f"check-etcd: etcd cluster is not healthy: {why}")


def _check_name(db: sqlite3.Connection, cluster: Cluster, store: ObjectStore, name: str) -> None:
    taken = store.find(NODE, "", name)
    if taken and node_is_ready(taken) and kubelet_of(db, cluster.id, name):
        why = (
            f'a Node with name "{name}" and status "Ready" already exists in the cluster. You must delete the existing'
        )
        raise JoinError(f"kubelet-start: {why} Node or change the name of this new joining Node")


def _become_node(db: sqlite3.Connection, host: SimulatedHost, cluster: Cluster, name: str, *, master: bool) -> None:
    host.cluster, host.node = cluster.id, name
    host.write(KUBELET, kubeconfig(cluster.endpoint, cluster.ca, f"system:node:{name}"))
    host.write(PKI, cluster.ca, 0o644)
    if master:
        host.write(ADMIN, kubeconfig(cluster.endpoint, cluster.ca, "kubernetes-admin"))
        for component in initial_objects.STATIC:
            host.write(f"{MANIFESTS}/{component}.yaml", "")
    save_host(db, host)


def _register(
    db: sqlite3.Connection,
    store: ObjectStore,
    host: SimulatedHost,
    cluster: Cluster,
    registration: dict[str, Any],
    address: str,
    *,
    master: bool,
) -> None:
    name, taints = registration["name"], registration.get("taints")
    initial_objects.register_node(store, name, address, f"v{host.version}", master=master, taints=taints)
    if master:
        initial_objects.register_static_pods(store, name)
    reconcile_node(db, store, cluster.id, name)


def _preflight(host: SimulatedHost) -> None:
    if not host.prepared:
        why = "[ERROR CRI]: could not connect to the container runtime: containerd.sock: connect: no such file"
        raise JoinError(f"preflight: [preflight] Some fatal errors occurred:\n\t{why}")


def _read(host: SimulatedHost, path: str) -> Documents:
    file = host.files.get(path)
    if file is None:
        raise JoinError(f"preflight: unable to read config from {path!r}: open {path}: no such file or directory")
    return {document["kind"]: document for document in yaml.load_all(file.content, Loader=_Loader)}


def _arguments(registration: dict[str, Any]) -> dict[str, str]:
    """A list of names and values, or, in older versions, a map."""
    given = registration.get("kubeletExtraArgs") or {}
    return given if isinstance(given, dict) else {one["name"]: one["value"] for one in given}


def _failed(why: str) -> Result:
    stderr = f"error: error execution phase {why}\nTo see the stack trace of this error execute with --v=5 or higher\n"
    return Result(1, b"", stderr.encode())


class JoinError(Exception):
    """What kubeadm prints after `error execution phase `."""


def check_discovery(cluster: Cluster, store: ObjectStore, bootstrap: dict[str, Any]) -> None:
    """In the order in which kubeadm finds out: is it signed with the token, and is the CA the one meant."""
    identifier, _, secret = str(bootstrap.get("token", "")).partition(".")
    found = store.find(SECRET, "kube-system", f"bootstrap-token-{identifier}")
    data = {key: base64.b64decode(value).decode() for key, value in (found or {}).get("data", {}).items()}
    if not data or _has_expired(data.get("expiration")):
        why = f'could not find a JWS signature in the cluster-info ConfigMap for token ID "{identifier}"'
        raise JoinError(f"preflight: {_UNKNOWN}: {why}")
    if data.get("token-secret") != secret:
        why = "failed to verify JWS signature of received cluster info object, can't trust this API Server"
        raise JoinError(f"preflight: {_UNKNOWN}: {why}")
    own = ca_hash(cluster.ca)
    if own not in bootstrap.get("caCertHashes", ()):
        why = "cluster CA found in cluster-info ConfigMap is invalid: none of the public keys"
        raise JoinError(f'preflight: {_UNKNOWN}: {why} "{own}" are pinned')


def check_certificates(cluster: Cluster, key: str) -> None:
    uploaded = cluster.uploaded()
    if uploaded is None:
        why = (
            'error downloading the secret: Secret "kubeadm-certs" was not found in the "kube-system" Namespace. '
            "This Secret might have expired. Please, run `kubeadm init phase upload-certs --upload-certs` on a control "
            "plane to generate a new one"
        )
        raise JoinError(f"control-plane-prepare/download-certs: error downloading certs: {why}")
    if uploaded.key != key_hash(key):
        why = "error decoding secret data with provided key: cipher: message authentication failed"
        raise JoinError(f"control-plane-prepare/download-certs: error downloading certs: {why}")


def key_hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _has_expired(moment: str | None) -> bool:
    return moment is not None and datetime.fromisoformat(moment) <= datetime.now(UTC)


def upgrade(db: sqlite3.Connection, host: SimulatedHost, wanted: str, how: str, source: str, *archives: str) -> Result:
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


def restart_kubelet(db: sqlite3.Connection, host: SimulatedHost, wanted: str, source: str) -> Result:
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
        reconcile_node(db, store, cluster.id, host.node)
    return Result(0, b"", b"")


def _has(host: SimulatedHost, program: str, wanted: str, source: str) -> bool:
    """From packages in its place, otherwise beside the one in use. Of fetched files kubeadm stands for all."""
    if source == "packages":
        in_place = host.files.get(f"/usr/bin/{program}")
        return host.version == wanted or (in_place is not None and in_place.content.decode() == wanted)
    return wanted in (*VERSIONS, host.version) or f"/opt/kubernetes/{wanted}/bin/kubeadm" in host.files
