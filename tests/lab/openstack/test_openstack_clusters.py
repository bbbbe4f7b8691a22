"""Clusters of the sample package on a real OpenStack, beyond the journey's: three masters with floating IPs, a script
of the package, and a stack that somebody deleted.

Routers of the lab forward nothing, so nodes and the masters' shared address are reached at their ports' own addresses.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from ipaddress import ip_address

import pytest
from cryptography.x509 import IPAddress, SubjectAlternativeName, load_pem_x509_certificate

from slipway.vim.sandbox.engines import Engines
from tests.lab.openstack.openstack_cluster import POINTS, REPOSITORY, OpenStackCluster, a_cluster
from tests.lab.openstack.openstack_lab import OpenStackLab
from tests.lab.stages import needs
from tests.unit.cluster.documents import SEEDS

pytestmark = pytest.mark.group(name="openstack")


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, openstack_lab: OpenStackLab, kubernetes_engines: Engines
) -> Iterator[OpenStackCluster]:
    project = openstack_lab.project("clusters")
    # Only who owns a network may let ports of it have a further address, as masters do that share one.
    network = project.own_network("clusters", "10.83.0.0/24")
    directory = tmp_path_factory.mktemp("clusters")
    with (
        project.floating_network("elsewhere", "198.51.100.0/24", network) as outside,
        a_cluster(directory, openstack_lab, kubernetes_engines, "clusters") as cluster,
    ):
        cluster.network, cluster.outside = network, outside
        yield cluster


def test_three_masters_on_three_hosts_share_the_address_of_the_templates_port(cluster: OpenStackCluster) -> None:
    cluster.create()
    master = {"cluster_cp_name": "vip_CP", "cluster_fip_name": "vip_FloatingIP"}
    asked = cluster.request("ha", image_repository=REPOSITORY, master_node=master)
    asked["additionalParams"]["floating_network"] = cluster.outside
    cluster.run("instantiate", asked, within=900)
    assert cluster.nodes() == cluster.all_ready()
    masters = [slot for slot in cluster.machines() if slot.startswith("masterNode")]
    assert len({cluster.server(slot).host_id for slot in masters}) == 3
    health = cluster.health()
    assert (health["problems"], health["virtualAddressAnswers"]) == ([], True)
    shared = [port.fixed_ips[0]["ip_address"] for port in cluster.cloud.user.network.ports() if not port.device_id]
    assert health["virtualAddress"] in shared


needs_masters = needs(test_three_masters_on_three_hosts_share_the_address_of_the_templates_port)


@needs_masters
def test_the_shared_address_is_called_by_a_floating_ip_from_elsewhere(cluster: OpenStackCluster) -> None:
    """Which leads nowhere in this lab: the certificate is looked at behind the shared address itself."""
    shared = cluster.health()["virtualAddress"]
    (floating,) = [
        one.floating_ip_address for one in cluster.cloud.user.network.ips() if one.fixed_ip_address == shared
    ]
    vim = cluster.shown()["vimConnectionInfo"]["kubernetes"]
    assert vim["interfaceInfo"]["endpoint"] == f"https://{floating}:16443"
    certificate = load_pem_x509_certificate(ssl.get_server_certificate((shared, 16443)).encode())
    names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    assert ip_address(floating) in names.get_values_for_type(IPAddress)


@needs_masters
def test_the_first_master_is_healed_at_its_own_address(cluster: OpenStackCluster) -> None:
    address, before = cluster.address("masterNode-0"), cluster.machines()["masterNode-0"]["computeResource"]
    cluster.heal("masterNode-0")
    assert cluster.address("masterNode-0") == address
    assert cluster.machines()["masterNode-0"]["computeResource"] != before
    assert cluster.nodes() == cluster.all_ready()
    cluster.until_healthy()


@needs_masters
def test_workers_come_and_go(cluster: OpenStackCluster) -> None:
    cluster.run("scale", cluster.scale("SCALE_OUT"))
    assert cluster.nodes() == cluster.all_ready()
    cluster.run("scale", cluster.scale("SCALE_IN"))
    assert cluster.nodes() == cluster.all_ready()


@needs_masters
def test_terminated(cluster: OpenStackCluster) -> None:
    cluster.run("terminate", {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 5})
    assert cluster.machines() == {}


def test_a_cluster_by_the_samples_own_script(cluster: OpenStackCluster) -> None:
    """As the documents print the parameters, names in the sample aside: `aspect_id` is no aspect of its VNFD."""
    master = SEEDS["volumes"]["master_node"]
    worker = {**SEEDS["volumes"]["worker_node"], "ssh_cp_name": POINTS[1], "nic_cp_name": POINTS[1]}
    printed = {"vim_name": SEEDS["volumes"]["vim_name"], "master_node": master, "worker_node": worker}
    cluster.create()
    cluster.run("instantiate", cluster.request(script_path="Scripts/node.sh", **printed), within=900)
    assert cluster.nodes() == cluster.all_ready()


@needs(test_a_cluster_by_the_samples_own_script)
def test_a_heal_of_the_whole_builds_a_cluster_anew_whose_stack_somebody_deleted(cluster: OpenStackCluster) -> None:
    before = {slot: one["id"] for slot, one in cluster.machines().items()}
    cluster.cloud.clear()
    cluster.run("heal", {}, within=900)
    after = {slot: one["id"] for slot, one in cluster.machines().items()}
    assert after.keys() == before.keys()
    assert not {*after.values()} & {*before.values()}
    assert cluster.nodes() == cluster.all_ready()
    cluster.until_healthy()
    cluster.run("terminate", {"terminationType": "FORCEFUL"})
