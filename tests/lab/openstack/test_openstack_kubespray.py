"""The sample for kubespray on a real OpenStack: playbooks build the cluster, behind a balancer with two ports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.vim.sandbox.engines import Engines
from tests.functional.remote_sshd import running_sshd
from tests.lab.kubespray.kubespray_lab import ansible_server
from tests.lab.openstack.openstack_cluster import LOGIN, POINTS, REPOSITORY, OpenStackCluster, a_cluster
from tests.lab.openstack.openstack_lab import OpenStackLab
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="kubespray")

SAMPLE = Path(__file__).parents[3] / "samples" / "cluster-kubespray-openstack"
BALANCER = {
    "ssh_cp_name": "externalLB_CP1", "ssh_username": LOGIN["username"], "ssh_password": LOGIN["password"],
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, openstack_lab: OpenStackLab, kubernetes_engines: Engines
) -> Iterator[OpenStackCluster]:
    directory = tmp_path_factory.mktemp("kubespray")
    outside = openstack_lab.project("kubespray").own_network("outside", "10.84.0.0/24")
    with a_cluster(directory, openstack_lab, kubernetes_engines, "kubespray", SAMPLE) as cluster:
        cluster.outside = outside
        yield cluster


@pytest.fixture(scope="module")
def asked(cluster: OpenStackCluster) -> Iterator[dict[str, Any]]:
    """With the balancer's first port on a network of its own, and the second among the nodes."""
    with running_sshd(cluster.directory / "sshd") as sshd:
        request = cluster.request(
            points=(*POINTS, "externalLB_CP2"),
            image_repository=REPOSITORY,
            ansible=ansible_server(sshd, cluster.directory / "inventory"),
            external_lb_param=BALANCER,
        )
        network = cluster.cloud.network_id(cluster.outside)
        (inside,) = request["extVirtualLinks"]
        (point,) = (one for one in inside["extCps"] if one["cpdId"] == "externalLB_CP2")
        outside = {"id": "outside", "resourceId": network, "extCps": [{**point, "cpdId": "externalLB_CP1"}]}
        yield {**request, "extVirtualLinks": [inside, outside]}


def test_built_and_reached_through_the_balancer(cluster: OpenStackCluster, asked: dict[str, Any]) -> None:
    cluster.create()
    cluster.run("instantiate", asked, within=1200)
    assert cluster.nodes() == {"masternode-0": True, "workernode-0": True, "workernode-1": True}
    endpoint = cluster.shown()["vimConnectionInfo"]["kubernetes"]["interfaceInfo"]["endpoint"]
    assert endpoint.endswith(":8383")
    assert endpoint.removeprefix("https://").removesuffix(":8383") in str(cluster.machines()["externalLB-0"])
    cluster.until_healthy()


needs_cluster = needs(test_built_and_reached_through_the_balancer)


@needs_cluster
def test_a_worker_comes_and_goes(cluster: OpenStackCluster) -> None:
    cluster.run("scale", cluster.scale("SCALE_OUT"), within=900)
    assert cluster.nodes() == {"masternode-0": True} | {f"workernode-{number}": True for number in range(3)}
    cluster.run("scale", cluster.scale("SCALE_IN"), within=900)
    assert len(cluster.nodes()) == 3


@needs_cluster
def test_a_worker_deleted_behind_our_back_is_healed(cluster: OpenStackCluster) -> None:
    cluster.cloud.remove_server(cluster.server("workerNode-0").id)
    cluster.heal("workerNode-0")
    assert all(cluster.nodes().values())
    assert len(cluster.nodes()) == 3


@needs_cluster
def test_terminated_without_a_trace(cluster: OpenStackCluster) -> None:
    cluster.run("terminate", {"terminationType": "FORCEFUL"})
    assert not (cluster.directory / "inventory").exists()
