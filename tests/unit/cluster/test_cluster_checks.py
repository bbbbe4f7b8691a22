from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.cluster.checks import CheckedCluster, Surroundings, check_cluster, refuse_master_count
from slipway.cluster.parameters import NAME, PATH, read_parameters
from slipway.model.errors import BadRequest
from slipway.model.merge import merge_patch
from tests.unit.cluster.documents import KUBESPRAY, REGISTRIES, SEEDS, V2, VOLUMES
from tests.unit.cluster.flavours import flavour

VIP = {"master_node": {"cluster_ip": "10.10.0.100"}}


def check(
    changes: dict[str, Any] | None = None,
    masters: int = 1,
    around: Surroundings = Surroundings(),  # noqa: B008 - frozen
    document: dict[str, Any] = VOLUMES,
    cidr: str | None = "10.10.0.0/24",
) -> CheckedCluster:
    parameters = read_parameters({NAME: merge_patch(document, changes or {})})
    return check_cluster(parameters, flavour(masters, cidr), {}, None, around)


def refused(*args: Any, **named: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        check(*args, **named)
    return caught.value.detail


@pytest.mark.parametrize("name", SEEDS)
def test_the_documents_parameters_fit_the_flavour_they_are_for(name: str) -> None:
    checked = check(document=SEEDS[name])
    assert (checked.masters.vdu, checked.workers.vdu) == ("masterNode", "workerNode")
    assert (checked.masters.count, checked.workers.count, checked.workers.most) == (1, 2, 4)
    assert not checked.balanced
    assert checked.networks.nodes == "10.10.0.0/24"


def test_roles_are_found_by_vdu_by_aspect_or_by_connection_point() -> None:
    plain = {"aspect_id": None, "vdu_id": None}
    for one in ({"vdu_id": "masterNode", "aspect_id": None}, {}, plain, {"aspect_id": "both"}):
        assert check({"master_node": one}).masters.vdu == "masterNode"


def test_levels_count() -> None:
    shape = flavour()
    parameters = read_parameters({NAME: VOLUMES})
    assert check_cluster(parameters, shape, {"worker_instance": 2}, shape.levels["large"]).workers.count == 4


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        (
            {"master_node": {"aspect_id": "x"}},
            "master_node.aspect_id: the flavour has no aspect 'x'; write one of: mas",
        ),
        ({"master_node": {"aspect_id": "none"}}, "master_node.aspect_id: the aspect 'none' scales no VDU"),
        ({"master_node": {"vdu_id": "x"}}, "master_node.vdu_id: the flavour has no VDU of machines 'x'; write one of:"),
        ({"master_node": {"vdu_id": "proxy"}}, "master_node.vdu_id: the flavour has no VDU of machines 'proxy'"),
        (
            {"master_node": {"vdu_id": "masterNode", "aspect_id": "worker_instance"}},
            "master_node.aspect_id: the aspect 'worker_instance' does not scale 'masterNode'",
        ),
        (
            {"master_node": {"vdu_id": "masterNode", "aspect_id": "x"}},
            "master_node.aspect_id: the flavour has no aspect 'x'",
        ),
        ({"worker_node": {"ssh_cp_name": "x"}}, "worker_node.ssh_cp_name: the flavour has no connection point 'x'"),
        (
            {"worker_node": {"ssh_cp_name": "x", "aspect_id": None}},
            "worker_node.ssh_cp_name: the flavour has no connection point 'x'",
        ),
        (
            {"worker_node": {"nic_cp_name": "masterNode_CP1"}},
            "worker_node.nic_cp_name: the connection point 'masterNode_CP1' belongs to 'masterNode', not to "
            "'workerNode'; write one of: workerNode_CP2.",
        ),
        ({"master_node": {"cluster_cp_name": "x"}}, "master_node.cluster_cp_name: the flavour has no connection point"),
        (
            {"master_node": {"cluster_cp_name": "workerNode_CP2"}},
            "master_node.cluster_cp_name: the connection point 'workerNode_CP2' belongs to 'workerNode'",
        ),
        (
            {"master_node": {"cluster_cp_name": "masterNode_CP9"}},
            "master_node.cluster_cp_name: the cluster's address is one of the network of 'masterNode_CP1'; write "
            "masterNode_CP1, or leave it out.",
        ),
        (VIP, "master_node.cluster_ip: one master is reached at its own address"),
        (
            {"worker_node": {"aspect_id": "master_instance", "ssh_cp_name": "masterNode_CP1", "nic_cp_name": None}},
            "worker_node: masters and workers are both machines of 'masterNode'",
        ),
        ({"storage_server": {"ssh_cp_name": "x"}}, "storage_server.ssh_cp_name: the flavour has no connection point"),
        ({"storage_server": {"nic_cp_name": "x"}}, "storage_server.nic_cp_name: the flavour has no connection point"),
        (
            {"pv_registration_params": [{"pv_manifest_file_path": "a.yaml", "nfs_server_cp": "x"}]},
            "pv_registration_params[0].nfs_server_cp: the flavour has no connection point 'x'",
        ),
        (
            {"master_node": {"pod_cidr": "10.199.0.0/16"}},
            "master_node.cluster_cidr: the Services' network 10.199.187.0/24 overlaps the pods' 10.199.0.0/16",
        ),
        (
            {"master_node": {"pod_cidr": "10.10.0.0/16"}},
            "master_node.pod_cidr: the pods' network 10.10.0.0/16 overlaps the nodes' 10.10.0.0/24",
        ),
        (
            {"master_node": {"cluster_cidr": "10.10.0.0/16"}},
            "master_node.cluster_cidr: the Services' network 10.10.0.0/16 overlaps the nodes' 10.10.0.0/24",
        ),
        ({"master_node": {"cluster_cidr": "10.96.0.0/11"}}, "master_node.cluster_cidr: Kubernetes can't use"),
        ({"master_node": {"cluster_cidr": "10.96.0.0/30"}}, "master_node.cluster_cidr: Kubernetes can't use"),
        ({"master_node": {"cluster_cidr": "fd00::/112"}}, "master_node.cluster_cidr: pods and Services have different"),
        (
            {"master_node": {"pod_cidr": "192.168.0.0/27"}},
            "master_node.pod_cidr: the pods' network 192.168.0.0/27 is too",
        ),
        (
            {"master_node": {"pod_cidr": "fd00::/56", "cluster_cidr": "fd01::/112"}},
            "master_node.pod_cidr: the nodes' network 10.10.0.0/24 has another IP version",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(changes: dict[str, Any], detail: str) -> None:
    told = refused(changes)
    assert told.startswith(f"{PATH}.{detail}")
    assert told.endswith(".")


def test_all_that_does_not_fit_is_told_at_once() -> None:
    told = refused({"master_node": {"aspect_id": "x"}, "worker_node": {"ssh_cp_name": "y"}})
    assert "no aspect 'x'" in told
    assert "no connection point 'y'" in told


@pytest.mark.parametrize(("count", "allowed"), [(0, False), (1, True), (2, False), (3, True), (4, True), (5, True)])
def test_one_master_or_three_and_more(count: int, allowed: bool) -> None:
    assert (refuse_master_count(count) is None) == allowed


def test_two_masters_are_refused_for_want_of_a_quorum() -> None:
    assert refused(VIP, masters=2).startswith(f"{PATH}.master_node: there would be 2 masters, and etcd has no quorum")


def test_several_masters_share_an_address_that_is_given() -> None:
    checked = check(VIP, masters=3)
    assert checked.balanced
    assert checked.vip == "10.10.0.100"


def test_several_masters_share_an_address_of_the_vims_template() -> None:
    around = Surroundings(template_ports=("vip_CP",), vip="10.10.0.50")
    named = {"master_node": {"cluster_cp_name": "vip_CP"}}
    assert check(named, masters=3, around=around).vip == "10.10.0.50"
    assert check(named, masters=3, around=Surroundings(template_ports=("vip_CP",))).vip is None
    assert "no connection point 'vip_CP'" in refused(named, masters=3)


def test_ssh_may_use_a_port_of_the_vims_template() -> None:
    named = {"master_node": {"ssh_cp_name": "masterNode_FloatingIP"}}
    assert check(named, around=Surroundings(template_ports=("masterNode_FloatingIP",))).masters.vdu == "masterNode"
    assert "no connection point 'masterNode_FloatingIP'" in refused(named)


def test_several_masters_without_an_address_to_share_are_refused() -> None:
    assert "3 masters need an address that they share" in refused({"master_node": {"cluster_cp_name": None}}, masters=3)
    assert "each of the 3 masters has its own 'masterNode_CP1'" in refused(masters=3)


@pytest.mark.parametrize(
    ("vip", "reason"),
    [
        ("10.11.0.5", "is outside the nodes' network 10.10.0.0/24"),
        ("fd00::5", "is outside the nodes' network"),
        ("10.10.0.0", "is no address for a machine"),
        ("10.10.0.255", "is no address for a machine"),
        ("10.10.0.7", "is a node's own"),
        ("192.168.5.5", "is in the pods' network 192.168.0.0/16"),
        ("10.199.187.1", "is in the Services' network 10.199.187.0/24"),
    ],
)
def test_a_shared_address_that_can_not_be_is_refused(vip: str, reason: str) -> None:
    around = Surroundings(node_addresses=("10.10.0.6", "10.10.0.7"))
    told = refused({"master_node": {"cluster_ip": vip}}, masters=3, around=around)
    assert told.startswith(f"{PATH}.master_node.cluster_ip: ")
    assert reason in told
    named = {"master_node": {"cluster_cp_name": "vip_CP"}}
    found = Surroundings(node_addresses=around.node_addresses, vip=vip, template_ports=("vip_CP",))
    assert refused(named, masters=3, around=found).startswith(f"{PATH}.master_node.cluster_cp_name: ")


def test_the_vims_word_on_the_nodes_network_goes_first() -> None:
    assert check(around=Surroundings(node_network="10.20.0.0/16")).networks.nodes == "10.20.0.0/16"
    assert check(cidr=None, document=REGISTRIES).networks.nodes == "192.168.0.0/24"
    assert check(cidr=None, document=V2).networks.nodes is None


def test_addresses_of_nodes_count_where_their_network_is_unknown() -> None:
    told = refused(document=V2, cidr=None, around=Surroundings(node_addresses=("192.168.7.1",)))
    assert "the pods' network 192.168.0.0/16 holds 192.168.7.1, a node's address" in told


def test_the_kubespray_parts_are_not_looked_at() -> None:
    assert check(document=KUBESPRAY).masters.count == 1


@settings(deadline=None)
@given(st.integers(1, 40), st.text(min_size=1), st.text(min_size=1))
def test_any_name_is_checked_without_surprise(masters: int, point: str, aspect: str) -> None:
    parameters = read_parameters({NAME: V2})
    document = merge_patch(V2, {"master_node": {"ssh_cp_name": point, "vdu_id": None, "aspect_id": aspect}})
    try:
        parameters = read_parameters({NAME: document})
    except BadRequest:
        return
    with pytest.raises(BadRequest, match=r"^additionalParams\.k8s_cluster_installation_param\.master_node\."):
        check_cluster(parameters, flavour(masters), {})
