"""The sample for OpenStack, flavour ha: the masters' shared address is of a port that only its template has."""

from __future__ import annotations

from pathlib import Path

from slipway.cluster.checks import NetworkFacts, check_cluster
from slipway.cluster.parameters import NAME, read_parameters
from slipway.package.build import build_package
from slipway.vim.openstack.base_hot import Form, placements
from slipway.vim.openstack.hot_template import FLOATING_IP, PORT, VOLUME, BaseHot, read_base_hot

SAMPLE = Path(__file__).parents[3] / "samples" / "cluster-openstack"
TOP = "BaseHOT/ha/cluster.yaml"
NODES = ("masterNode", "workerNode")
LOGIN = {"username": "root", "password": "x"}
REQUEST = {
    "master_node": {"vdu_id": "masterNode", "ssh_cp_name": "masterNode_CP1", "cluster_cp_name": "vip_CP", **LOGIN},
    "worker_node": {"vdu_id": "workerNode", "ssh_cp_name": "workerNode_CP1", **LOGIN},
}


def test_a_request_names_the_templates_port_and_no_address(tmp_path: Path) -> None:
    flavour = build_package(SAMPLE, tmp_path / "cluster.csar").descriptor.flavours["ha"]
    facts = NetworkFacts(has_template=True)
    checked = check_cluster(read_parameters({NAME: REQUEST}), flavour, {}, flavour.level(None), facts)
    assert (checked.masters.count, checked.vip, checked.vip_port) == (3, None, "vip_CP")


def test_floating_ips_for_the_shared_address_and_the_nodes_are_a_parameter_away(tmp_path: Path) -> None:
    flavour = build_package(SAMPLE, tmp_path / "cluster.csar").descriptor.flavours["ha"]
    floating = {
        role: {**REQUEST[role], "ssh_cp_name": f"{vdu}_FloatingIP", "nic_cp_name": f"{vdu}_CP1"}
        for role, vdu in (("master_node", "masterNode"), ("worker_node", "workerNode"))
    }
    floating["master_node"]["cluster_fip_name"] = "vip_FloatingIP"
    facts = NetworkFacts(has_template=True)
    checked = check_cluster(read_parameters({NAME: floating}), flavour, {}, flavour.level(None), facts)
    assert (checked.vip_port, checked.floating_ip) == ("vip_CP", "vip_FloatingIP")
    hot = template()
    ours = {name: one for part in (hot.template, *hot.nested.values()) for name, one in part["resources"].items()}
    for name, port in (("vip_FloatingIP", "vip_CP"), *((f"{vdu}_FloatingIP", f"{vdu}_CP1") for vdu in NODES)):
        assert ours[name]["type"] == FLOATING_IP
        assert ours[name]["condition"] == "floating"
        assert ours[name]["properties"]["port_id"] == {"get_resource": port}


def template() -> BaseHot:
    files = {path.relative_to(SAMPLE).as_posix(): path.read_bytes() for path in SAMPLE.rglob("BaseHOT/ha/**/*.yaml")}
    return read_base_hot(TOP, files)


def test_the_template_needs_nothing_but_nfv_and_lets_masters_use_the_ports_address() -> None:
    hot = template()
    assert [name for name, one in hot.template["parameters"].items() if "default" not in one] == ["nfv"]
    assert hot.resources["vip_CP"]["type"] == PORT
    assert "fixed_ips" not in hot.resources["vip_CP"]["properties"]
    assert hot.resources["masterNode"]["properties"]["vip"] == {"get_attr": ["vip_CP", "fixed_ips", 0, "ip_address"]}
    master = hot.nested["masterNode.yaml"]["resources"]["masterNode_CP1"]
    assert master["properties"]["allowed_address_pairs"] == [{"ip_address": {"get_param": "vip"}}]


def test_the_storage_servers_volume_is_one_of_template_and_vnfd(tmp_path: Path) -> None:
    flavour = build_package(SAMPLE, tmp_path / "cluster.csar").descriptor.flavours["storage"]
    files = {str(path.relative_to(SAMPLE)): path.read_bytes() for path in (SAMPLE / "BaseHOT/storage").rglob("*.yaml")}
    hot = read_base_hot("BaseHOT/storage/cluster.yaml", files)
    assert placements(hot, flavour)["storageServer"].form is Form.SINGLE
    (device,) = hot.resources["storageServer"]["properties"]["block_device_mapping_v2"]
    volume = device["volume_id"]["get_resource"]
    assert hot.resources[volume]["type"] == VOLUME
    assert flavour.vdus["storageServer"].storages == (volume,)
