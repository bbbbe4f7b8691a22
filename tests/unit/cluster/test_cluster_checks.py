from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.cluster.checks import CheckedCluster, NetworkFacts, check_cluster, refuse_master_count
from slipway.cluster.parameters import NAME, PATH, read_parameters
from slipway.model.errors import BadRequest
from slipway.model.json_documents import merge_patch
from tests.unit.cluster.documents import KUBESPRAY, REGISTRIES, SEEDS, V2, VOLUMES
from tests.unit.cluster.flavours import flavour

VIP = {"master_node": {"cluster_ip": "10.10.0.100"}}


def check(
    changes: dict[str, Any] | None = None,
    masters: int = 1,
    facts: NetworkFacts = NetworkFacts(),  # noqa: B008 - frozen
    document: dict[str, Any] = VOLUMES,
    cidr: str | None = "10.10.0.0/24",
) -> CheckedCluster:
    parameters = read_parameters({NAME: merge_patch(document, changes or {})})
    return check_cluster(parameters, flavour(masters, cidr), {}, None, facts)


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


@pytest.mark.parametrize("vdu", [None, "masterNode"])
def test_an_aspect_id_that_is_no_aspect_is_a_group_of_the_template_and_decides_nothing(vdu: str | None) -> None:
    assert check({"master_node": {"aspect_id": "master_group", "vdu_id": vdu}}).masters.vdu == "masterNode"


def test_levels_count() -> None:
    shape = flavour()
    parameters = read_parameters({NAME: VOLUMES})
    assert check_cluster(parameters, shape, {"worker_instance": 2}, shape.levels["large"]).workers.count == 4


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        (
            {"master_node": {"aspect_id": "worker_instance"}},
            "master_node.ssh_cp_name: the connection point 'masterNode_CP1' belongs to 'masterNode'",
        ),
        (
            {"master_node": {"aspect_id": "x", "ssh_cp_name": "y"}},
            "master_node.ssh_cp_name: the flavour has no connection point 'y'",
        ),
        ({"master_node": {"aspect_id": "none"}}, "master_node.aspect_id: the aspect 'none' scales no VDU"),
        ({"master_node": {"vdu_id": "x"}}, "master_node.vdu_id: the flavour has no VDU of machines 'x'; write one of:"),
        ({"master_node": {"vdu_id": "proxy"}}, "master_node.vdu_id: the flavour has no VDU of machines 'proxy'"),
        (
            {"master_node": {"vdu_id": "masterNode", "aspect_id": "worker_instance"}},
            "master_node.aspect_id: the aspect 'worker_instance' does not scale 'masterNode'",
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
            "pv_registration_params[0].nfs_server_cp: the storage server's VDU 'storage_server' has no connection",
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
    told = refused({"master_node": {"vdu_id": "x"}, "worker_node": {"ssh_cp_name": "y"}})
    assert "no VDU of machines 'x'" in told
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
    facts = NetworkFacts(has_template=True)
    named = {"master_node": {"cluster_cp_name": "vip_CP"}}
    checked = check(named, masters=3, facts=facts)
    assert (checked.vip, checked.vip_port) == (None, "vip_CP")
    both = check({"master_node": {"cluster_cp_name": "vip_CP", "cluster_ip": "10.10.0.100"}}, masters=3, facts=facts)
    assert (both.vip, both.vip_port) == ("10.10.0.100", "vip_CP")
    assert "no connection point 'vip_CP'" in refused(named, masters=3)


def test_a_template_changes_nothing_where_the_vnfds_own_connection_point_is_named() -> None:
    facts = NetworkFacts(has_template=True)
    assert check(facts=facts).vip_port is None
    assert "each of the 3 masters has its own 'masterNode_CP1'" in refused(masters=3, facts=facts)
    worker = {"master_node": {"cluster_cp_name": "workerNode_CP2"}}
    assert "the connection point 'workerNode_CP2' belongs to 'workerNode'" in refused(worker, masters=3, facts=facts)
    named = {"master_node": {"cluster_cp_name": "vip_CP"}}
    assert "cluster_cp_name: one master is reached at its own address; write masterNode_CP1" in refused(
        named, facts=facts
    )


def test_ssh_uses_no_connection_point_that_nobody_declared() -> None:
    assert "no connection point 'masterNode_FloatingIP'" in refused(
        {"master_node": {"ssh_cp_name": "masterNode_FloatingIP"}}
    )


IN_TEMPLATE = NetworkFacts(has_template=True)


def test_ssh_may_use_floating_ips_of_the_template_beside_a_connection_point_for_traffic() -> None:
    named = {"master_node": {"ssh_cp_name": "masterNode_FloatingIP", "vdu_id": None, "nic_cp_name": "masterNode_CP1"}}
    checked = check(named, facts=IN_TEMPLATE)
    assert checked.masters.vdu == "masterNode", "by the connection point of its traffic"
    assert checked.floating_ip == "masterNode_FloatingIP", "which one master is called by from elsewhere, too"
    assert "no connection point 'masterNode_FloatingIP'" in refused(named)
    alone = {"master_node": {"ssh_cp_name": "masterNode_FloatingIP", "nic_cp_name": None}}
    assert "a floating IP of the template goes with nic_cp_name; let nic_cp_name be one of: masterNode_CP1" in refused(
        alone, facts=IN_TEMPLATE
    )


def test_the_floating_ip_of_the_masters_shared_address() -> None:
    named = {"master_node": {"cluster_cp_name": "vip_CP", "cluster_fip_name": "vip_FloatingIP"}}
    checked = check(named, masters=3, facts=IN_TEMPLATE)
    assert (checked.vip_port, checked.floating_ip) == ("vip_CP", "vip_FloatingIP")
    by_ssh = {"master_node": {"cluster_cp_name": "vip_CP", "ssh_cp_name": "masterNode_FloatingIP"}}
    assert check(by_ssh, masters=3, facts=IN_TEMPLATE).floating_ip is None, "a master's is not the cluster's"
    assert check({"master_node": {"cluster_fip_name": "a"}}, facts=IN_TEMPLATE).floating_ip == "a"


@pytest.mark.parametrize(
    ("masters", "facts", "reason"),
    [
        (3, IN_TEMPLATE, "cluster_cp_name names none; name that port by cluster_cp_name"),
        (1, NetworkFacts(), "the package has no template for flavour 'simple'"),
    ],
)
def test_a_floating_ip_that_can_lead_nowhere_is_refused(masters: int, facts: NetworkFacts, reason: str) -> None:
    node = {"cluster_fip_name": "vip_FloatingIP", **(VIP["master_node"] if masters > 1 else {})}
    told = refused({"master_node": node}, masters=masters, facts=facts)
    assert told.startswith(f"{PATH}.master_node.cluster_fip_name: ")
    assert reason in told


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
    facts = NetworkFacts(node_addresses=("10.10.0.6", "10.10.0.7"))
    told = refused({"master_node": {"cluster_ip": vip}}, masters=3, facts=facts)
    assert told.startswith(f"{PATH}.master_node.cluster_ip: ")
    assert reason in told


def test_the_vnfd_says_nothing_about_a_network_that_exists() -> None:
    elsewhere = {"master_node": {"cluster_ip": "10.77.0.100"}, "proxy": None}
    assert "is outside the nodes' network 10.10.0.0/24" in refused(elsewhere, masters=3)
    facts = NetworkFacts(managed_links=frozenset(flavour(3).virtual_links))
    assert check(elsewhere, masters=3, facts=facts).vip == "10.77.0.100"


def test_the_vims_word_on_the_nodes_network_goes_first() -> None:
    assert check(facts=NetworkFacts(node_network="10.20.0.0/16")).networks.nodes == "10.20.0.0/16"
    assert check(cidr=None, document=REGISTRIES).networks.nodes == "192.168.0.0/24"
    assert check(cidr=None, document=V2).networks.nodes is None


def test_addresses_of_nodes_count_where_their_network_is_unknown() -> None:
    told = refused(document=V2, cidr=None, facts=NetworkFacts(node_addresses=("192.168.7.1",)))
    assert "the pods' network 192.168.0.0/16 holds 192.168.7.1, a node's address" in told


def test_the_kubespray_parts_are_not_looked_at() -> None:
    assert check(document=KUBESPRAY).masters.count == 1


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
