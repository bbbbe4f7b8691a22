"""No parameter is taken and then ignored: each is used, which the table says where, or refused by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from slipway.cluster.checks import refuse_unsupported_parameters
from slipway.cluster.parameters import NAME, PATH, ClusterParameters, read_parameters
from slipway.model.errors import BadRequest, Unprocessable
from tests.unit.cluster.documents import DIGEST, FULL, KUBESPRAY, PACKAGES, REGISTRIES, V2, VOLUMES
from tests.unit.cluster.parameter_names import parameter_names

SOURCE = Path(__file__).parents[3] / "src" / "slipway" / "cluster"
SCRIPT = "Scripts/node.sh"
NODES = {key: V2[key] for key in ("master_node", "worker_node")}
HTTPS = {"connection_type": 1, "server": "registry.example.com"}
LOGIN = {"username": "user01", "password": "user01"}

# What is refused, with the value that is: alone, or because the package's own script makes the nodes.
ALWAYS: dict[str, Any] = {
    "ansible": KUBESPRAY["ansible"],
    "external_lb_param": KUBESPRAY["external_lb_param"],
}
WITH_SCRIPT: dict[str, Any] = {
    "kubernetes_version": "1.34.4",
    "cni": "none",
    "image_repository": "registry.example.com/kubernetes",
    "source": FULL["source"],
}
# Where each of the others is used: a module of slipway.cluster, and the words there.
USED = {
    "script_path": ("plan_adjustments.py", "parameters.script_path"),
    "vim_name": ("plans.py", "vim_name_for"),
    "aspect_id": ("roles.py", "aspect_id"),
    "vdu_id": ("roles.py", "vdu_id"),
    "ssh_cp_name": ("change.py", "role.ssh_cp_name"),
    "nic_cp_name": ("change.py", "role.traffic_cp_name"),
    "username": ("spec.py", "parameters.username"),
    "password": ("spec.py", "parameters.password"),
    "private_key": ("spec.py", "parameters.private_key"),
    "passphrase": ("spec.py", "parameters.passphrase"),
    "ssh_port": ("spec.py", "parameters.ssh_port"),
    "labels": ("steps/nodes.py", "args.node.labels"),
    "taints": ("steps/bootstrap.py", "node.taints"),
    "pod_cidr": ("networks.py", "pod_cidr"),
    "cluster_cidr": ("networks.py", "cluster_cidr"),
    "cluster_cp_name": ("checks.py", "master_node.cluster_cp_name"),
    "cluster_fip_name": ("checks.py", "node.cluster_fip_name"),
    "cluster_ip": ("checks.py", "master_node.cluster_ip"),
    "kubernetes_version": ("request.py", "parameters.kubernetes_version"),
    "cni": ("plans.py", "parameters.cni"),
    "image_repository": ("change.py", "parameters.image_repository"),
    "source": ("steps/sources.py", "source.kind"),
    "source.kind": ("steps/sources.py", "source.kind"),
    "source.repository": ("steps/sources.py", "source.repository"),
    "source.signing_key_path": ("steps/sources.py", "source.signing_key_path"),
    "source.allow_unsigned": ("steps/sources.py", "source.allow_unsigned"),
    "source.files": ("steps/sources.py", "source.files"),
    "source.files[].name": ("steps/sources.py", "file.name"),
    "source.files[].url": ("steps/sources.py", "file.url"),
    "source.files[].path": ("steps/sources.py", "file.path"),
    "source.files[].sha256": ("steps/sources.py", "file.sha256"),
    "helm": ("plan_adjustments.py", "parameters.helm"),
    "helm.install": ("plan_adjustments.py", "wanted.install"),
    "helm.version": ("steps/helm.py", "given.version"),
    "helm.url": ("steps/helm.py", "given.url"),
    "helm.path": ("steps/helm.py", "given.path"),
    "helm.sha256": ("steps/helm.py", "given.sha256"),
    "helm_installation_script_path": ("plan_adjustments.py", "helm_installation_script_path"),
    "proxy": ("steps/setup.py", 'setup["proxy"]'),
    "proxy.http_proxy": ("steps/setup.py", "proxy.http_proxy"),
    "proxy.https_proxy": ("steps/setup.py", "proxy.https_proxy"),
    "proxy.no_proxy": ("steps/setup.py", "proxy.no_proxy"),
    "proxy.k8s_node_cidr": ("checks.py", "proxy.k8s_node_cidr"),
    "drain": ("planning.py", "parameters.drain"),
    "drain.timeout": ("planning.py", "drain.timeout"),
    "drain.empty_dir": ("planning.py", "drain.empty_dir"),
    "drain.force": ("planning.py", "drain.force"),
    "smoke_test": ("plans.py", "parameters.smoke_test"),
    "private_registry_connection_info": ("registry_plans.py", "document.get(REGISTRIES)"),
    "private_registry_connection_info[].connection_type": ("containerd_config.py", "connection_type"),
    "private_registry_connection_info[].server": ("steps/registries.py", "registry.server"),
    "private_registry_connection_info[].username": ("steps/registries.py", "one.username"),
    "private_registry_connection_info[].password": ("steps/registries.py", "one.password"),
    "private_registry_connection_info[].certificate_path": ("steps/registries.py", "registry.certificate_path"),
    "private_registry_connection_info[].hosts_string": ("steps/registries.py", "one.hosts_string"),
    "private_registry_connection_info[].image": ("steps/registries.py", "registry.image"),
    "storage_server": ("storage_plan.py", "parameters.storage_server"),
    "storage_server.cinder_volume_setup_params": ("storage_plan.py", "server.cinder_volume_setup_params"),
    "storage_server.cinder_volume_setup_params[].volume_resource_id": ("storage_plan.py", "one.volume_resource_id"),
    "storage_server.cinder_volume_setup_params[].mount_to": ("storage_plan.py", "one.mount_to"),
    "storage_server.nfs_server_setup_params": ("storage_plan.py", "server.nfs_server_setup_params"),
    "storage_server.nfs_server_setup_params[].export_dir": ("storage_plan.py", "one.export_dir"),
    "storage_server.nfs_server_setup_params[].export_to": ("storage_plan.py", "one.export_to"),
    "pv_registration_params": ("persistent_volumes.py", "parameters.pv_registration_params"),
    "pv_registration_params[].pv_manifest_file_path": ("persistent_volumes.py", "wanted.pv_manifest_file_path"),
    "pv_registration_params[].nfs_server_cp": ("persistent_volumes.py", "wanted.nfs_server_cp"),
}
LOGIN_OF_STORAGE = {  # read by the code that reads those of nodes
    f"storage_server.{name}"
    for name in ("ssh_cp_name", "nic_cp_name", "username", "password", "private_key", "passphrase", "ssh_port")
}
GROUPS = {"master_node", "worker_node"}
ALL = tuple(parameter_names(ClusterParameters))


def refused(**given: Any) -> str:
    with pytest.raises(Unprocessable) as caught:
        refuse_unsupported_parameters(read_parameters({NAME: NODES | given}))
    return caught.value.detail


def accepted(**given: Any) -> None:
    refuse_unsupported_parameters(read_parameters({NAME: NODES | given}))


def is_refused(name: str) -> bool:
    """The tests below give each of them; what is below one is refused with it."""
    return re.split(r"[.\[]", name)[0] in ALWAYS


def as_in_table(name: str) -> str:
    """Both kinds of node, and the login of the storage server, are read by the same code."""
    shared = "storage_server[.]" if name in LOGIN_OF_STORAGE else "(master|worker)_node[.]"
    return re.sub(f"^{shared}", "", name)


def test_each_parameter_is_in_one_table() -> None:
    assert {as_in_table(name) for name in ALL if name not in GROUPS and not is_refused(name)} == USED.keys()
    assert {*ALWAYS} <= {*ALL}


@pytest.mark.parametrize("name", sorted(name for name in ALL if name not in GROUPS and not is_refused(name)))
def test_what_is_used_is_used_where_the_table_says(name: str) -> None:
    module, words = USED[as_in_table(name)]
    assert words in (SOURCE / module).read_text(), f"{name} is not used in {module}"


@pytest.mark.parametrize("name", sorted(ALWAYS))
def test_what_this_driver_does_nothing_about_is_refused_by_name(name: str) -> None:
    detail = refused(**{name: ALWAYS[name]})
    assert f"{PATH}.{name}: only clusters by the management driver kubespray have it; leave it out" in detail


@pytest.mark.parametrize("empty", [None, {}, [], "", False])
@pytest.mark.parametrize("name", sorted([*ALWAYS, "storage_server", "pv_registration_params"]))
def test_an_empty_one_says_nothing_and_passes(name: str, empty: Any) -> None:
    accepted(**{name: empty})


@pytest.mark.parametrize("name", sorted(WITH_SCRIPT))
def test_what_the_packages_own_script_decides_is_refused_beside_it(name: str) -> None:
    accepted(**{name: WITH_SCRIPT[name]})
    assert refused(script_path=SCRIPT, **{name: WITH_SCRIPT[name]}).startswith(f"{PATH}.{name}: ")


@pytest.mark.parametrize("node", ["master_node", "worker_node"])
def test_taints_are_the_scripts_affair(node: str) -> None:
    given = {node: V2[node] | {"taints": ["example.com/role=edge:NoSchedule"]}}
    accepted(**given)
    assert refused(script_path=SCRIPT, **given).startswith(f"{PATH}.{node}.taints: ")


@pytest.mark.parametrize(
    "registry", [HTTPS, HTTPS | LOGIN, HTTPS | {"certificate_path": "Files/ca.crt", "hosts_string": "10.0.0.1 a"}]
)
def test_registries_of_all_kinds_work_beside_a_script(registry: dict[str, Any]) -> None:
    accepted(script_path=SCRIPT, private_registry_connection_info=[registry])


def test_all_of_them_are_told_in_one_answer() -> None:
    detail = refused(**{**{key: FULL[key] for key in ALWAYS}, "script_path": SCRIPT, "cni": "none"})
    assert all(f"{PATH}.{name}: " in detail for name in (*ALWAYS, "cni"))


@pytest.mark.parametrize("document", [V2, PACKAGES, VOLUMES, {**REGISTRIES, "script_path": ""}])
def test_what_works_passes(document: dict[str, Any]) -> None:
    refuse_unsupported_parameters(read_parameters({NAME: document}))


def test_a_digest_is_still_read_where_it_counts() -> None:
    """An error in a parameter goes before the refusal of another one."""
    with pytest.raises(BadRequest):
        read_parameters({NAME: NODES | {"source": {"kind": "files", "files": [{"name": "x", "sha256": DIGEST}]}}})
