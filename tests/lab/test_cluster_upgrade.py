"""A real cluster goes from one minor version of Kubernetes to the next, and nobody who uses it has to notice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from slipway.kube.nodes import kubelet_version
from slipway.kube.waiting import wait_for_deployment
from tests.functional.next_package import NEXT_ID, next_package
from tests.lab.cluster_lab import SAMPLE, ClusterLab, budget, parameters, web, web_never_silent
from tests.lab.conftest import VERSIONS
from tests.lab.slipway_lab import INSTANCES
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="upgrade")

OLD, NEW = VERSIONS


def test_built(lab: ClusterLab) -> None:
    lab.create()
    lab.run("instantiate", {"flavourId": "simple", "additionalParams": parameters(kubernetes_version=OLD)})
    for manifest in (*web(), budget(1)):
        lab.kube(lambda api, manifest=manifest: api.apply(manifest))  # type: ignore[misc]
    lab.kube(lambda api: wait_for_deployment(api, "default", "web", 120))
    assert versions(lab) == {"masternode-0": OLD, "workernode-0": OLD, "workernode-1": OLD}


@needs(test_built)
def test_upgraded_while_the_web_answers(lab: ClusterLab, tmp_path: Path) -> None:
    new = lab.onboard(next_package(SAMPLE, tmp_path, NEXT_ID, image=NEW, words={}))
    before = lab.machines()
    with web_never_silent(lab, "workerNode-0"):
        operation = lab.begin("change_vnfpkg", {"vnfdId": new})
        lab.until_step(operation, "upgrade masterNode-0")
        time.sleep(20)  # well into what kubeadm does
        assert lab.inside("masterNode-0", "pgrep", "--full", "kubeadm upgrade apply")
        lab.kill()
        lab.start()
        lab.ended(operation, within=1500)
    assert versions(lab) == {"masternode-0": NEW, "workernode-0": NEW, "workernode-1": NEW}
    assert lab.machines() == before
    record = lab.http.get(f"{INSTANCES}/{lab.vnf}").json()
    assert record["vnfdId"] == new
    assert record["instantiatedVnfInfo"]["metadata"]["kubernetesVersion"] == NEW
    lab.until_healthy()
    found = lab.http.post(f"/slipway/v1/vims/kubernetes_vim_{lab.vnf}/check").json()
    assert found == {"ok": True, "detail": f"Kubernetes v{NEW}: 3 nodes, 5 namespaces.", "fault": None}


@needs(test_upgraded_while_the_web_answers)
def test_grown_at_the_new_version(lab: ClusterLab) -> None:
    """Although another one was asked for in the beginning."""
    lab.run("scale", lab.scale("SCALE_OUT"))
    assert versions(lab)["workernode-2"] == NEW
    lab.web_answers("workerNode-2")
    lab.until_healthy()


@needs(test_built)
def test_terminated(lab: ClusterLab) -> None:
    lab.run("terminate", {"terminationType": "FORCEFUL"})


def versions(lab: ClusterLab) -> dict[str, str]:
    nodes = lab.kube(lambda api: api.list("/api/v1/nodes"))
    return {node["metadata"]["name"].rpartition("-")[0]: str(kubelet_version(node)).removeprefix("v") for node in nodes}
