"""The life of a workload cluster on a real Cluster API that every `make test` goes through. Machines are pretended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.cluster_api.workload_lab import WorkloadLab, a_workload_lab
from tests.lab.stages import needs

pytestmark = pytest.mark.journey

NEXT = "9a3c6f0e-2b1d-4c55-b2a7-0e6c1d5f7a41"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, management_cluster: str) -> Iterator[WorkloadLab]:
    with a_workload_lab(tmp_path_factory.mktemp("workload"), management_cluster, "journey") as lab:
        yield lab


def test_a_workload_cluster_is_made_sent_and_registered_though_slipway_is_killed(lab: WorkloadLab) -> None:
    lab.create()
    asked = lab.instantiate(credentials_receiver=lab.credentials_receiver(), register_vim={"name": "edge-cluster"})
    operation = lab.begin("instantiate", asked)
    lab.until_step(operation, "wait until ready")
    lab.kill()
    lab.start()
    lab.ended(operation, within=900)
    cluster = lab.one("clusters", "edge")
    conditions = {one["type"]: one["status"] for one in cluster["status"]["conditions"]}
    assert conditions["Available"] == "True"
    assert len(lab.workload_nodes()) == 2
    assert sorted(lab.machines()) == lab.named("machines")


needs_cluster = needs(test_a_workload_cluster_is_made_sent_and_registered_though_slipway_is_killed)


@needs_cluster
def test_both_vims_lead_to_it(lab: WorkloadLab) -> None:
    """The one that Slipway registered, and the one that the receiver did."""
    vims = lab.vims()
    endpoints = {vims[name]["interfaceInfo"]["endpoint"] for name in ("edge-cluster", "journey-edge")}
    assert len(endpoints) == 1
    for name in ("edge-cluster", "journey-edge"):
        check = lab.http.post(f"/slipway/v1/vims/{name}/check").json()
        assert check["ok"], check


@needs_cluster
def test_scaled_by_the_replicas_of_its_machine_deployment(lab: WorkloadLab) -> None:
    lab.run("scale", lab.scale("SCALE_OUT", 2))
    assert lab.one("machinedeployments", "edge-workers")["status"]["readyReplicas"] == 3
    assert len(lab.workload_nodes()) == 4
    lab.run("scale", lab.scale("SCALE_IN"))
    assert len(lab.workload_nodes()) == 3


@needs_cluster
def test_a_change_of_package_brings_new_templates_and_takes_the_old_ones_away(lab: WorkloadLab) -> None:
    vnfd = lab.next_package(NEXT, "1.34.4")
    lab.run("change_vnfpkg", {"vnfdId": vnfd}, within=900)
    infrastructure = "/apis/infrastructure.cluster.x-k8s.io/v1beta2"
    assert lab.named("devmachinetemplates", infrastructure) == ["edge-control-plane-1-34-4", "edge-workers-1-34-4"]
    versions = {lab.one("machines", name)["spec"]["version"] for name in lab.named("machines")}
    assert versions == {"v1.34.4"}
    assert sorted(lab.machines()) == lab.named("machines")


@needs_cluster
def test_terminated_cluster_first_and_without_a_trace(lab: WorkloadLab) -> None:
    lab.run("terminate", {"terminationType": "FORCEFUL"}, within=900)
    assert lab.left() == {}
    assert "edge-cluster" not in lab.vims()
