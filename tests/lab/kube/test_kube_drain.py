"""Draining on a real API server with its real budgets and controllers; only the kubelet is played."""

from __future__ import annotations

import asyncio
import time

import pytest

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.drain import DrainPolicy, drain
from slipway.kube.nodes import cordon, node_is_ready, uncordon
from slipway.kube.waiting import wait_for_deployment
from slipway.model.errors import StepError
from slipway.waiting import Observation, wait_for
from tests.lab.kube.fake_kubelet import FakeNode, fake_node, finish
from tests.lab.kube.workloads import Workloads

pytestmark = pytest.mark.journey

PATIENT, SHORT = DrainPolicy(timeout=30), DrainPolicy(timeout=1)
NOBODY = {"app": "free"}  # no budget is for it


@pytest.fixture
def work(api: Api, namespace: str, node: FakeNode) -> Workloads:
    return Workloads(api, namespace, node)


def quiet(said: str) -> None:
    pass


async def all_run(work: Workloads, number: int) -> None:
    """And the controllers know it."""

    async def look() -> Observation:
        pods = await work.api.list(paths.pods(work.namespace), fieldSelector=f"spec.nodeName={work.node.name}")
        running = sum(pod["status"].get("phase") != "Pending" for pod in pods)
        return Observation(running == number, f"{running} run")

    await wait_for(look, f"{number} pods to run", 30)


async def budget_allows(work: Workloads, name: str, healthy: int) -> None:
    path = paths.namespaced("/apis/policy/v1", work.namespace, "poddisruptionbudgets", name)

    async def look() -> Observation:
        status = (await work.api.get(path)).get("status") or {}
        return Observation(status.get("currentHealthy") == healthy, str(status))

    await wait_for(look, f"budget {name} to see {healthy} pods", 30)


async def is_cordoned(api: Api, node: FakeNode) -> bool:
    spec = (await api.get(paths.node(node.name))).get("spec") or {}
    return bool(spec.get("unschedulable"))


async def test_cordon_says_whether_it_was_us_and_uncordon_takes_it_back(api: Api, node: FakeNode) -> None:
    assert await cordon(api, node.name)
    assert not await cordon(api, node.name)
    assert await is_cordoned(api, node)
    await uncordon(api, node.name)
    assert not await is_cordoned(api, node)


async def test_a_node_that_is_not_there_is_no_error(api: Api) -> None:
    await drain(api, "nowhere", PATIENT, quiet)
    assert not await cordon(api, "nowhere")
    await uncordon(api, "nowhere")


async def test_an_idle_node_is_cordoned(api: Api, node: FakeNode) -> None:
    await drain(api, node.name, PATIENT, quiet)
    assert await is_cordoned(api, node)


async def test_pods_go_but_those_of_daemon_sets_and_static_ones(work: Workloads) -> None:
    await work.daemon_set()
    await work.deployment(2)
    await work.static_pod("static")
    await wait_for_deployment(work.api, work.namespace, "web", 30)
    await all_run(work, 4)
    said: list[str] = []
    await drain(work.api, work.node.name, PATIENT, said.append)
    left = await work.running()
    assert len(left) == 2
    assert all(name == "static" or name.startswith("daemon-") for name in left)
    assert said[0] == f"{work.node.name}: evicting 2 pods"
    await drain(work.api, work.node.name, PATIENT, quiet)  # again: nothing to do


async def test_300_pods_are_drained_at_once(work: Workloads) -> None:
    work.node.starts = False
    await work.pods(*(f"pod-{number}" for number in range(300)))
    said: list[str] = []
    await drain(work.api, work.node.name, DrainPolicy(timeout=120), said.append)
    assert not await work.running()
    assert said[0].endswith("evicting 300 pods")
    assert len(said) < 15


async def test_a_budget_that_blocks_is_waited_for(work: Workloads) -> None:
    await work.pods("one", "two")
    await work.budget("holds", 2)
    await all_run(work, 2)
    await budget_allows(work, "holds", 2)
    draining = asyncio.create_task(drain(work.api, work.node.name, PATIENT, quiet))
    await asyncio.wait([draining], timeout=1)
    assert not draining.done()
    assert set(await work.running()) == {"one", "two"}
    await work.budget("holds", 0)
    await draining
    assert not await work.running()


async def test_a_blocked_pod_and_its_budget_are_named_when_the_time_is_over(work: Workloads) -> None:
    await work.pods("held")
    await work.pods("free", labels=NOBODY)
    await work.budget("holds", 1)
    await all_run(work, 2)
    await budget_allows(work, "holds", 1)
    with pytest.raises(StepError) as caught:
        await drain(work.api, work.node.name, SHORT, quiet)
    detail = caught.value.detail
    assert f"timed out after 1 s draining node {work.node.name} (1 pod left: {work.namespace}/held is held: " in detail
    assert "The disruption budget holds needs 1 healthy pods and has 1 currently" in detail
    assert "Cure: give the budget room" in detail
    assert "free" not in detail
    assert set(await work.running()) == {"held"}


async def test_force_deletes_what_a_budget_holds_when_the_time_is_over(work: Workloads) -> None:
    await work.pods("held")
    await work.budget("holds", 1)
    await all_run(work, 1)
    await budget_allows(work, "holds", 1)
    said: list[str] = []
    begun = time.monotonic()
    await drain(work.api, work.node.name, DrainPolicy(timeout=1, force=True), said.append)
    assert time.monotonic() - begun >= 1
    assert not await work.running()
    assert any(f"the time is over, {work.namespace}/held deleted" in line for line in said)


async def test_a_pod_of_two_budgets_is_named_with_what_the_server_says(work: Workloads) -> None:
    await work.pods("held")
    await work.budget("one", 0)
    await work.budget("two", 0)
    await all_run(work, 1)
    with pytest.raises(StepError, match=r"/held is held: .*more than one PodDisruptionBudget"):
        await drain(work.api, work.node.name, SHORT, quiet)


async def test_a_pod_that_does_not_end_is_named(work: Workloads) -> None:
    await work.pods("stays", "goes")
    await all_run(work, 2)
    work.node.keeps.add("stays")
    with pytest.raises(StepError, match=r"not ended yet: \S+/stays\)\. Cure: see what keeps"):
        await drain(work.api, work.node.name, SHORT, quiet)
    work.node.keeps.clear()
    await drain(work.api, work.node.name, PATIENT, quiet)  # it was evicted before; now it is waited for


async def test_pods_without_controller_are_refused_by_name_before_anything_is_evicted(work: Workloads) -> None:
    await work.pod("alone")
    await work.pods("ours")
    await all_run(work, 2)
    with pytest.raises(StepError, match=r"nothing would bring back \S+/alone\. Cure: delete the pods"):
        await drain(work.api, work.node.name, PATIENT, quiet)
    assert set(await work.running()) == {"alone", "ours"}
    await drain(work.api, work.node.name, DrainPolicy(timeout=30, force=True), quiet)
    assert not await work.running()


async def test_an_empty_dir_is_refused_by_name_or_lost_as_told(work: Workloads) -> None:
    await work.pods("scratch", volumes=[{"name": "data", "emptyDir": {}}])
    await all_run(work, 1)
    with pytest.raises(StepError, match=r"/scratch would lose what is in emptyDir"):
        await drain(work.api, work.node.name, DrainPolicy(timeout=30, empty_dir="refuse", force=True), quiet)
    assert set(await work.running()) == {"scratch"}
    await drain(work.api, work.node.name, PATIENT, quiet)
    assert not await work.running()


async def test_finished_pods_go_without_fuss(work: Workloads) -> None:
    await work.pod("done", volumes=[{"name": "data", "emptyDir": {}}], restartPolicy="Never")
    await work.pod("broken", restartPolicy="Never")
    await all_run(work, 2)
    await finish(work.api, work.namespace, "done", "Succeeded")
    await finish(work.api, work.namespace, "broken", "Failed")
    await drain(work.api, work.node.name, DrainPolicy(timeout=30, empty_dir="refuse"), quiet)
    assert not await work.running()


async def test_a_dead_node_is_left_at_once_and_nothing_is_refused(api: Api, namespace: str) -> None:
    async with fake_node(api, tended=False) as node:
        work = Workloads(api, namespace, node)
        await work.pod("alone", volumes=[{"name": "data", "emptyDir": {}}])
        await work.pods("ours", "held")
        await node.tend()
        await work.budget("holds", 2)
        await budget_allows(work, "holds", 2)
        await node.report("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        assert not node_is_ready(await api.get(paths.node(node.name)))
        said: list[str] = []
        begun = time.monotonic()
        await drain(api, node.name, DrainPolicy(timeout=30, empty_dir="refuse"), said.append)
        assert time.monotonic() - begun < 5
        assert await is_cordoned(api, node)
        assert "3 pods evicted without waiting" in said[0]
        assert "left to the cluster" in said[1]
        assert "budget holds" in said[1]
        await drain(api, node.name, PATIENT, quiet)


async def test_a_drain_that_broke_off_goes_on(work: Workloads) -> None:
    await work.pods(*(f"pod-{number}" for number in range(20)))
    await all_run(work, 20)
    work.node.keeps.update(f"pod-{number}" for number in range(20))
    for moment in (0.0, 0.02, 0.05, 0.2):
        draining = asyncio.create_task(drain(work.api, work.node.name, PATIENT, quiet))
        await asyncio.wait([draining], timeout=moment)
        draining.cancel()
        await asyncio.wait([draining])
    work.node.keeps.clear()
    await drain(work.api, work.node.name, PATIENT, quiet)
    assert not await work.running()
