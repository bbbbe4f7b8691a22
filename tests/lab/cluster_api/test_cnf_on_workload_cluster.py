"""A CNF on a workload cluster that was registered as a VIM.

The API servers of the in-memory provider know no server-side apply, so the workload cluster is one whose machines
others look after (`cluster.x-k8s.io/managed-by`), with a real API server. Its kubeconfig is where Cluster API wants it.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator

import pytest

from slipway.kube.api import Api
from slipway.kube.credentials import from_kubeconfig
from slipway.kube.errors import KubeError
from slipway.waiting import Observation, wait_for
from tests.lab.cluster_api.workload_lab import FORCEFUL, INFRASTRUCTURE, SAMPLES, WorkloadLab, a_workload_lab
from tests.lab.kube.control_plane import shared_control_plane
from tests.lab.kubernetes.cnf_lab import node_in_background
from tests.lab.slipway_lab import INSTANCES
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="cluster-api")

VNFD = "5d2b8c11-30f4-4c0a-9a55-7f1e6d3c2b07"
FILE = "Files/kubernetes/of-others.yaml"
# The two workloads are there because the sample's VDUs are to be something.
CLUSTER = """
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: edge}
spec:
  controlPlaneEndpoint: {host: HOST, port: PORT}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DevCluster, name: edge}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DevCluster
metadata: {name: edge, annotations: {cluster.x-k8s.io/managed-by: others}}
spec:
  controlPlaneEndpoint: {host: HOST, port: PORT}
  backend: {inMemory: {}}
---
apiVersion: slipway.io/v1
kind: ReadinessRules
rules:
  - apiVersion: cluster.x-k8s.io/v1beta2
    kind: Cluster
    ready:
      - field: {path: status.initialization.infrastructureProvisioned, equals: true}
"""
WORKLOAD = """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: none}]}
"""
DEV_CLUSTER = f"{INFRASTRUCTURE}/namespaces/others/devclusters/edge"


@pytest.fixture(scope="module")
def workload_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The kubeconfig of a second API server, whose pods are played."""
    with shared_control_plane(tmp_path_factory.mktemp("workload-cluster") / "control-plane") as path:
        kubeconfig = path.read_text()
        with node_in_background(kubeconfig):
            yield kubeconfig


@pytest.fixture(scope="module")
def lab(
    tmp_path_factory: pytest.TempPathFactory, management_cluster: str, workload_cluster: str
) -> Iterator[WorkloadLab]:
    directory = tmp_path_factory.mktemp("cnf")
    with (
        node_in_background(management_cluster),
        a_workload_lab(directory, management_cluster, "others") as lab,
    ):
        yield lab


@pytest.fixture(scope="module")
def cluster(lab: WorkloadLab, workload_cluster: str) -> str:
    """Its VNF, and the kubeconfig that others bring."""
    host, _, port = from_kubeconfig(workload_cluster).server.removeprefix("https://").partition(":")
    file = lab.directory / f"package-{VNFD}" / FILE
    file.parent.mkdir(parents=True)
    workloads = "".join(WORKLOAD.replace("NAME", name) for name in ("edge-control-plane", "edge-workers"))
    file.write_text(CLUSTER.replace("HOST", host).replace("PORT", port) + workloads)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": "edge-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": "edge"}},
        "data": {"value": base64.b64encode(workload_cluster.encode()).decode()},
    }
    lab.on(lab.kubeconfig, lambda api: api.create("/api/v1/namespaces/others/secrets", secret))
    return lab.new_vnf(lab.variant(VNFD), "edge")


async def say_that_it_stands(api: Api) -> None:
    """As whoever looks after its machines does."""

    async def look() -> Observation:
        try:
            await api.get(DEV_CLUSTER)
        except KubeError as error:
            return Observation(False, error.detail)
        return Observation(True, "")

    await wait_for(look, "the DevCluster", 300)
    await api.patch(f"{DEV_CLUSTER}/status", {"status": {"initialization": {"provisioned": True}}})


def test_a_cluster_of_others_is_registered_with_a_token_made_in_it(lab: WorkloadLab, cluster: str) -> None:
    others = threading.Thread(target=lambda: lab.on(lab.kubeconfig, say_that_it_stands))
    others.start()
    asked = lab.instantiate(register_vim={"name": "edge", "access": "service_account_token"})
    asked["additionalParams"]["lcm-kubernetes-def-files"] = [FILE]
    lab.run("instantiate", asked)
    others.join()
    assert lab.http.post("/slipway/v1/vims/edge/check").json()["ok"]


needs_cluster = needs(test_a_cluster_of_others_is_registered_with_a_token_made_in_it)


@needs_cluster
def test_a_cnf_runs_on_it_and_keeps_it_from_being_terminated(
    lab: WorkloadLab, cluster: str, workload_cluster: str
) -> None:
    cnf = lab.new_vnf(lab.onboard(SAMPLES / "cnf"), "shop")
    lab.run("instantiate", {"flavourId": "simple", "vimConnectionInfo": {"vim1": {"vimId": lab.vims()["edge"]["id"]}}})
    pods = lab.on(workload_cluster, lambda api: api.list("/api/v1/namespaces/default/pods"))
    assert set(lab.machines()) <= {pod["metadata"]["name"] for pod in pods}
    refused = lab.http.post(f"{INSTANCES}/{cluster}/terminate", json=FORCEFUL)
    assert refused.status_code == 409
    assert "shop" in refused.json()["detail"]
    lab.vnf = cnf
    lab.run("terminate", FORCEFUL)
    lab.vnf = cluster
    lab.run("terminate", FORCEFUL)
    assert lab.left() == {}
    assert "edge" not in lab.vims()
