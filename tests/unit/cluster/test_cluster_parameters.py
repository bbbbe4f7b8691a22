from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.cluster.parameters import NAME, PATH, ClusterParameters, read_parameters
from slipway.cluster.versions import Version
from slipway.model.errors import BadRequest
from tests.unit.cluster.documents import (
    EVERYTHING,
    FULL,
    HELM_FROM_URL,
    KUBESPRAY,
    PACKAGES,
    REGISTRIES,
    SEEDS,
    V2,
    VOLUMES,
    Place,
    paths,
    with_value,
    without,
    written,
)
from tests.unit.cluster.parameter_names import parameter_names

CASES = [(name, place) for name, document in EVERYTHING.items() for place in paths(document)]
REQUIRED = [
    ("master_node",), ("worker_node",),
    *((role, name) for role in ("master_node", "worker_node") for name in ("ssh_cp_name", "username")),
    *(("storage_server", name) for name in ("ssh_cp_name", "username", "cinder_volume_setup_params")),
    ("storage_server", "nfs_server_setup_params"),
    ("storage_server", "cinder_volume_setup_params", 0, "volume_resource_id"),
    ("storage_server", "cinder_volume_setup_params", 0, "mount_to"),
    ("storage_server", "nfs_server_setup_params", 1, "export_dir"),
    ("storage_server", "nfs_server_setup_params", 1, "export_to"),
    ("pv_registration_params", 2, "pv_manifest_file_path"), ("pv_registration_params", 2, "nfs_server_cp"),
    ("private_registry_connection_info", 0, "connection_type"), ("private_registry_connection_info", 0, "server"),
    ("private_registry_connection_info", 1, "password"), ("private_registry_connection_info", 1, "username"),
    ("ansible", "ip_address"), ("ansible", "username"),
    *(("external_lb_param", name) for name in ("ssh_cp_name", "ssh_username")),
    ("source", "files", 0, "name"), ("source", "files", 0, "url"), ("source", "files", 0, "sha256"),
    ("helm", "sha256"),
]  # fmt: skip


def read(document: Any) -> ClusterParameters:
    return read_parameters({NAME: document})


def refused(document: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        read(document)
    return caught.value.detail


def complaint(document: Any) -> str | None:
    try:
        read(document)
    except BadRequest as error:
        return error.detail
    return None


@pytest.mark.parametrize("name", SEEDS)
def test_parameter_objects_of_the_documents_are_accepted_as_they_stand(name: str) -> None:
    made = read(SEEDS[name])
    assert made.master_node.username == "ubuntu"
    assert made.master_node.cluster_cidr == "10.199.187.0/24"
    assert made.worker_node.traffic_cp_name == "workerNode_CP2"


def test_what_the_documents_say_is_kept() -> None:
    assert read(KUBESPRAY).script_path is None
    assert read(KUBESPRAY).external_lb_param is not None
    assert read(KUBESPRAY).master_node.pod_cidr == "192.168.0.0/16"
    first, second = read(REGISTRIES).private_registry_connection_info
    assert (first.connection_type, first.server) == (0, "192.168.0.10:5000")
    assert (second.connection_type, second.hosts_string) == (1, "192.168.0.20 registry.example.com")
    storage = read(VOLUMES).storage_server
    assert storage is not None
    assert [export.export_dir for export in storage.nfs_server_setup_params][2] == "/volume/nfs/pv3"
    assert read(V2).master_node.vdu_id == "masterNode"


def test_what_a_request_leaves_out_has_a_default() -> None:
    made = read(V2)
    assert (made.cni, made.source.kind, made.smoke_test, made.helm) == ("flannel", "image", True, None)
    assert (made.drain.timeout, made.drain.empty_dir, made.drain.force) == (600, "delete", False)
    assert made.vim_name_for("4711") == "kubernetes_vim_4711"
    assert read(KUBESPRAY).vim_name_for("4711") == "kubernetes_vim"


def test_everything_is_read() -> None:
    made = read(FULL)
    assert made.kubernetes_version == Version(1, 34, 4)
    assert [taint.key for taint in made.master_node.taints or ()] == ["example.com/role", "slow"]
    assert made.drain.timeout == 300
    assert read(PACKAGES).cni == "Files/kubernetes/calico.yaml"
    assert read(HELM_FROM_URL).helm is not None


def test_the_examples_use_every_parameter_there_is() -> None:
    used = {re.sub(r"\[\d+\]", "[]", written(place)) for _, place in CASES}
    assert {name for name in parameter_names(ClusterParameters) if name not in used} == set()


def test_nothing_that_packages_for_other_managers_carry_is_unknown() -> None:
    node = ("ssh_cp_name", "nic_cp_name", "username", "password", "aspect_id", "vdu_id")
    carried = {
        *("script_path", "vim_name", "helm_installation_script_path", "ansible", "external_lb_param"),
        *(f"{role}.{name}" for role in ("master_node", "worker_node") for name in node),
        *(f"master_node.{name}" for name in ("pod_cidr", "cluster_cidr", "cluster_cp_name", "cluster_fip_name")),
        *(f"proxy.{name}" for name in ("http_proxy", "https_proxy", "no_proxy", "k8s_node_cidr")),
        *(f"storage_server.{name}" for name in ("ssh_cp_name", "nic_cp_name", "username", "password")),
    }
    assert carried - set(parameter_names(ClusterParameters)) == set()


def test_a_wrong_type_is_refused_with_its_path() -> None:
    for name, place in CASES:
        detail = refused(with_value(EVERYTHING[name], place, 3.5))
        assert detail.startswith(f"{PATH}.{written(place)}: "), (name, place)
        assert detail.endswith("."), (name, place)


@pytest.mark.parametrize("hostile", ["a\x00b", "a\x1bb", "\u2028" * 5000, ["\x00"], {"\x00": {}}])
def test_hostile_values_are_refused_with_their_path(hostile: Any) -> None:
    for name, place in CASES:
        detail = refused(with_value(EVERYTHING[name], place, hostile))
        assert detail.startswith(f"{PATH}.{written(place)}"), (name, place)


def test_a_missing_parameter_is_named() -> None:
    for place in REQUIRED:
        detail = refused(without(FULL, place))
        assert detail.startswith(f"{PATH}.{written(place)}: "), place
        assert "missing" in detail or "exactly one" in detail, place


@pytest.mark.parametrize("absent", [{}, {NAME: None}])
def test_without_the_object_nothing_can_be_built(absent: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match=rf"^additionalParams\.{NAME}: is missing; describe"):
        read_parameters(absent)


def test_a_key_that_nobody_knows_is_refused_by_name() -> None:
    assert refused({**V2, "kubernets_version": "1.34.4"}) == (
        f"{PATH}.'kubernets_version': there is no such parameter; did you mean kubernetes_version?"
    )
    assert f"{PATH}.master_node.'x\\n': there is no" in refused(with_value(V2, ("master_node", "x\n"), 1))


def test_all_problems_are_told_at_once() -> None:
    document = with_value(with_value(FULL, ("master_node", "pod_cidr"), "x"), ("drain", "timeout"), 0)
    detail = refused(document)
    assert detail.startswith(f"{PATH}.master_node.pod_cidr: it is not a network; write it like")
    assert f"(2) {PATH}.drain.timeout: the number is out of range; give 1 to 86400." in detail


def test_a_thousand_problems_do_not_make_an_endless_answer() -> None:
    detail = refused({**V2, "pv_registration_params": [{}] * 10_000})
    assert len(detail) < 5000
    assert detail.endswith("There are 19980 more.")


@pytest.mark.parametrize(
    ("place", "value", "cure"),
    [
        (("kubernetes_version",), "1.34", "all three numbers"),
        (("kubernetes_version",), "1.12.0", "choose a version of"),
        (("cni",), "calico", "Files/kubernetes/cni.yaml"),
        (("cni",), "../../etc/cni.yaml", "without / before or .."),
        (("script_path",), "/etc/passwd", "without / before or .."),
        (("script_path",), "-rf", "without / before or .."),
        (("master_node", "username"), "-oProxyCommand=x", "beginning with a letter"),
        (("master_node", "username"), "root; reboot", "beginning with a letter"),
        (("master_node", "pod_cidr"), "192.168.0.0", "192.168.0.0/16"),
        (("master_node", "pod_cidr"), "0.0.0.0/0", "192.168.0.0/16"),
        (("master_node", "cluster_ip"), "127.0.0.1", "the nodes' network"),
        (("master_node", "cluster_ip"), "fe80::1%eth0", "the nodes' network"),
        (("master_node", "cluster_ip"), "0.0.0.0", "the nodes' network"),  # noqa: S104
        (("master_node", "ssh_port"), 0, "give 1 to 65535"),
        (("master_node", "ssh_port"), True, "give 1 to 65535"),
        (("master_node", "labels"), {"bad key": "x"}, "example.com/role"),
        (("master_node", "labels"), {"kubernetes.io/hostname": "x"}, "leave it out"),
        (("master_node", "labels"), {"a": "x\ny"}, "at most 63"),
        (("master_node", "taints"), ["a=b"], "NoSchedule"),
        (("master_node", "taints"), ["a=b:Never"], "NoExecute"),
        (("master_node", "taints"), ["a=b:NoExecute", "a=c:NoExecute"], "once for each effect"),
        (("image_repository",), "https://registry.example.com", "without https://"),
        (("image_repository",), "registry.example.com/a b", "without https://"),
        (("proxy", "http_proxy"), "http://proxy\n", "leave the control character out"),
        (("proxy", "http_proxy"), "proxy.example.com", "3128"),
        (("proxy", "no_proxy"), "a;b", "10.0.0.1,"),
        (("source",), "image", '{"name": value'),
        (("source",), {"kind": "packages"}, "package repository"),
        (("source",), {"kind": "image", "repository": "https://a.example"}, "change kind"),
        (("source", "files", 0, "path"), "Files/kubeadm", "comes from, once"),
        (("source", "files", 0, "sha256"), "A" * 64, "lower case"),
        (("source", "files", 0, "name"), "kubelet", "once"),
        (("drain", "empty_dir"), "keep", "delete, refuse"),
        (("smoke_test",), "true", "without quotes"),
        (("helm_installation_script_path",), "Scripts/helm.sh", "give one of them"),
        (("private_registry_connection_info", 0, "connection_type"), "2", "give 0 to 1"),
        (("private_registry_connection_info", 0, "server"), "http://registry", "without http://"),
        (("private_registry_connection_info", 0, "server"), "registry:99999", "without http://"),
        (("private_registry_connection_info", 0, "server"), "../x", "without http://"),
        (("private_registry_connection_info", 0, "certificate_path"), "ca.crt", "connection_type to 1"),
        (("master_node", "cluster_ip"), 'fd00::5%";reboot;"', "a zone"),
        (("private_registry_connection_info", 1, "hosts_string"), "fd00::5%'\"$(reboot) a", "a zone"),
        (("private_registry_connection_info", 1, "hosts_string"), "registry 10.0.0.1", "10.10.0.5"),
        (("private_registry_connection_info", 1, "hosts_string"), "10.0.0.1", "registry.example.com"),
        (("private_registry_connection_info", 1, "hosts_string"), "10.0.0.1 a LocalHost", "the node's own name"),
        (("storage_server",), None, "describe storage_server"),
        (("storage_server", "nfs_server_setup_params"), [], "at least 1"),
        (("storage_server", "nfs_server_setup_params", 0, "export_dir"), "/a/../b", "without . or .."),
        (("storage_server", "cinder_volume_setup_params", 0, "mount_to"), "volume", "/volume/nfs"),
    ],
)
def test_a_wrong_value_is_refused_with_its_cure(place: Place, value: Any, cure: str) -> None:
    detail = refused(with_value(FULL, place, value))
    assert detail.startswith(PATH)
    assert cure in detail


def test_somebody_must_be_able_to_log_in() -> None:
    detail = refused(without(V2, ("master_node", "password")))
    assert detail == (
        f"{PATH}.master_node.password: there is neither password nor private_key; give one of them to log in with."
    )
    assert read(without(FULL, ("master_node", "password"))).master_node.private_key is not None
    only_passphrase = without(FULL, ("master_node", "private_key"))
    assert "passphrase: there is no private_key" in refused(only_passphrase)


def test_packages_need_a_version() -> None:
    assert f"{PATH}.kubernetes_version: it is missing" in refused(without(PACKAGES, ("kubernetes_version",)))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(ANYTHING)
def test_any_document_is_read_or_refused_by_its_path(value: Any) -> None:
    with pytest.raises(BadRequest, match=r"^additionalParams\.k8s_cluster_installation_param"):
        read(value)


@given(st.sampled_from(CASES), ANYTHING | st.text())
def test_any_value_anywhere_is_read_or_refused_by_its_path(case: tuple[str, Place], value: Any) -> None:
    name, place = case
    detail = complaint(with_value(EVERYTHING[name], place, value))
    assert detail is None or detail.startswith(PATH)
    assert not re.search(r"[\x00-\x1f]", detail or "")
