"""The documents that kubeadm reads, as plain data, in the version of its format that a Kubernetes version knows.

Values are put into data and written by a YAML serializer, so none of them can become a key or a document. Secrets
stand there as references until the moment the text is written for a node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import yaml

from slipway.cluster.kubernetes_names import Taint
from slipway.cluster.naming import API_PORT, BALANCED_API_PORT, host_and_port
from slipway.cluster.networks import MOST_PODS, ClusterNetworks
from slipway.cluster.values import Secret
from slipway.cluster.versions import V1BETA4, Version
from slipway.model.secrets import find_references, replace_references

CRI_SOCKET = "unix:///run/containerd/containerd.sock"
TOKEN_LIFETIME = "2h0m0s"  # noqa: S105 - how long, not what
ETCD_START_TIME = "5m0s"  # of a master that joins; by itself kubeadm waits two minutes, little for a slow disk

Document = dict[str, Any]


class _Quoting(yaml.CSafeDumper):
    """All text in quotes: what is plain text to Python's YAML (1e3, 0o17) is a number to that of Go."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


class ClusterShape(msgspec.Struct, frozen=True, kw_only=True):
    """What all nodes of a cluster agree on. `address` is the virtual one, or the only master's own."""

    name: str
    version: Version
    address: str
    balanced: bool
    networks: ClusterNetworks
    image_repository: str | None = None
    further_names: tuple[str, ...] = ()  # addresses and names by which the API is called, too

    @property
    def endpoint(self) -> str:
        return host_and_port(self.address, BALANCED_API_PORT if self.balanced else API_PORT)


class NodeShape(msgspec.Struct, frozen=True, kw_only=True):
    """`taints` None: masters get the taint that Kubernetes gives them, workers none."""

    name: str
    address: str
    taints: tuple[Taint, ...] | None = None


class JoinCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """What lets a machine into the cluster. `certificate_key` is for masters."""

    token: Secret
    ca_cert_hashes: tuple[str, ...]
    certificate_key: Secret | None = None


def init_documents(cluster: ClusterShape, node: NodeShape, credentials: JoinCredentials) -> list[Document]:
    """For `kubeadm init --upload-certs` on the first master."""
    init: Document = {
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": node.address, "bindPort": API_PORT},
        "nodeRegistration": _registration(cluster, node),
        "bootstrapTokens": [
            {
                "token": credentials.token.document,
                "ttl": TOKEN_LIFETIME,
                "usages": ["signing", "authentication"],
                "groups": ["system:bootstrappers:kubeadm:default-node-token"],
            }
        ],
    }
    if credentials.certificate_key is not None:
        init["certificateKey"] = credentials.certificate_key.document
    return [_of_kubeadm(cluster, init), cluster_document(cluster), kubelet_document(cluster), kube_proxy_document()]


def join_documents(
    cluster: ClusterShape, node: NodeShape, credentials: JoinCredentials, *, control_plane: bool
) -> list[Document]:
    join: Document = {
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": cluster.endpoint,
                "token": credentials.token.document,
                "caCertHashes": list(credentials.ca_cert_hashes),
            }
        },
        "nodeRegistration": _registration(cluster, node),
    }
    if control_plane:
        if credentials.certificate_key is None:
            raise ValueError("a master joins only with a certificate key")
        join["controlPlane"] = {
            "localAPIEndpoint": {"advertiseAddress": node.address, "bindPort": API_PORT},
            "certificateKey": credentials.certificate_key.document,
        }
        if cluster.version.needs.kubeadm_api == V1BETA4:
            join["timeouts"] = {"etcdAPICall": ETCD_START_TIME}
    return [_of_kubeadm(cluster, join)]


def upload_documents(cluster: ClusterShape, certificate_key: Secret) -> list[Document]:
    """For `kubeadm init phase upload-certs --upload-certs` on a master: the key is in no argument list."""
    init: Document = {
        "kind": "InitConfiguration",
        "nodeRegistration": {"criSocket": CRI_SOCKET},
        "certificateKey": certificate_key.document,
    }
    return [_of_kubeadm(cluster, init), cluster_document(cluster)]


def cluster_document(cluster: ClusterShape) -> Document:
    names = dict.fromkeys((cluster.address, *cluster.further_names))
    document: Document = {
        "kind": "ClusterConfiguration",
        "clusterName": cluster.name,
        "kubernetesVersion": cluster.version.tag,
        "controlPlaneEndpoint": cluster.endpoint,
        "networking": {"podSubnet": cluster.networks.pods, "serviceSubnet": cluster.networks.services},
        "apiServer": {"certSANs": list(names)},
        "controllerManager": {
            "extraArgs": _arguments(cluster, {"node-cidr-mask-size": str(cluster.networks.node_prefix)})
        },
    }
    if cluster.image_repository is not None:
        document["imageRepository"] = cluster.image_repository
    return _of_kubeadm(cluster, document)


def kubelet_document(cluster: ClusterShape) -> Document:
    document: Document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "systemd",
    }
    if cluster.networks.max_pods < MOST_PODS:
        document["maxPods"] = cluster.networks.max_pods
    if cluster.version.needs.refuses_cgroup_v1:
        document["failCgroupV1"] = False
    return document


def kube_proxy_document() -> Document:
    """The limit of tracked connections is left as the machine has it: a container may not set it."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "conntrack": {"maxPerCore": 0},
    }


def as_yaml(documents: Sequence[Document], value_of: Callable[[str], Any] | None = None) -> str:
    """The text for a node. `value_of` opens the secrets; a text with references in it is never written."""
    opened = [replace_references(one, value_of) for one in documents] if value_of else list(documents)
    if any(True for one in opened for _ in find_references(one)):
        raise ValueError("a secret of the configuration was not opened")
    text = yaml.dump_all(opened, Dumper=_Quoting, sort_keys=False, default_flow_style=False, width=4096)
    return str(text)


def _registration(cluster: ClusterShape, node: NodeShape) -> Document:
    registration: Document = {
        "name": node.name,
        "criSocket": CRI_SOCKET,
        "kubeletExtraArgs": _arguments(cluster, {"node-ip": node.address}),
    }
    if node.taints is not None:
        registration["taints"] = [taint.document for taint in node.taints]
    return registration


def _arguments(cluster: ClusterShape, arguments: dict[str, str]) -> Any:
    """A list of names and values since v1beta4, a map before."""
    if cluster.version.needs.kubeadm_api == V1BETA4:
        return [{"name": name, "value": value} for name, value in arguments.items()]
    return arguments


def _of_kubeadm(cluster: ClusterShape, document: Document) -> Document:
    return {"apiVersion": cluster.version.needs.kubeadm_api, **document}
