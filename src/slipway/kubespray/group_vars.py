"""What kubespray is told of a cluster beside its hosts: variables of all groups, and those that are secret. Pure.

kubespray's own defaults count for whatever is not here: nothing of its sample inventory is copied or edited.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from slipway.cluster.containerd_config import RegistryLogin, registry_host
from slipway.cluster.networks import ClusterNetworks
from slipway.cluster.parameters import HTTP, RegistryParameters

KEYS = "keys"  # the folder beside the inventory with the users' private keys


def cluster_variables(
    *,
    networks: ClusterNetworks,
    version: str | None,
    plugin: str | None,
    image_repository: str | None,
    certificate_names: Sequence[str],
) -> dict[str, Any]:
    """Of the group `all`. etcd is run by kubeadm, so that Slipway can ask it before a master is taken away."""
    found: dict[str, Any] = {
        "etcd_deployment_type": "kubeadm",
        "kubelet_max_pods": networks.max_pods,
        "supplementary_addresses_in_ssl_keys": list(certificate_names),
        **_network_variables(networks),
    }
    if version is not None:
        found["kube_version"] = version
    if plugin is not None:
        found["kube_network_plugin"] = plugin
    if image_repository is not None:
        found["kube_image_repo"] = image_repository
    return found


def _network_variables(networks: ClusterNetworks) -> dict[str, Any]:
    if ipaddress.ip_network(networks.pods).version == 6:
        return {
            "ipv4_stack": False,
            "ipv6_stack": True,
            "kube_service_addresses_ipv6": networks.services,
            "kube_pods_subnet_ipv6": networks.pods,
            "kube_network_node_prefix_ipv6": networks.node_prefix,
        }
    return {
        "kube_service_addresses": networks.services,
        "kube_pods_subnet": networks.pods,
        "kube_network_node_prefix": networks.node_prefix,
    }


def proxy_variables(http: str | None, https: str | None, direct: Sequence[str]) -> dict[str, Any]:
    """They may hold a password. `direct`: what is reached without a proxy, beyond what kubespray adds itself."""
    given = {"http_proxy": http, "https_proxy": https}
    found: dict[str, Any] = {key: value for key, value in given.items() if value}
    if found:
        found["additional_no_proxy"] = ",".join(direct)
        found["no_proxy_exclude_workers"] = True  # or every scale would restart containerd on every node
    return found


def registry_variables(registries: Sequence[RegistryParameters], logins: Mapping[str, RegistryLogin]) -> dict[str, Any]:
    """containerd's hosts.toml by kubespray, until Slipway's own takes its place when the node is Ready.

    For the images that a node begins with, and for pods during later runs. A login is a header there, so this file is
    a secret one. The CA is where Slipway puts it: a node that is new has none before.
    """
    if not registries:
        return {}
    return {"containerd_registries_mirrors": [_mirror(one, logins.get(one.server)) for one in registries]}


def _mirror(registry: RegistryParameters, login: RegistryLogin | None) -> dict[str, Any]:
    host = registry_host(registry)
    plain = registry.connection_type == HTTP
    mirror: dict[str, Any] = {"host": host.url, "capabilities": ["pull", "resolve"], "skip_verify": plain}
    if host.certificate is not None:
        mirror["ca"] = host.certificate
    if login is not None:
        mirror["header"] = {"Authorization": f"Basic {basic(login)}"}
    return {"prefix": registry.server, "server": host.url, "mirrors": [mirror]}


def basic(login: RegistryLogin) -> str:
    """As HTTP sends it."""
    return base64.b64encode(f"{login.username}:{login.password}".encode()).decode()


def login_variables(*, password: str | None, key_file: str | None) -> dict[str, Any]:
    """Of one host: how Ansible logs in. A file with a password is for the user alone."""
    found: dict[str, Any] = {}
    if key_file is not None:
        found["ansible_ssh_private_key_file"] = key_file
    elif password is not None:
        found["ansible_password"] = password
    return found
