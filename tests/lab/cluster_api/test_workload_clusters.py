"""What goes wrong with workload clusters on a real Cluster API, and a script of the package in the sender's place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.lab.cluster_api.workload_lab import FORCEFUL, WorkloadLab, a_workload_lab

pytestmark = pytest.mark.group(name="cluster-api")

SCRIPT = """
import json, sys
given = json.load(sys.stdin)
cluster = given["workloadCluster"]
assert "client-key-data" in cluster["kubeconfig"]
told = {"name": cluster["name"], "namespace": cluster["namespace"], "inputs": given["inputs"]}
print(json.dumps({"vnfInstance": {"metadata": {"told": told}}}))
"""


@pytest.fixture
def lab(tmp_path: Path, management_cluster: str) -> Iterator[WorkloadLab]:
    with a_workload_lab(tmp_path, management_cluster, f"edge-{uuid4().hex[:8]}") as lab:
        lab.create()
        yield lab


def test_a_receiver_that_is_away_is_told_at_the_retry(lab: WorkloadLab) -> None:
    asked = lab.instantiate(credentials_receiver=lab.credentials_receiver(attempts=2))
    lab.end_receiver()
    operation = lab.begin("instantiate", asked)
    failed = lab.ended(operation, "FAILED_TEMP", 900)
    assert f"{lab.receiver_url} cannot be reached" in failed["error"]["detail"]
    assert "client-key-data" not in lab.process.log.read_text()
    lab.kill()
    lab.start()
    lab.decide(operation, "retry", "COMPLETED", 900)
    assert f"{lab.namespace}-edge" in lab.vims()
    lab.run("terminate", FORCEFUL, within=900)
    assert lab.left() == {}


def test_a_webhook_of_cluster_api_that_refuses_is_heard_and_a_rollback_leaves_nothing(lab: WorkloadLab) -> None:
    lab.new_vnf(lab.variant(str(uuid4()), ("version: v1.34.0", "version: nonsense")), "refused")
    operation = lab.begin("instantiate", lab.instantiate(register_vim={}))
    failed = lab.ended(operation, "FAILED_TEMP", 900)
    assert "nonsense" in failed["error"]["detail"]
    lab.decide(operation, "rollback", "ROLLED_BACK", 900)
    assert lab.left() == {}


def test_a_script_of_the_package_takes_the_senders_place(lab: WorkloadLab) -> None:
    own = "instantiate_end: { implementation: ../Scripts/sender.py, inputs: { site: north } }"
    vnfd = str(uuid4())
    tree = lab.directory / f"package-{vnfd}"
    (tree / "Scripts").mkdir(parents=True)
    (tree / "Scripts" / "sender.py").write_text(SCRIPT)
    lab.new_vnf(lab.variant(vnfd, ("instantiate_end: { implementation: cluster-api }", own)), "scripted")
    lab.run("instantiate", {"flavourId": "in-memory", "additionalParams": {"namespace": lab.namespace}}, within=900)
    told = {"name": "edge", "namespace": lab.namespace, "inputs": {"site": "north"}}
    assert lab.shown()["metadata"]["told"] == told
    lab.run("terminate", FORCEFUL, within=900)
    assert lab.left() == {}


def test_the_only_master_is_not_healed_alone_and_the_whole_is_made_anew(lab: WorkloadLab) -> None:
    lab.run("instantiate", lab.instantiate(register_vim={"name": f"vim-{lab.namespace}"}), within=900)
    (master,) = lab.vnfcs("controlPlane").values()
    refused = lab.http.post(f"/vnflcm/v2/vnf_instances/{lab.vnf}/heal", json={"vnfcInstanceId": [master]})
    assert refused.status_code == 422
    assert "all machines of the control plane controlPlane would be replaced" in refused.json()["detail"]
    machines = lab.named("machines")
    lab.run("heal", {"additionalParams": {"all": True}}, within=900)
    assert not set(machines) & set(lab.named("machines"))
    assert sorted(lab.machines()) == lab.named("machines")
    check = lab.http.post(f"/slipway/v1/vims/vim-{lab.namespace}/check").json()
    assert check["ok"], check
    lab.run("terminate", FORCEFUL, within=900)
    assert lab.left() == {}
