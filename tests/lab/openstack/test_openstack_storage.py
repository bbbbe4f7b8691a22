"""The sample's storage server on a real OpenStack: a volume of Cinder's that the server was booted with, which a heal
keeps although Heat alone could not replace that server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slipway.vim.sandbox.engines import Engines
from tests.lab.openstack.openstack_cluster import LOGIN, POINTS, REPOSITORY, OpenStackCluster, a_cluster
from tests.lab.openstack.openstack_lab import OpenStackLab
from tests.lab.stages import needs
from tests.lab.stored_data import SLOT, VOLUMES, available, read, storage_server, volumes, write

pytestmark = pytest.mark.group(name="storage")


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, openstack_lab: OpenStackLab, kubernetes_engines: Engines
) -> Iterator[OpenStackCluster]:
    with a_cluster(tmp_path_factory.mktemp("storage"), openstack_lab, kubernetes_engines, "storage") as cluster:
        yield cluster


def cinder_volume(cluster: OpenStackCluster) -> tuple[str, str]:
    """Its id, and that of the server that it is on."""
    (volume,) = cluster.cloud.user.block_storage.volumes()
    (attachment,) = volume.attachments
    return volume.id, attachment["server_id"]


def test_a_cluster_with_a_volume_of_cinder_that_nodes_write_to(cluster: OpenStackCluster) -> None:
    network = cluster.cloud.user.network
    subnet = network.get_subnet(network.find_network(cluster.network).subnet_ids[0])
    asked = cluster.request(
        "storage",
        points=(*POINTS, "storageServer_CP1"),
        image_repository=REPOSITORY,
        storage_server=storage_server(subnet.cidr, **LOGIN),
        pv_registration_params=VOLUMES,
    )
    cluster.create()
    cluster.run("instantiate", asked, within=900)
    assert volumes(cluster) == available(cluster)
    write(cluster, "workerNode-0", "one", "by the worker")
    assert read(cluster, "masterNode-0", "one") == "by the worker"


needs_cluster = needs(test_a_cluster_with_a_volume_of_cinder_that_nodes_write_to)


@needs_cluster
def test_a_heal_replaces_the_server_and_keeps_volume_data_and_address(cluster: OpenStackCluster) -> None:
    (volume, server), address = cinder_volume(cluster), cluster.address(SLOT)
    assert server == cluster.server(SLOT).id
    cluster.heal(SLOT)
    assert cluster.server(SLOT).id != server
    assert cinder_volume(cluster) == (volume, cluster.server(SLOT).id)
    assert cluster.address(SLOT) == address
    assert volumes(cluster) == available(cluster)
    assert read(cluster, "workerNode-0", "one") == "by the worker"


@needs_cluster
def test_terminated_with_its_data_retained(cluster: OpenStackCluster) -> None:
    volume, _ = cinder_volume(cluster)
    retaining = {"terminationType": "FORCEFUL", "additionalParams": {"retain_data": True}}
    cluster.run("terminate", retaining)
    assert cluster.shown()["metadata"]["retainedVolumes"] == {volume: "storageServer_volume"}
    api = cluster.cloud.user.block_storage
    (left,) = api.volumes()
    assert (left.id, left.status, left.attachments) == (volume, "available", [])
    api.delete_volume(left)
    api.wait_for_delete(left)
