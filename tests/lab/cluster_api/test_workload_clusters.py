"""What goes wrong with workload clusters on a real Cluster API, and a script of the package in the sender's place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cluster_api.workload_lab import SAMPLE, WorkloadLab, a_workload_lab

pytestmark = pytest.mark.group(name="cluster-api")

TERMINATE = {"terminationType": "FORCEFUL"}
SCRIPT = """
import json, sys
given = json.load(sys.stdin)
cluster = given["workloadCluster"]
assert "client-key-data" in cluster["kubeconfig"]
told = {"name": cluster["name"], "namespace": cluster["namespace"], "inputs": given["inputs"]}
print(json.dumps({"vnfInstance": {"metadata": {"told": told}}}))
"""


@pytest.fixture
def lab(tmp_path: Path, management_cluster: str, request: pytest.FixtureRequest) -> Iterator[WorkloadLab]:
    namespace = request.node.name.replace("_", "-")[:40].strip("-")
    with a_workload_lab(tmp_path, management_cluster, namespace) as lab:
        lab.create()
        yield lab


def test_a_receiver_that_is_away_is_told_at_the_retry(lab: WorkloadLab) -> None:
    away = lab.instantiate(credentials_receiver=lab.credentials_receiver(url="https://127.0.0.1:9/", attempts=2))
    operation = lab.begin("instantiate", away)
    failed = lab.ended(operation, "FAILED_TEMP", 900)
    assert "https://127.0.0.1:9/ cannot be reached" in failed["error"]["detail"]
    assert lab.left()["clusters"] == ["edge"]
    lab.decide(operation, "rollback", "ROLLED_BACK", 900)
    assert lab.left() == {}
    lab.run("instantiate", lab.instantiate(credentials_receiver=lab.credentials_receiver()), within=900)
    assert f"{lab.namespace}-edge" in lab.vims()
    lab.run("terminate", TERMINATE, within=900)
    assert lab.left() == {}


def test_a_webhook_of_cluster_api_that_refuses_is_heard(lab: WorkloadLab) -> None:
    tree = lab.directory / "refused"
    shutil.copytree(SAMPLE, tree)
    for file in tree.rglob("*.yaml"):
        text = file.read_text().replace("3f0e1c52-7a4b-4e0e-8f2d-5f6a9d1c2b30", "2f3b9d50-0d1b-4a53-9c0f-5b7f1b1d6a01")
        file.write_text(text.replace("version: v1.34.0", "version: nonsense"))
    lab.vnfd = lab.onboard(tree)
    lab.create()
    operation = lab.begin("instantiate", lab.instantiate(register_vim={}))
    failed = lab.ended(operation, "FAILED_TEMP", 900)
    assert "nonsense" in failed["error"]["detail"]
    lab.decide(operation, "rollback", "ROLLED_BACK", 900)
    assert lab.left() == {}


def test_a_script_of_the_package_takes_the_senders_place(lab: WorkloadLab) -> None:
    tree = lab.directory / "scripted"
    shutil.copytree(SAMPLE, tree)
    (tree / "Scripts").mkdir()
    (tree / "Scripts" / "sender.py").write_text(SCRIPT)
    for file in tree.rglob("*.yaml"):
        text = file.read_text().replace("3f0e1c52-7a4b-4e0e-8f2d-5f6a9d1c2b30", "7c5d0a86-4b92-4a0c-8c0e-1d3f5b7a9c02")
        own = "instantiate_end: { implementation: ../Scripts/sender.py, inputs: { site: north } }"
        file.write_text(text.replace("instantiate_end: { implementation: cluster-api }", own))
    lab.vnfd = lab.onboard(tree)
    lab.create()
    lab.run("instantiate", {"flavourId": "in-memory", "additionalParams": {"namespace": lab.namespace}}, within=900)
    told = {"name": "edge", "namespace": lab.namespace, "inputs": {"site": "north"}}
    assert lab.shown()["metadata"]["told"] == told
    lab.run("terminate", TERMINATE, within=900)
    assert lab.left() == {}
