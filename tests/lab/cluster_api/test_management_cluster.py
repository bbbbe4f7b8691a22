"""From an API server to a workload cluster by two packages: Cluster API itself, and what it makes.

There is no kubelet: the pods of the controllers are played, and their programs run beside the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from slipway.kube.api import Api
from slipway.kube.interface import Object
from slipway.kube.ownership import INSTANCE
from tests.lab.cluster_api.management_lab import ManagementLab
from tests.lab.cluster_api.workload_lab import FORCEFUL, WorkloadLab, a_workload_lab
from tests.lab.kubernetes.cnf_lab import node_in_background
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="cluster-api")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, management_lab: ManagementLab) -> Iterator[WorkloadLab]:
    kubeconfig = management_lab.kubeconfig("api-server")
    with (
        node_in_background(kubeconfig),
        a_workload_lab(tmp_path_factory.mktemp("management"), kubeconfig, "chain") as lab,
    ):
        yield lab


@pytest.fixture(scope="module")
def vnfs(lab: WorkloadLab, management_lab: ManagementLab) -> dict[str, str]:
    package = lab.onboard(management_lab.package_for_processes(lab.directory / "package"))
    return {
        "management": lab.new_vnf(package, "management"),
        "workload": lab.new_vnf(lab.vnfd, "edge"),
    }


def test_a_cluster_becomes_a_management_cluster(lab: WorkloadLab, vnfs: dict[str, str]) -> None:
    lab.vnf = vnfs["management"]
    lab.run("instantiate", {"flavourId": "default"}, within=900)
    vdus = {str(one["vduId"]) for one in lab.machines().values()}
    assert vdus == {"core", "bootstrap", "controlPlane"}


needs_management = needs(test_a_cluster_becomes_a_management_cluster)


@needs_management
def test_a_workload_cluster_is_made_in_it(
    lab: WorkloadLab, management_lab: ManagementLab, vnfs: dict[str, str]
) -> None:
    management_lab.run("controllers")
    lab.vnf = vnfs["workload"]
    lab.run("instantiate", lab.instantiate(register_vim={"name": "edge"}), within=900)
    assert len(lab.nodes_of_workload()) == 2
    assert lab.http.post("/slipway/v1/vims/edge/check").json()["ok"]


needs_workload = needs(test_a_workload_cluster_is_made_in_it)


@needs_workload
def test_the_management_cluster_is_kept_while_clusters_live_in_it(lab: WorkloadLab, vnfs: dict[str, str]) -> None:
    lab.vnf = vnfs["management"]
    operation = lab.begin("terminate", FORCEFUL)
    failed = lab.ended(operation, "FAILED_TEMP")
    assert (
        "clusters.cluster.x-k8s.io are kept, and nothing is removed: 2 objects of others" in failed["error"]["detail"]
    )
    assert "(Cluster chain/edge, ClusterResourceSet chain/edge-cni)" in failed["error"]["detail"]
    lab.decide(operation, "rollback", "ROLLED_BACK")
    assert len(lab.machines()) == 3


@needs_workload
def test_both_go_the_workload_cluster_first(lab: WorkloadLab, vnfs: dict[str, str]) -> None:
    lab.vnf = vnfs["workload"]
    lab.run("terminate", FORCEFUL, within=900)
    assert lab.left() == {}
    lab.vnf = vnfs["management"]
    lab.run("terminate", FORCEFUL, within=900)

    async def labelled(api: Api) -> list[Object]:
        resources = [one for one in await api.discovery.everything() if "list" in one.verbs]
        pages = await asyncio.gather(
            *(api.list(one.collection(), labelSelector=f"{INSTANCE}={lab.vnf}") for one in resources)
        )
        return [one for page in pages for one in page]

    assert lab.on(lab.kubeconfig, labelled) == []
    definitions = lab.on(
        lab.kubeconfig, lambda api: api.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    )
    assert definitions == []
