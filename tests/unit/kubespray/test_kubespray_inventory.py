"""The inventory and the variables that kubespray gets."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from slipway.cluster.containerd_config import RegistryLogin
from slipway.cluster.kubernetes_names import Taint
from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.parameters import RegistryParameters
from slipway.cluster.spec import Node, SshLogin
from slipway.kubespray.group_vars import cluster_variables, login_variables, proxy_variables, registry_variables
from slipway.kubespray.inventory import InventoryHost, as_yaml, check_hosts, hosts_document, hosts_yaml, known_hosts
from slipway.model.errors import StepError

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ"


def host(slot: str, number: int, *, master: bool = False, port: int = 22, **more: Any) -> InventoryHost:
    login = SshLogin(username="ubuntu", password="p", port=port)
    node = Node(machine=slot, slot=slot, name=slot.lower(), master=master, ssh="CP1", nic="CP2", login=login, **more)
    return InventoryHost(node=node, address=f"95.54.0.{number}", ip=f"10.3.0.{number}", host_key=KEY)


MASTERS = [host(f"M-{number}", number, master=True) for number in (1, 2, 3)]
WORKERS = [host(f"W-{number}", number) for number in (4, 5)]


def test_hosts_stand_in_the_groups_that_kubespray_reads() -> None:
    document = hosts_document([*MASTERS, *WORKERS])["all"]
    groups = {name: list(group.get("hosts", ())) for name, group in document["children"].items()}
    assert groups["kube_control_plane"] == groups["etcd"] == ["m-1", "m-2", "m-3"]
    assert groups["kube_node"] == ["w-4", "w-5"]
    assert groups["calico_rr"] == []
    assert set(document["children"]["k8s_cluster"]["children"]) == {"kube_control_plane", "kube_node"}


def test_a_host_has_its_addresses_its_login_and_its_member_of_etcd() -> None:
    assert hosts_document(MASTERS[:1])["all"]["hosts"]["m-1"] == {
        "ansible_host": "95.54.0.1",
        "ansible_port": 22,
        "ansible_user": "ubuntu",
        "ip": "10.3.0.1",
        "access_ip": "10.3.0.1",
        "etcd_member_name": "m-1",
    }
    assert "etcd_member_name" not in hosts_document(WORKERS)["all"]["hosts"]["w-4"]


def test_no_secret_is_in_it() -> None:
    assert "password" not in hosts_yaml([*MASTERS, *WORKERS])


def test_a_master_without_taints_runs_pods_as_a_worker_does() -> None:
    open_ = host("M-9", 9, master=True, taints=())
    children = hosts_document([open_, *WORKERS])["all"]["children"]
    assert list(children["kube_node"]["hosts"]) == ["w-4", "w-5", "m-9"]


def test_taints_are_written_as_kubectl_takes_them() -> None:
    taints = (Taint(key="a.example/b", value="c", effect="NoSchedule"), Taint(key="d", effect="NoExecute"))
    tainted = host("W-9", 9, taints=taints)
    hosts = hosts_document([tainted])["all"]["hosts"]
    assert hosts["w-9"]["node_taints"] == ["a.example/b=c:NoSchedule", "d=:NoExecute"]


def test_known_hosts_are_written_as_openssh_looks_them_up() -> None:
    assert known_hosts([WORKERS[0], host("W-8", 8, port=2222)]) == f"95.54.0.4 {KEY}\n[95.54.0.8]:2222 {KEY}\n"


def test_a_password_that_looks_like_a_template_is_none() -> None:
    text = as_yaml(login_variables(password="{{ lookup('pipe', 'id') }}", key_file=None))
    assert text.startswith("ansible_password: !unsafe '")
    plain = as_yaml(login_variables(password="over the hills-1", key_file=None))
    assert yaml.safe_load(plain) == {"ansible_password": "over the hills-1"}


@pytest.mark.parametrize(
    "password",
    [
        "#jinja2: variable_start_string:'[%', variable_end_string:'%]'[% lookup('pipe', 'id') %]",
        "{% set x = 1 %}",
        "{",
        "it's: #1\nnot",
    ],
)
def test_text_that_might_become_a_template_is_marked_as_none(password: str) -> None:
    """A header can choose other marks than braces, and two halves make a whole."""
    (mark,) = yaml.compose(as_yaml(login_variables(password=password, key_file=None)), Loader=yaml.SafeLoader).value
    assert (mark[1].tag, mark[1].value) == ("!unsafe", password)


def test_a_key_goes_before_a_password() -> None:
    assert login_variables(password="p", key_file="/inv/keys/k") == {"ansible_ssh_private_key_file": "/inv/keys/k"}


def test_networks_version_and_certificate_names_are_kubesprays_variables() -> None:
    networks = ClusterNetworks(pods="10.244.0.0/16", services="10.96.0.0/16", node_prefix=24, max_pods=110)
    found = cluster_variables(
        networks=networks,
        version="1.34.4",
        plugin="flannel",
        image_repository="registry.example.com/k8s",
        certificate_names=["192.0.2.1"],
    )
    assert found == {
        "etcd_deployment_type": "kubeadm",
        "kubelet_max_pods": 110,
        "supplementary_addresses_in_ssl_keys": ["192.0.2.1"],
        "kube_service_addresses": "10.96.0.0/16",
        "kube_pods_subnet": "10.244.0.0/16",
        "kube_network_node_prefix": 24,
        "kube_version": "1.34.4",
        "kube_network_plugin": "flannel",
        "kube_image_repo": "registry.example.com/k8s",
    }


def test_networks_of_ipv6_have_variables_of_their_own() -> None:
    networks = ClusterNetworks(pods="fd00:10:244::/56", services="fd00:10:96::/112", node_prefix=64)
    found = cluster_variables(networks=networks, version=None, plugin=None, image_repository=None, certificate_names=[])
    assert found["ipv6_stack"] is True
    assert found["ipv4_stack"] is False
    assert found["kube_pods_subnet_ipv6"] == "fd00:10:244::/56"
    assert "kube_version" not in found


def test_the_proxy_for_https_is_not_that_for_http() -> None:
    found = proxy_variables("http://a:1", "http://b:2", ["10.0.0.0/8", "localhost"])
    assert found["http_proxy"] == "http://a:1"
    assert found["https_proxy"] == "http://b:2"
    assert found["additional_no_proxy"] == "10.0.0.0/8,localhost"
    assert proxy_variables(None, None, ["10.0.0.0/8"]) == {}


def test_registries_become_mirrors_of_containerd() -> None:
    plain = RegistryParameters(connection_type=0, server="10.0.0.2:5000")
    login = RegistryParameters(connection_type=1, server="registry.example.com", certificate_path="Files/ca.crt")
    found = registry_variables([plain, login], {"registry.example.com": RegistryLogin("user", "pass")})
    first, second = found["containerd_registries_mirrors"]
    assert first["mirrors"] == [
        {"host": "http://10.0.0.2:5000", "capabilities": ["pull", "resolve"], "skip_verify": True}
    ]
    assert second["mirrors"][0]["header"] == {"Authorization": "Basic dXNlcjpwYXNz"}
    assert second["mirrors"][0]["ca"] == "/etc/containerd/certs.d/registry.example.com/ca.crt"
    assert registry_variables([], {}) == {}


def test_two_nodes_at_one_address_are_refused() -> None:
    check_hosts([*MASTERS, *WORKERS])
    check_hosts([MASTERS[0], replace(MASTERS[1], address=MASTERS[0].address, node=host("M-2", 2, port=23).node)])
    with pytest.raises(StepError, match=r"M-1 and W-4 have the same address, 10\.3\.0\.1\."):
        check_hosts([*MASTERS, replace(WORKERS[0], ip=MASTERS[0].ip)])
    with pytest.raises(StepError, match=r"M-1 and W-4 have the same address, 95\.54\.0\.1 port 22\."):
        check_hosts([*MASTERS, replace(WORKERS[0], address=MASTERS[0].address)])
