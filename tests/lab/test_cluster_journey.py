"""The life of a real cluster with three masters that every `make test` goes through.

What else can happen to a cluster is in the groups: test_cluster_simple.py, test_cluster_ha.py, test_cluster_upgrade.py.
"""

from __future__ import annotations

import pytest

from slipway.kube.waiting import wait_for_deployment
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.inventory import everything
from tests.lab.cluster_lab import ClusterLab, budget, move_web_to, parameters, web, web_never_silent
from tests.lab.slipway_lab import INSTANCES
from tests.lab.stages import needs

pytestmark = pytest.mark.journey

VIP = "10.11.0.20"  # low: machines of the sandbox have addresses of the upper half


def test_built_although_slipway_is_killed_in_the_middle_of_init_and_of_a_join(lab: ClusterLab) -> None:
    lab.create()
    operation = lab.begin(
        "instantiate", {"flavourId": "ha", "additionalParams": parameters(master_node={"cluster_ip": VIP})}
    )
    for step in ("init masterNode-0", "join masterNode-1"):
        lab.until_step(operation, step)
        lab.kill()
        lab.start()
    lab.ended(operation)
    assert sorted(lab.machines()) == ["masterNode-0", "masterNode-1", "masterNode-2", "workerNode-0", "workerNode-1"]
    _whole(lab)
    found = lab.http.post(f"/slipway/v1/vims/kubernetes_vim_{lab.vnf}/check").json()
    assert found == {"ok": True, "detail": "Kubernetes v1.34.4: 5 nodes, 5 namespaces.", "fault": None}


needs_cluster = needs(test_built_although_slipway_is_killed_in_the_middle_of_init_and_of_a_join)


@needs_cluster
def test_of_use(lab: ClusterLab) -> None:
    for manifest in (*web(), budget(1)):  # both may be on one worker, which must not lose them at once
        lab.kube(lambda api, one=manifest: api.apply(one))  # type: ignore[misc]
    lab.kube(lambda api: wait_for_deployment(api, "default", "web", 120))
    for worker in ("workerNode-0", "workerNode-1"):
        assert lab.web_answers(worker).startswith("web-")


@needs_cluster
def test_all_masters_at_once_are_not_healed(lab: ClusterLab) -> None:
    body = {"vnfcInstanceId": [one["id"] for slot, one in lab.machines().items() if slot.startswith("master")]}
    answer = lab.http.post(f"{INSTANCES}/{lab.vnf}/heal", json=body)
    assert answer.status_code == 400
    assert "heal fewer masters at once" in answer.json()["detail"]


@needs_cluster
def test_scaled_out_without_a_touch_on_the_others(lab: ClusterLab) -> None:
    before = lab.machines()
    operation = lab.begin("scale", lab.scale("SCALE_OUT"))
    lab.until_step(operation, "join workerNode-2")
    lab.kill()
    lab.start()
    lab.ended(operation)
    after = lab.machines()
    assert {slot: after[slot]["id"] for slot in before} == {slot: one["id"] for slot, one in before.items()}
    assert "workerNode-2" in after
    _whole(lab)


@needs(test_of_use, test_scaled_out_without_a_touch_on_the_others)
def test_scaled_in_while_the_web_answers_although_slipway_is_killed_in_the_middle_of_the_drain(lab: ClusterLab) -> None:
    move_web_to(lab, "workerNode-2")
    with web_never_silent(lab, "workerNode-0"):
        operation = lab.begin("scale", lab.scale("SCALE_IN"))
        lab.until_step(operation, "drain workerNode-2")
        lab.kill()
        lab.start()
        lab.ended(operation)
    assert "workerNode-2" not in lab.machines()
    _whole(lab)


@needs_cluster
def test_a_worker_without_power_is_healed(lab: ClusterLab) -> None:
    _loses_its_power_and_is_healed(lab, "workerNode-1")


@needs_cluster
def test_the_first_master_without_power_is_healed(lab: ClusterLab) -> None:
    _loses_its_power_and_is_healed(lab, "masterNode-0")


@needs(test_of_use)
def test_still_of_use(lab: ClusterLab) -> None:
    for worker in ("workerNode-0", "workerNode-1"):
        assert lab.web_answers(worker).startswith("web-")


@needs_cluster
def test_terminated_without_a_trace(lab: ClusterLab) -> None:
    lab.run("terminate", {"terminationType": "FORCEFUL"})
    assert [vim["name"] for vim in lab.http.get("/slipway/v1/vims").json() if "kubernetes" in vim["name"]] == []
    assert everything(lab.engines.operations(LOCAL)) == {}


def _loses_its_power_and_is_healed(lab: ClusterLab, slot: str) -> None:
    before = lab.machines()[slot]["id"]
    lab.cut_power(slot)
    assert any(slot in problem for problem in lab.health()["problems"])
    lab.heal(slot)
    assert lab.machines()[slot]["id"] != before
    _whole(lab)


def _whole(lab: ClusterLab) -> None:
    assert lab.nodes() == lab.all_ready()
    health = lab.health()
    assert health["problems"] == []
    assert (health["virtualAddress"], health["virtualAddressAnswers"]) == (VIP, True)
