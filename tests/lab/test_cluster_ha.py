"""A real cluster with three masters behind a virtual address: any of them may be lost, and is healed."""

from __future__ import annotations

import time

import pytest

from slipway.kube.waiting import wait_for_deployment
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.inventory import everything
from tests.lab.cluster_lab import ClusterLab, parameters, web
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="cluster")

VIP = "10.11.0.20"  # low: machines of the sandbox have addresses of the upper half
ALL = {f"masternode-{number}": True for number in range(3)} | {"workernode-0": True, "workernode-1": True}


def test_built_with_its_api_at_the_virtual_address(lab: ClusterLab) -> None:
    lab.create()
    body = {"flavourId": "ha", "additionalParams": parameters(master_node={"cluster_ip": VIP})}
    lab.run("instantiate", body)
    assert lab.nodes() == ALL
    health = lab.health()
    assert health["problems"] == []
    assert (health["virtualAddress"], health["virtualAddressAnswers"]) == (VIP, True)
    for manifest in web():
        lab.kube(lambda api, one=manifest: api.apply(one))  # type: ignore[misc]
    lab.kube(lambda api: wait_for_deployment(api, "default", "web", 120))
    lab.web_answers("workerNode-0")


needs_cluster = needs(test_built_with_its_api_at_the_virtual_address)


@needs_cluster
def test_the_first_master_loses_its_power_and_is_healed(lab: ClusterLab) -> None:
    before = lab.machines()["masterNode-0"]["id"]
    lab.cut_power("masterNode-0")
    asked = time.monotonic()
    health = lab.health()
    assert time.monotonic() - asked < 5
    assert "masterNode-0 has no power." in health["problems"]
    assert {node["name"] for node in health["nodes"] if node.get("answers")} == set(lab.machines()) - {"masterNode-0"}
    lab.heal("masterNode-0")
    assert lab.machines()["masterNode-0"]["id"] != before
    _whole(lab)


@needs_cluster
def test_a_heal_that_would_lose_quorum_is_refused_with_the_reason(lab: ClusterLab) -> None:
    lab.cut_power("masterNode-1")
    operation = lab.heal("masterNode-2", state="FAILED_TEMP")
    assert "Without masternode-2" in operation["error"]["detail"]
    assert "would lose its quorum" in operation["error"]["detail"]
    assert "masterNode-2" in lab.machines()
    lab.decide(operation["id"], "rollback", "ROLLED_BACK")
    lab.heal("masterNode-1")
    _whole(lab)


@needs_cluster
def test_a_worker_that_dies_before_it_is_ready_is_told_within_a_minute(lab: ClusterLab) -> None:
    operation = lab.begin("scale", lab.scale("SCALE_OUT"))
    lab.until_step(operation, "join workerNode-2", "DONE")
    lab.cut_power_of_new("workerNode-2")
    died = time.monotonic()
    failed = lab.ended(operation, "FAILED_TEMP")
    assert time.monotonic() - died < 60
    assert "workerNode-2 has no power" in failed["error"]["detail"]
    lab.decide(operation, "rollback", "ROLLED_BACK")
    _whole(lab)


@needs_cluster
def test_all_masters_at_once_are_refused_unless_the_whole_is_healed(lab: ClusterLab) -> None:
    machines = lab.machines()
    body = {"vnfcInstanceId": [one["id"] for slot, one in machines.items() if slot.startswith("master")]}
    answer = lab.http.post(f"/vnflcm/v2/vnf_instances/{lab.vnf}/heal", json=body)
    assert answer.status_code == 400
    assert "heal fewer masters at once" in answer.json()["detail"]


@needs_cluster
def test_two_masters_and_a_worker_are_healed_in_a_safe_order(lab: ClusterLab) -> None:
    operation = lab.heal("masterNode-0", "masterNode-2", "workerNode-1")
    steps = lab.http.get(f"/slipway/v1/operations/{operation['id']}/steps").json()["steps"]
    times = {step["id"]: (step["startedAt"], step["endedAt"]) for step in steps}
    assert times["leave etcd masterNode-2"][0] >= times["ready masterNode-0"][1]
    _whole(lab)


@needs_cluster
def test_a_heal_without_a_quorum_is_refused_at_once(lab: ClusterLab) -> None:
    lab.cut_power("masterNode-1")
    lab.cut_power("masterNode-2")
    asked = time.monotonic()
    operation = lab.heal("masterNode-1", state="ROLLED_BACK")
    assert time.monotonic() - asked < 10
    assert "etcd has lost its quorum" in operation["error"]["detail"]
    assert "masterNode-1 and masterNode-2 have no power" in operation["error"]["detail"]


@needs_cluster
def test_terminated_without_a_trace(lab: ClusterLab) -> None:
    lab.run("terminate", {"terminationType": "FORCEFUL"})
    assert everything(lab.engines.operations(LOCAL)) == {}


def _whole(lab: ClusterLab) -> None:
    assert lab.nodes() == ALL
    lab.until_healthy()
    lab.web_answers("workerNode-0")
