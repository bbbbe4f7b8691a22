"""Cluster VNF, management cluster, workload cluster, CNF: each on the VIM that the one before it became.

The first two are real: machines of the sandbox, kubeadm, and Cluster API's controllers as pods. The machines of the
workload cluster are pretended by its in-memory provider, and a CNF on them comes as far as that one's API server goes.
"""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.inventory import everything
from tests.functional.next_package import NEXT_ID, next_package
from tests.lab.cluster_api import workload_lab
from tests.lab.cluster_api.controller_pods import adapt, archives
from tests.lab.cluster_api.management_lab import ManagementLab
from tests.lab.cluster_api.workload_lab import FORCEFUL, SAMPLES, ManagementCluster
from tests.lab.cluster_lab import ONE_WORKER, SAMPLE, ClusterLab, parameters
from tests.lab.slipway_lab import INSTANCES
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="cluster-api")

NAMESPACE = "default"


@dataclass
class Chain:
    """One Slipway and the VNFs of the chain, by name; `lab.vnf` is the one that is worked on."""

    lab: ClusterLab
    package: Path  # of the management cluster
    images: dict[str, str]  # of its controllers, by program
    programs: Path
    vnfs: dict[str, str] = field(default_factory=dict)

    def new(self, vnfd: str, name: str) -> ClusterLab:
        self.vnfs[name] = self.lab.new_vnf(vnfd, name)
        return self.lab

    def at(self, name: str) -> ClusterLab:
        self.lab.vnf = self.vnfs[name]
        return self.lab

    def on(self, vim: str, asked: dict[str, Any]) -> dict[str, Any]:
        """A request to instantiate on that VIM."""
        return {**asked, "vimConnectionInfo": {"vim": {"vimId": self.lab.vims()[vim]["id"]}}}

    def management(self) -> ManagementCluster:
        return ManagementCluster(self.at("cluster").cluster_kubeconfig(), NAMESPACE)


@pytest.fixture(scope="module")
def chain(lab: ClusterLab, management_lab: ManagementLab) -> Chain:
    package = management_lab.package(lab.directory / "management-cluster")
    return Chain(lab, package, adapt(package), Path(management_lab.programs[-1]))


def test_a_cluster_is_built_and_becomes_a_vim(chain: Chain) -> None:
    tree = next_package(SAMPLE, chain.lab.directory, NEXT_ID, words=ONE_WORKER)
    lab = chain.new(chain.lab.onboard(tree), "cluster")
    asked = {"flavourId": "simple", "additionalParams": parameters(vim_name="own-cluster")}
    lab.run("instantiate", asked, within=900)
    assert lab.nodes() == {"masternode-0": True, "workernode-0": True}
    assert lab.http.post("/slipway/v1/vims/own-cluster/check").json()["ok"]


needs_cluster = needs(test_a_cluster_is_built_and_becomes_a_vim)


@needs_cluster
def test_its_nodes_have_the_images_of_the_controllers(chain: Chain) -> None:
    lab = chain.at("cluster")
    for archive in archives(chain.images, chain.programs, lab.directory / "images"):
        for slot in lab.machines():
            put(lab, slot, archive, "/root/image.tar")
            lab.inside(slot, "ctr", "-n", "k8s.io", "images", "import", "/root/image.tar")
    for slot in lab.machines():
        there = lab.inside(slot, "ctr", "-n", "k8s.io", "images", "ls", "-q").split()
        assert set(chain.images.values()) <= set(there)


@needs(test_its_nodes_have_the_images_of_the_controllers)
def test_it_becomes_a_management_cluster_whose_controllers_are_pods(chain: Chain) -> None:
    lab = chain.new(chain.lab.onboard(chain.package), "management")
    lab.run("instantiate", chain.on("own-cluster", {"flavourId": "default"}), within=1200)
    vnfcs = lab.machines()
    assert {one["vduId"] for one in vnfcs.values()} == {"core", "bootstrap", "controlPlane"}
    management = chain.management()
    pods = management.on(
        management.kubeconfig, lambda api: api.list("/api/v1/pods", labelSelector="control-plane=controller-manager")
    )
    assert set(vnfcs) < {pod["metadata"]["name"] for pod in pods}
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == set(chain.images.values())
    assert all(pod["spec"]["nodeName"] and pod["status"]["containerStatuses"][0]["ready"] for pod in pods)


needs_management = needs(test_it_becomes_a_management_cluster_whose_controllers_are_pods)


@needs_management
def test_a_workload_cluster_is_made_in_it_and_becomes_a_vim(chain: Chain) -> None:
    management = chain.management()
    lab = chain.new(chain.lab.onboard(workload_lab.SAMPLE), "edge")
    asked = management.instantiate(register_vim={"name": "edge-cluster"})
    lab.run("instantiate", chain.on("own-cluster", asked), within=1200)
    assert len(management.nodes_of_workload()) == 2
    assert sorted(lab.machines()) == management.named("machines")
    endpoint = lab.vims()["edge-cluster"]["interfaceInfo"]["endpoint"]
    assert any(f"//{chain.at('cluster').address(slot)}:" in endpoint for slot in ("masterNode-0", "workerNode-0"))
    assert lab.http.post("/slipway/v1/vims/edge-cluster/check").json()["ok"]


needs_workload = needs(test_a_workload_cluster_is_made_in_it_and_becomes_a_vim)


@needs_workload
def test_a_cnf_on_it_is_refused_by_its_api_server_and_leaves_nothing(chain: Chain) -> None:
    """The chain ends here: the API server of the in-memory provider knows no server-side apply."""
    lab = chain.new(chain.lab.onboard(SAMPLES / "web-sandbox"), "web")
    failed = lab.run("instantiate", chain.on("edge-cluster", {"flavourId": "simple"}), "FAILED_TEMP")
    assert "415" in failed["error"]["detail"]
    lab.decide(failed["id"], "rollback", "ROLLED_BACK")
    assert "web" not in chain.management().workload("/api/v1/namespaces/default/services")


@needs_workload
def test_each_is_kept_while_others_stand_on_it(chain: Chain) -> None:
    refused = chain.lab.http.post(f"{INSTANCES}/{chain.vnfs['cluster']}/terminate", json=FORCEFUL)
    assert refused.status_code == 409
    for name in ("management", "edge"):
        assert f"{name} ({chain.vnfs[name]})" in refused.json()["detail"]
    failed = chain.at("management").run("terminate", FORCEFUL, "FAILED_TEMP")
    assert f"Cluster {NAMESPACE}/edge" in failed["error"]["detail"]
    chain.lab.decide(failed["id"], "rollback", "ROLLED_BACK")


@needs_workload
def test_the_workload_cluster_goes_first(chain: Chain) -> None:
    lab = chain.at("edge")
    lab.run("terminate", FORCEFUL, within=900)
    assert "edge-cluster" not in lab.vims()
    assert chain.management().left() == {}


@needs(test_the_workload_cluster_goes_first)
def test_then_the_controllers_and_their_definitions(chain: Chain) -> None:
    chain.at("management").run("terminate", FORCEFUL, within=900)
    own = chain.at("cluster")
    definitions = own.kube(lambda api: api.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"))
    assert [one["metadata"]["name"] for one in definitions if "x-k8s.io" in one["metadata"]["name"]] == []
    assert own.kube(lambda api: api.list("/api/v1/pods", labelSelector="control-plane=controller-manager")) == []


@needs(test_then_the_controllers_and_their_definitions)
def test_and_the_machines_at_last(chain: Chain) -> None:
    lab = chain.at("cluster")
    lab.run("terminate", FORCEFUL)
    assert set(lab.vims()) == {"box", "simulated"}  # those that were there before
    assert everything(lab.engines.operations(LOCAL)) == {}


def put(lab: ClusterLab, slot: str, file: Path, path: str) -> None:
    """A file of this host into a machine."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(file, path.lstrip("/"))
    lab.engines.operations(LOCAL).engine.put(lab.machines()[slot]["computeResource"]["resourceId"], packed.getvalue())
