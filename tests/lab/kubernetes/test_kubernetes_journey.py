"""The life of a CNF on a real API server that every `make test` goes through. Its pods are played."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.kubernetes.cnf_lab import CnfLab, node_in_background, vnfcs
from tests.lab.stages import needs

pytestmark = pytest.mark.journey
WORKLOADS, PAGES = "Files/kubernetes/workloads.yaml", "Files/kubernetes/pages.yaml"
CONFIGURATION = "Files/kubernetes/configuration.yaml"
ROLLING = {"upgrade_type": "RollingUpdate"}


@pytest.fixture(scope="module")
def cnf(tmp_path_factory: pytest.TempPathFactory, kubeconfig: str) -> Iterator[CnfLab]:
    with node_in_background(kubeconfig) as node:
        lab = CnfLab(tmp_path_factory.mktemp("cnf"), kubeconfig, "journey", node)
        try:
            yield lab
        finally:
            lab.kill()


def test_made_although_slipway_is_killed_while_it_waits_for_pods(cnf: CnfLab) -> None:
    cnf.create()
    cnf.node.starts = False
    operation = cnf.begin("instantiate", {"flavourId": "simple"})
    cnf.until_step(operation, "wait until ready")
    cnf.kill()
    cnf.start()
    cnf.node.starts = True
    cnf.ended(operation)
    assert cnf.pods() == {"web": 2, "store": 1, "agent": 1}
    assert cnf.get("cnf.slipway.example/v1/pages/front")["spec"] == {"title": "Welcome"}
    assert cnf.get("batch/v1/jobs/prepare")["status"]["succeeded"] == 1


needs_cnf = needs(test_made_although_slipway_is_killed_while_it_waits_for_pods)


@needs_cnf
def test_scaled_out_without_a_touch_on_the_others(cnf: CnfLab) -> None:
    before = vnfcs(cnf, "web")
    cnf.run("scale", {"type": "SCALE_OUT", "aspectId": "web", "numberOfSteps": 1})
    after = vnfcs(cnf, "web")
    assert before.items() < after.items()
    assert cnf.get("apps/v1/deployments/web")["spec"]["replicas"] == 3


@needs_cnf
def test_a_pod_is_healed_and_the_others_stay(cnf: CnfLab) -> None:
    before = vnfcs(cnf, "web")
    sick = min(before)
    cnf.heal(sick)
    after = vnfcs(cnf, "web")
    assert sick not in after
    assert len(after) == len(before)
    assert before.items() - after.items() == {(sick, before[sick])}


@needs_cnf
def test_what_others_change_is_shown_and_left(cnf: CnfLab) -> None:
    assert cnf.drift() == []
    cnf.change_as_somebody("v1/configmaps/web", {"data": {"greeting": "hey"}})
    assert cnf.drift() == ["ConfigMap journey/web was changed by somebody: it is not as Slipway applied it."]
    assert cnf.get("v1/configmaps/web")["data"] == {"greeting": "hey"}


@needs_cnf
def test_another_package_rolls_the_pods_and_removes_what_it_lacks(cnf: CnfLab) -> None:
    new = cnf.variant(
        1,
        (WORKLOADS, "web:1.0", "web:1.1"),
        (WORKLOADS, "prepare:1.0", "prepare:1.1"),  # of a Job, which can't be changed
        (CONFIGURATION, "hello", "good morning"),
        (CONFIGURATION, "user: store", "user: keeper"),  # what uses it starts anew
        (PAGES, "name: front", "name: entrance"),
    )
    before = cnf.machines()
    refused = cnf.run("change_vnfpkg", {"vnfdId": new, "additionalParams": ROLLING}, "FAILED_TEMP")
    assert "ConfigMap journey/web is not changed: .data.greeting was set by somebody" in refused["error"]["detail"]
    cnf.decide(refused["id"], "rollback", "ROLLED_BACK")
    assert cnf.get("v1/configmaps/web")["data"] == {"greeting": "hey"}
    cnf.run("change_vnfpkg", {"vnfdId": new, "additionalParams": {**ROLLING, "force_conflicts": True}})
    after = cnf.machines()
    assert cnf.pods() == {"web": 3, "store": 1, "agent": 1}
    stayed = {before[name]["vduId"] for name, one in after.items() if before.get(name, {}).get("id") == one["id"]}
    assert stayed == {"agent"}
    assert cnf.get("v1/configmaps/web")["data"] == {"greeting": "good morning"}
    assert cnf.get("batch/v1/jobs/prepare")["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":1.1")
    assert cnf.shown()["vnfdId"] == new
    assert [one for one in cnf.left() if one.startswith("Page")] == ["Page entrance"]


@needs(test_another_package_rolls_the_pods_and_removes_what_it_lacks)
def test_a_package_that_the_cluster_refuses_is_taken_back(cnf: CnfLab) -> None:
    bad = cnf.variant(
        2,
        (WORKLOADS, "web:1.0", "web:2.0"),
        (CONFIGURATION, "hello", "good night"),
        (PAGES, "title: Welcome", f"title: {'too long ' * 12}"),
        (PAGES, "name: front", "name: entrance"),
    )
    operation = cnf.run("change_vnfpkg", {"vnfdId": bad}, "FAILED_TEMP")
    detail = operation["error"]["detail"]
    assert "Page entrance" in detail
    assert "spec.title: Too long" in detail
    cnf.decide(operation["id"], "rollback", "ROLLED_BACK")
    assert cnf.get("v1/configmaps/web")["data"] == {"greeting": "good morning"}
    containers = cnf.get("apps/v1/deployments/web")["spec"]["template"]["spec"]["containers"]
    assert containers[0]["image"].endswith("web:1.1")
    assert cnf.pods() == {"web": 3, "store": 1, "agent": 1}
    assert cnf.get("cnf.slipway.example/v1/pages/entrance")["spec"] == {"title": "Welcome"}


@needs_cnf
def test_scaled_in_again(cnf: CnfLab) -> None:
    cnf.run("scale", {"type": "SCALE_IN", "aspectId": "web", "numberOfSteps": 1})
    assert cnf.pods()["web"] == 2


@needs_cnf
def test_terminated_without_a_trace(cnf: CnfLab) -> None:
    cnf.run("terminate", {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1})
    assert cnf.left() == []
    assert cnf.machines() == {}
