"""The life of a workload cluster on a real Cluster API that every `make test` goes through. Machines are pretended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.cluster_api.workload_lab import FORCEFUL, INFRASTRUCTURE, WorkloadLab, a_workload_lab
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
    assert len(lab.nodes_of_workload()) == 2
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
def test_the_cni_that_the_package_asks_for_is_in_it(lab: WorkloadLab) -> None:
    assert "cni" in lab.workload("/apis/apps/v1/namespaces/kube-system/daemonsets")


@needs_cluster
def test_scaled_by_the_replicas_of_its_machine_deployment(lab: WorkloadLab) -> None:
    before = lab.vnfcs("workers")
    lab.run("scale", lab.scale("SCALE_OUT"))
    assert lab.one("machinedeployments", "edge-workers")["status"]["readyReplicas"] == 2
    assert len(lab.nodes_of_workload()) == 3
    assert before.items() < lab.vnfcs("workers").items()


@needs_cluster
def test_a_worker_is_healed_and_the_others_stay(lab: WorkloadLab) -> None:
    before, masters = lab.vnfcs("workers"), lab.vnfcs("controlPlane")
    sick = min(before)
    lab.heal(sick)
    after = lab.vnfcs("workers")
    assert len(after) == len(before)
    assert sick not in after
    assert len(before.keys() & after.keys()) == len(before) - 1
    assert lab.vnfcs("controlPlane") == masters
    assert lab.one("clusters", "edge")["metadata"].get("deletionTimestamp") is None


@needs_cluster
def test_a_change_of_package_brings_new_templates_and_takes_the_old_ones_away(lab: WorkloadLab) -> None:
    vnfd = lab.next_version(NEXT, "1.34.4")
    lab.run("change_vnfpkg", {"vnfdId": vnfd}, within=900)
    assert lab.named("devmachinetemplates", INFRASTRUCTURE) == ["edge-control-plane-1-34-4", "edge-workers-1-34-4"]
    assert set(lab.versions().values()) == {"v1.34.4"}
    assert sorted(lab.machines()) == lab.named("machines")


@needs_cluster
def test_terminated_cluster_first_and_without_a_trace(lab: WorkloadLab) -> None:
    lab.run("terminate", FORCEFUL, within=900)
    assert lab.left() == {}
    assert "edge-cluster" not in lab.vims()
