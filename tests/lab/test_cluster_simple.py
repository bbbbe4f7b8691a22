"""A real cluster with one master, from birth to death, with every accident on the way that must not matter."""

from __future__ import annotations

import platform
import time

import pytest

from slipway.kube.waiting import wait_for_deployment
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.inventory import everything
from tests.lab.cluster_lab import ClusterLab, budget, move_web_to, parameters, web, web_never_silent
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="cluster")


def test_built_although_slipway_is_killed_in_the_middle_of_init_and_of_a_join(lab: ClusterLab) -> None:
    lab.create()
    operation = lab.begin("instantiate", {"flavourId": "simple", "additionalParams": parameters()})
    lab.until_step(operation, "init masterNode-0")
    lab.kill()
    lab.start()
    lab.until_step(operation, "join workerNode-0")
    lab.kill()
    lab.start()
    lab.ended(operation)
    assert lab.nodes() == {"masternode-0": True, "workernode-0": True, "workernode-1": True}
    found = lab.http.post("/slipway/v1/vims/kubernetes_vim_" + lab.vnf + "/check").json()
    assert found == {"ok": True, "detail": "Kubernetes v1.34.4: 3 nodes, 5 namespaces.", "fault": None}


needs_cluster = needs(test_built_although_slipway_is_killed_in_the_middle_of_init_and_of_a_join)


@needs_cluster
def test_healthy_and_of_use(lab: ClusterLab) -> None:
    lab.kube(lambda api: api.apply(web()[0]))
    lab.kube(lambda api: api.apply(web()[1]))
    lab.kube(lambda api: wait_for_deployment(api, "default", "web", 120))
    for worker in ("workerNode-0", "workerNode-1"):
        assert lab.web_answers(worker).startswith("web-")
    lab.until_healthy()
    labels = [node["metadata"]["labels"] for node in lab.kube(lambda api: api.list("/api/v1/nodes"))]
    assert {one["CIS-node"] for one in labels} == {platform.node()}


@needs_cluster
def test_a_single_master_is_not_healed_as_a_node(lab: ClusterLab) -> None:
    body = {"vnfcInstanceId": [lab.machines()["masterNode-0"]["id"]]}
    answer = lab.http.post(f"/vnflcm/v2/vnf_instances/{lab.vnf}/heal", json=body)
    assert answer.status_code == 400
    assert "heal the whole VNF" in answer.json()["detail"]


@needs_cluster
def test_scaled_out_without_a_touch_on_the_others(lab: ClusterLab) -> None:
    before = lab.machines()
    lab.run("scale", lab.scale("SCALE_OUT", 2))
    after = lab.machines()
    assert {slot: after[slot]["id"] for slot in before} == {slot: one["id"] for slot, one in before.items()}
    assert lab.nodes() == {"masternode-0": True} | {f"workernode-{number}": True for number in range(4)}
    lab.web_answers("workerNode-3")


@needs(test_scaled_out_without_a_touch_on_the_others)
def test_a_scale_out_that_fails_is_rolled_back_to_a_healthy_cluster(lab: ClusterLab) -> None:
    wrong = {"worker_node_password": "under the hills"}
    operation = lab.run("scale", lab.scale("SCALE_OUT", additionalParams=wrong), "FAILED_TEMP")
    assert "'prepare workerNode-4' on workerNode-4" in operation["error"]["detail"]
    assert "refused the login (tried: password)" in operation["error"]["detail"]
    lab.decide(operation["id"], "rollback", "ROLLED_BACK")
    assert "workerNode-4" not in lab.machines()
    assert "workernode-4" not in lab.nodes()
    lab.until_healthy()


@needs(test_scaled_out_without_a_touch_on_the_others, test_healthy_and_of_use)
def test_a_blocked_drain_names_what_blocks_it_and_goes_on_when_it_may(lab: ClusterLab) -> None:
    victims = lab.plan("SCALE", lab.scale("SCALE_IN"))["remove"]
    assert "machine workerNode-3" in victims
    move_web_to(lab, "workerNode-3")
    lab.kube(lambda api: api.apply(budget(2)))
    short = {"k8s_cluster_installation_param": {"drain": {"timeout": 15}}}
    operation = lab.run("scale", lab.scale("SCALE_IN", additionalParams=short), "FAILED_TEMP")
    assert "default/web-" in operation["error"]["detail"]
    assert "budget web" in operation["error"]["detail"]
    lab.kube(lambda api: api.apply(budget(1)))
    with web_never_silent(lab, "workerNode-0"):
        lab.decide(operation["id"], "retry", "COMPLETED")
    assert "workernode-3" not in lab.nodes()
    assert "workerNode-3" not in lab.machines()


@needs(test_a_blocked_drain_names_what_blocks_it_and_goes_on_when_it_may)
def test_scaled_in_although_slipway_is_killed_in_the_middle_of_the_drain(lab: ClusterLab) -> None:
    move_web_to(lab, "workerNode-2")
    operation = lab.begin("scale", lab.scale("SCALE_IN"))
    lab.until_step(operation, "drain workerNode-2")
    lab.kill()
    lab.start()
    lab.ended(operation)
    assert lab.nodes() == {"masternode-0": True, "workernode-0": True, "workernode-1": True}
    lab.web_answers("workerNode-1")


@needs(test_healthy_and_of_use)
def test_a_worker_without_power_is_healed(lab: ClusterLab) -> None:
    before = lab.machines()["workerNode-1"]["id"]
    lab.cut_power("workerNode-1")
    lab.heal("workerNode-1")
    assert lab.machines()["workerNode-1"]["id"] != before
    assert lab.nodes() == lab.all_ready()
    lab.web_answers("workerNode-1")


@needs_cluster
def test_ssh_may_be_away_for_half_a_minute(lab: ClusterLab) -> None:
    plan = lab.plan("SCALE", lab.scale("SCALE_OUT"))
    operation = lab.begin("scale", lab.scale("SCALE_OUT"))
    lab.until_step(operation, next(step["id"] for step in plan["steps"] if step["id"].startswith("join ")))
    with lab.ssh_cut("masterNode-0"):
        time.sleep(30)  # the accident itself
    lab.ended(operation)
    assert lab.nodes() == lab.all_ready()


@needs_cluster
def test_healed_as_a_whole_at_the_same_scale_level(lab: ClusterLab) -> None:
    before = {slot: one["id"] for slot, one in lab.machines().items()}
    lab.run("heal", {})
    after = {slot: one["id"] for slot, one in lab.machines().items()}
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert lab.nodes() == lab.all_ready()
    lab.until_healthy()


@needs_cluster
def test_terminated_without_a_trace(lab: ClusterLab) -> None:
    lab.run("terminate", {"terminationType": "FORCEFUL"})
    assert [vim["name"] for vim in lab.http.get("/slipway/v1/vims").json() if "kubernetes" in vim["name"]] == []
    assert everything(lab.engines.operations(LOCAL)) == {}
