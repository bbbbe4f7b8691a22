"""Parameter objects to read: those that the seed documents print, and some that use everything there is."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

DIGEST = "0" * 64

_MASTERS = {
    "aspect_id": "master_instance",
    "ssh_cp_name": "masterNode_CP1",
    "nic_cp_name": "masterNode_CP1",
    "username": "ubuntu",
    "password": "ubuntu",
    "pod_cidr": "192.168.3.0/16",
    "cluster_cidr": "10.199.187.0/24",
    "cluster_cp_name": "masterNode_CP1",
}
_WORKERS = {
    "aspect_id": "worker_instance",
    "ssh_cp_name": "workerNode_CP2",
    "nic_cp_name": "workerNode_CP2",
    "username": "ubuntu",
    "password": "ubuntu",
}
_PROXY = {
    "http_proxy": "http://user1:password1@host1:port1",
    "https_proxy": "https://user2:password2@host2:port2",
    "no_proxy": "192.168.246.0/24,10.0.0.1",
    "k8s_node_cidr": "10.10.0.0/24",
}

KUBESPRAY: dict[str, Any] = {
    "script_path": "",
    "vim_name": "kubernetes_vim",
    "ansible": {
        "ip_address": "0.0.0.0",  # noqa: S104
        "username": "ansible",
        "password": "ansible",
        "kubespray_root_path": "",
        "transferring_inventory_path": "",
    },
    "master_node": _MASTERS,
    "worker_node": _WORKERS,
    "proxy": _PROXY,
    "external_lb_param": {
        "ssh_cp_name": "externalLB_instance",
        "ssh_username": "ubuntu",
        "ssh_password": "ubuntu",
        "script_path": "./Scripts/ExternalLB_installation.sh",
    },
}
REGISTRIES: dict[str, Any] = {
    "script_path": "Scripts/install_k8s_cluster.sh",
    "vim_name": "kubernetes_vim",
    "master_node": {**_MASTERS, "pod_cidr": "192.168.3.0/24"},
    "worker_node": _WORKERS,
    "proxy": {
        **_PROXY,
        "no_proxy": "192.168.246.0/24,10.0.0.1,registry.example.com",
        "k8s_node_cidr": "192.168.0.0/24",
    },
    "private_registry_connection_info": [
        {"connection_type": "0", "server": "192.168.0.10:5000"},
        {
            "connection_type": "1",
            "server": "registry.example.com",
            "username": "user01",
            "password": "user01",
            "certificate_path": "Files/registries/ca.crt",
            "hosts_string": "192.168.0.20 registry.example.com",
        },
    ],
}
VOLUMES: dict[str, Any] = {
    "script_path": "Scripts/install_k8s_cluster.sh",
    "vim_name": "kubernetes_vim",
    "master_node": _MASTERS,
    "worker_node": _WORKERS,
    "proxy": _PROXY,
    "storage_server": {
        "ssh_cp_name": "storage_server_CP",
        "username": "ubuntu",
        "password": "ubuntu",
        "cinder_volume_setup_params": [{"volume_resource_id": "storage_server_volume", "mount_to": "/volume"}],
        "nfs_server_setup_params": [
            {"export_dir": f"/volume/nfs/pv{number}", "export_to": "10.10.0.0/24"} for number in (1, 2, 3)
        ],
    },
    "pv_registration_params": [
        {"pv_manifest_file_path": f"Files/kubernetes/nfs-pv{number}.yaml", "nfs_server_cp": "storage_server_CP"}
        for number in (1, 2, 3)
    ],
}

REGISTRY_VNF: dict[str, Any] = {
    "ssh_cp_name": "CP1",
    "ssh_username": "ubuntu",
    "ssh_password": "ubuntu",
    "image_path": "Files/images/private_registry.tar",
}

# The dialect of v2, as the digest of its guide describes it.
V2: dict[str, Any] = {
    "script_path": "Scripts/install_k8s_cluster.sh",
    "master_node": {
        "vdu_id": "masterNode",
        "ssh_cp_name": "masterNode_CP1",
        "nic_cp_name": "masterNode_CP1",
        "username": "ubuntu",
        "password": "ubuntu",
        "pod_cidr": "192.168.3.0/16",
        "cluster_cidr": "10.199.187.0/24",
        "cluster_cp_name": "masterNode_CP1",
    },
    "worker_node": {
        "vdu_id": "workerNode",
        "ssh_cp_name": "workerNode_CP2",
        "nic_cp_name": "workerNode_CP2",
        "username": "ubuntu",
        "password": "ubuntu",
    },
}
SEEDS = {"kubespray": KUBESPRAY, "registries": REGISTRIES, "volumes": VOLUMES, "v2": V2}

_LOGIN = {"private_key": "-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n", "passphrase": "secret", "ssh_port": 2222}
_CARRIED = {
    "labels": {"example.com/role": "edge"},
    "taints": ["example.com/role=edge:NoSchedule", {"key": "slow", "effect": "NoExecute"}],
}
FULL: dict[str, Any] = {
    **KUBESPRAY,
    **REGISTRIES,
    **VOLUMES,
    "ansible": {
        **KUBESPRAY["ansible"],
        "private_key": "-----BEGIN OPENSSH PRIVATE KEY-----",
        "passphrase": "swordfish",
        "ssh_port": 2222,
        "host_key": f"ssh-ed25519 {'A' * 68}",
    },
    "external_lb_param": {
        **KUBESPRAY["external_lb_param"],
        "ssh_private_key": "-----BEGIN OPENSSH PRIVATE KEY-----",
        "ssh_passphrase": "swordfish",
        "ssh_port": 2222,
    },
    "master_node": {
        **_MASTERS,
        **_LOGIN,
        **_CARRIED,
        "vdu_id": "masterNode",
        "cluster_ip": "10.10.0.100",
        "cluster_fip_name": "vip_FloatingIP",
    },
    "worker_node": {**_WORKERS, **_LOGIN, **_CARRIED, "vdu_id": "workerNode"},
    "storage_server": {**VOLUMES["storage_server"], **_LOGIN, "nic_cp_name": "storage_server_CP"},
    "kubernetes_version": "v1.34.4",
    "cni": "flannel",
    "image_repository": "registry.example.com/kubernetes",
    "private_registry_connection_info": [
        *REGISTRIES["private_registry_connection_info"][:-1],
        {**REGISTRIES["private_registry_connection_info"][-1], "image": "tools/shell:1"},
    ],
    "source": {
        "kind": "files",
        "files": [
            {"name": "kubeadm", "url": "https://files.example.com/kubeadm", "sha256": DIGEST},
            {"name": "kubelet", "path": "Files/kubelet", "sha256": DIGEST},
            {"name": "kubectl", "path": "Files/kubectl", "sha256": DIGEST},
        ],
    },
    "helm": {"install": True, "version": "3.19.0", "path": "Files/helm.tar.gz", "sha256": DIGEST},
    "drain": {"timeout": "300", "empty_dir": "refuse", "force": True},
    "smoke_test": False,
}
PACKAGES: dict[str, Any] = {
    "master_node": _MASTERS,
    "worker_node": _WORKERS,
    "kubernetes_version": "1.34.4",
    "cni": "Files/kubernetes/calico.yaml",
    "source": {
        "kind": "packages",
        "repository": "http://packages.example.com/debian",
        "signing_key_path": "Files/repository.asc",
        "allow_unsigned": False,
    },
    "helm_installation_script_path": "Scripts/install_helm.sh",
}
HELM_FROM_URL: dict[str, Any] = {
    "master_node": _MASTERS,
    "worker_node": _WORKERS,
    "helm": {"url": "https://files.example.com/helm.tar.gz", "sha256": DIGEST},
}
EVERYTHING = {"full": FULL, "packages": PACKAGES, "helm from a URL": HELM_FROM_URL}

Place = tuple[str | int, ...]


def paths(value: Any, before: Place = ()) -> Iterator[Place]:
    """All entries of nested objects and lists, objects themselves included; what is below labels and taints is not."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield (*before, key)
        if key not in ("labels", "taints"):
            yield from paths(item, (*before, key))


def written(place: Place) -> str:
    """`master_node.pod_cidr`, `files[0].url`"""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def with_value(document: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    _above(changed, place)[place[-1]] = value
    return changed


def without(document: dict[str, Any], place: Place) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    del _above(changed, place)[place[-1]]
    return changed


def _above(document: Any, place: Place) -> Any:
    for part in place[:-1]:
        document = document[part]
    return document
