"""The life of a real cluster on a real OpenStack that every `make test` goes through.

Servers of the lab are reached at the addresses of their ports, without floating addresses; all else is as in a cloud.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slipway.vim.sandbox.engines import Engines
from tests.lab.openstack.openstack_cluster import REPOSITORY, OpenStackCluster, a_cluster
from tests.lab.openstack.openstack_lab import OpenStackLab
from tests.lab.stages import needs

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, openstack_lab: OpenStackLab, kubernetes_engines: Engines
) -> Iterator[OpenStackCluster]:
    with a_cluster(tmp_path_factory.mktemp("journey"), openstack_lab, kubernetes_engines, "journey") as cluster:
        yield cluster


def test_built_although_slipway_is_killed_while_heat_works_and_in_the_middle_of_init(cluster: OpenStackCluster) -> None:
    cluster.create()
    operation = cluster.begin("instantiate", cluster.request(image_repository=REPOSITORY))
    for step in ("make stack", "init masterNode-0"):
        cluster.until_step(operation, step)
        cluster.kill()
        cluster.start()
    cluster.ended(operation)
    assert sorted(cluster.machines()) == ["masterNode-0", "workerNode-0", "workerNode-1"]
    assert cluster.nodes() == cluster.all_ready()


needs_cluster = needs(test_built_although_slipway_is_killed_while_heat_works_and_in_the_middle_of_init)


@needs_cluster
def test_scaled_out_without_a_touch_on_the_others(cluster: OpenStackCluster) -> None:
    before = cluster.machines()
    cluster.run("scale", cluster.scale("SCALE_OUT"))
    after = cluster.machines()
    assert {slot: after[slot]["computeResource"] for slot in before} == {
        slot: one["computeResource"] for slot, one in before.items()
    }
    assert cluster.nodes() == cluster.all_ready()
    assert "workerNode-2" in after


@needs_cluster
def test_a_worker_deleted_behind_our_back_is_healed_at_its_own_address(cluster: OpenStackCluster) -> None:
    address = cluster.address("workerNode-0")
    cluster.cloud.remove_server(cluster.machines()["workerNode-0"]["computeResource"]["resourceId"])
    cluster.heal("workerNode-0")
    assert cluster.address("workerNode-0") == address
    assert cluster.nodes() == cluster.all_ready()


@needs(test_scaled_out_without_a_touch_on_the_others)
def test_scaled_in_the_newest_goes(cluster: OpenStackCluster) -> None:
    cluster.run("scale", cluster.scale("SCALE_IN"))
    assert sorted(cluster.machines()) == ["masterNode-0", "workerNode-1", "workerNode-2"]
    assert cluster.nodes() == cluster.all_ready()


@needs_cluster
def test_terminated_without_a_trace(cluster: OpenStackCluster) -> None:
    cluster.run("terminate", {"terminationType": "FORCEFUL"})
    assert cluster.machines() == {}
