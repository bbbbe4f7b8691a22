from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from slipway.cluster.kubeadm_config import (
    ClusterShape,
    JoinCredentials,
    NodeShape,
    as_yaml,
    init_documents,
    join_documents,
)
from slipway.cluster.kubernetes_names import Taint
from slipway.cluster.naming import host_and_port
from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.values import Secret
from slipway.cluster.versions import Version
from slipway.model.secrets import reference

TICKET = JoinCredentials(
    token=Secret(reference("token")), ca_cert_hashes=("sha256:ab",), certificate_key=Secret(reference("key"))
)
SECRETS = {"token": "abcdef.0123456789abcdef", "key": "f" * 64}
SHAPE = ClusterShape(
    name="mycluster",
    version=Version(1, 34, 4),
    address="10.10.0.100",
    balanced=True,
    networks=ClusterNetworks(pods="192.168.0.0/16", services="10.96.0.0/12", node_prefix=24),
    image_repository="registry.example.com",
    further_names=("203.0.113.7", "api.example.com", "10.10.0.100"),
)
NODE = NodeShape(name="masternode-0-ab", address="10.10.0.5")


def init(shape: ClusterShape = SHAPE, node: NodeShape = NODE) -> dict[str, Any]:
    text = as_yaml(init_documents(shape, node, TICKET), SECRETS.__getitem__)
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def join(control_plane: bool, shape: ClusterShape = SHAPE, node: NodeShape = NODE) -> dict[str, Any]:
    (document,) = yaml.safe_load_all(
        as_yaml(join_documents(shape, node, TICKET, control_plane=control_plane), SECRETS.__getitem__)
    )
    assert isinstance(document, dict)
    return document


def test_a_cluster_behind_a_virtual_address() -> None:
    cluster = init()["ClusterConfiguration"]
    assert cluster["apiVersion"] == "kubeadm.k8s.io/v1beta4"
    assert cluster["kubernetesVersion"] == "v1.34.4"
    assert cluster["controlPlaneEndpoint"] == "10.10.0.100:16443"
    assert cluster["networking"] == {"podSubnet": "192.168.0.0/16", "serviceSubnet": "10.96.0.0/12"}
    assert cluster["apiServer"]["certSANs"] == ["10.10.0.100", "203.0.113.7", "api.example.com"]
    assert cluster["imageRepository"] == "registry.example.com"
    assert cluster["controllerManager"]["extraArgs"] == [{"name": "node-cidr-mask-size", "value": "24"}]


def test_a_single_master_is_reached_at_its_own_port() -> None:
    cluster = init(replace(SHAPE, balanced=False, address="10.10.0.5", image_repository=None))["ClusterConfiguration"]
    assert cluster["controlPlaneEndpoint"] == "10.10.0.5:6443"
    assert "imageRepository" not in cluster


def test_the_first_master() -> None:
    document = init()["InitConfiguration"]
    assert document["localAPIEndpoint"] == {"advertiseAddress": "10.10.0.5", "bindPort": 6443}
    assert document["bootstrapTokens"][0]["token"] == SECRETS["token"]
    assert document["bootstrapTokens"][0]["ttl"] == "2h0m0s"
    assert document["certificateKey"] == SECRETS["key"]
    assert document["nodeRegistration"]["name"] == NODE.name
    assert document["nodeRegistration"]["kubeletExtraArgs"] == [{"name": "node-ip", "value": "10.10.0.5"}]
    assert "taints" not in document["nodeRegistration"]


def test_older_versions_get_the_older_format() -> None:
    documents = init(replace(SHAPE, version=Version(1, 30, 2)))
    assert documents["InitConfiguration"]["apiVersion"] == "kubeadm.k8s.io/v1beta3"
    assert documents["ClusterConfiguration"]["controllerManager"]["extraArgs"] == {"node-cidr-mask-size": "24"}
    assert documents["InitConfiguration"]["nodeRegistration"]["kubeletExtraArgs"] == {"node-ip": "10.10.0.5"}
    assert join(False, replace(SHAPE, version=Version(1, 30, 2)))["apiVersion"] == "kubeadm.k8s.io/v1beta3"


def test_kubelet_and_proxy() -> None:
    documents = init()
    assert documents["KubeletConfiguration"] == {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "systemd",
    }
    assert documents["KubeProxyConfiguration"]["conntrack"] == {"maxPerCore": 0}
    small = replace(SHAPE.networks, max_pods=29)
    newer = init(replace(SHAPE, version=Version(1, 35, 0), networks=small))["KubeletConfiguration"]
    assert (newer["maxPods"], newer["failCgroupV1"]) == (29, False)


def test_joining() -> None:
    worker, master = join(False), join(True)
    assert worker["discovery"]["bootstrapToken"] == {
        "apiServerEndpoint": "10.10.0.100:16443",
        "token": SECRETS["token"],
        "caCertHashes": ["sha256:ab"],
    }
    assert "controlPlane" not in worker
    assert master["controlPlane"] == {
        "localAPIEndpoint": {"advertiseAddress": "10.10.0.5", "bindPort": 6443},
        "certificateKey": SECRETS["key"],
    }


def test_a_master_has_time_to_start_its_etcd_where_kubeadm_can_be_told() -> None:
    """By itself it gives up after two minutes, which is little on a slow disk."""
    assert join(True)["timeouts"] == {"etcdAPICall": "5m0s"}
    assert "timeouts" not in join(False)
    assert "timeouts" not in join(True, replace(SHAPE, version=Version(1, 30, 2)))


def test_taints_replace_what_kubernetes_does_by_itself() -> None:
    edge = Taint(key="example.com/role", value="edge", effect="NoSchedule")
    assert join(False, node=replace(NODE, taints=(edge,)))["nodeRegistration"]["taints"] == [
        {"key": "example.com/role", "value": "edge", "effect": "NoSchedule"}
    ]
    assert join(True, node=replace(NODE, taints=()))["nodeRegistration"]["taints"] == []


def test_ipv6_addresses_stand_in_brackets() -> None:
    shape = replace(SHAPE, address="fd00::100")
    assert init(shape)["ClusterConfiguration"]["controlPlaneEndpoint"] == "[fd00::100]:16443"
    assert host_and_port("api.example.com", 6443) == "api.example.com:6443"


def test_a_master_does_not_join_without_a_certificate_key() -> None:
    with pytest.raises(ValueError, match="certificate key"):
        join_documents(SHAPE, NODE, replace(TICKET, certificate_key=None), control_plane=True)


def test_until_it_is_written_there_are_only_references() -> None:
    documents = init_documents(SHAPE, NODE, TICKET)
    assert documents[0]["certificateKey"] == {"$secret": "key"}
    with pytest.raises(ValueError, match="not opened"):
        as_yaml(documents)
    assert "certificateKey" not in init_documents(SHAPE, NODE, replace(TICKET, certificate_key=None))[0]


@pytest.mark.parametrize("text", ["1e3", "0o17", "123456.12345678901e234", "yes", "null", "~", "12:30:45", "0x1F"])
def test_text_that_looks_like_a_number_stays_text_for_every_reader(text: str) -> None:
    told = as_yaml(join_documents(SHAPE, replace(NODE, name=text), TICKET, control_plane=False), SECRETS.__getitem__)
    assert f'"name": "{text}"' in told


@given(st.text(), st.text(), st.text(), st.text(), st.lists(st.text()), st.sampled_from([30, 34]), st.text())
def test_no_value_can_add_a_key_or_a_document(
    name: str, address: str, repository: str, pods: str, names: list[str], minor: int, secret: str
) -> None:
    networks = replace(SHAPE.networks, pods=pods, services=repository)
    shape = replace(SHAPE, version=Version(1, minor, 0), address=address, networks=networks, name=name)
    shape = replace(shape, image_repository=repository, further_names=tuple(names))
    node = NodeShape(name=name, address=address, taints=(Taint(key=name, value=address, effect=pods),))
    clear = JoinCredentials(token=Secret(secret), ca_cert_hashes=tuple(names), certificate_key=Secret(secret))
    for documents in (
        init_documents(shape, node, clear),
        join_documents(shape, node, clear, control_plane=True),
        join_documents(shape, node, clear, control_plane=False),
    ):
        assert list(yaml.safe_load_all(as_yaml(documents))) == documents
