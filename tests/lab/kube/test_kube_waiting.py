"""Waiting on a real API server: for what comes, and what is told about what does not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.credentials import Credentials
from slipway.kube.errors import KubeError
from slipway.kube.waiting import (
    wait_for_daemon_set,
    wait_for_deployment,
    wait_for_node_gone,
    wait_for_node_ready,
    wait_for_pod,
)
from slipway.model.errors import StepError
from slipway.waiting import Observation, wait_for
from tests.lab.kube.fake_kubelet import FakeNode, fake_node, finish
from tests.lab.kube.workloads import Workloads

pytestmark = pytest.mark.journey


@pytest.fixture
def work(api: Api, namespace: str, node: FakeNode) -> Workloads:
    return Workloads(api, namespace, node)


async def test_a_node_that_becomes_ready(api: Api) -> None:
    async with fake_node(api, tended=False) as node:
        await node.report("False", "KubeletNotReady", "cni plugin not initialized")
        waiting = asyncio.create_task(wait_for_node_ready(api, node.name, 20))
        await asyncio.wait([waiting], timeout=0.5)
        assert not waiting.done()
        await node.report()
        await waiting


async def test_a_node_that_does_not_is_told_with_its_reason_and_events(api: Api) -> None:
    async with fake_node(api, tended=False) as node:
        await node.report("False", "KubeletNotReady", "cni plugin not initialized")
        for number in range(5):
            await api.create(
                paths.namespaced("/api/v1", "default", "events"),
                {
                    "apiVersion": "v1",
                    "kind": "Event",
                    "metadata": {"name": f"{node.name}-{number}"},
                    "involvedObject": {"kind": "Node", "name": node.name},
                    "reason": "Trouble",
                    "message": f"number {number}",
                    "lastTimestamp": f"2026-01-01T00:00:0{number}Z",
                },
            )
        with pytest.raises(StepError) as caught:
            await wait_for_node_ready(api, node.name, 0.3)
    detail = caught.value.detail
    assert caught.value.temporary
    assert f"timed out after 0.3 s waiting for node {node.name} to be Ready" in detail
    assert "Ready is False (KubeletNotReady: cni plugin not initialized)" in detail
    assert "Trouble: number 4" in detail


async def test_a_node_that_never_came(api: Api) -> None:
    with pytest.raises(StepError, match="last condition: no such node"):
        await wait_for_node_ready(api, "nowhere", 0.1)


async def test_a_node_that_goes(api: Api) -> None:
    async with fake_node(api, tended=False) as node:
        with pytest.raises(StepError, match="it is still there"):
            await wait_for_node_gone(api, node.name, 0.1)
        await api.delete(paths.node(node.name))
        await wait_for_node_gone(api, node.name, 10)


async def test_a_deployment_that_comes_up(work: Workloads) -> None:
    await work.deployment(3)
    await wait_for_deployment(work.api, work.namespace, "web", 30)
    assert len(await work.running()) == 3


async def test_a_deployment_that_does_not_is_told_with_its_pods(api: Api, namespace: str) -> None:
    work = Workloads(api, namespace, FakeNode(api, "nowhere"))
    await work.deployment(2)
    with pytest.raises(
        StepError, match=r"0 of 2 available.*pod web-\S+ is Pending, PodScheduled is False .Unschedul"
    ) as e:
        await wait_for_deployment(api, namespace, "web", 3)
    assert "Events: ScalingReplicaSet: " in e.value.detail


async def test_a_pod_that_runs_and_one_that_failed(work: Workloads) -> None:
    await work.pod("one", restartPolicy="Never")
    await wait_for_pod(work.api, work.namespace, "one", 20)
    await finish(work.api, work.namespace, "one", "Failed")
    with pytest.raises(StepError, match="pod one is Failed") as caught:
        await wait_for_pod(work.api, work.namespace, "one", 20)
    assert not caught.value.temporary


async def test_what_a_container_waits_for_is_told(api: Api, namespace: str) -> None:
    async with fake_node(api, tended=False) as node:
        work = Workloads(api, namespace, node)
        await work.pod("one")
        why = {"reason": "ImagePullBackOff", "message": "no such image"}
        container = {"name": "main", "image": "any", "imageID": "", "ready": False, "restartCount": 0}
        status = {"containerStatuses": [{**container, "state": {"waiting": why}}]}
        await api.patch(f"{paths.pod(namespace, 'one')}/status", {"status": status})
        with pytest.raises(StepError, match=r"container main waiting \(ImagePullBackOff: no such image\)"):
            await wait_for_pod(api, namespace, "one", 0.2)


async def test_a_server_that_does_not_answer_is_what_was_seen(administrator: Credentials) -> None:
    async with Api(replace(administrator, server="https://127.0.0.1:1")) as api:
        with pytest.raises(
            StepError, match=r"last condition: GET /api/v1/nodes/n on https://127\.0\.0\.1:1: "
        ) as caught:
            await wait_for_node_ready(api, "n", 0.3)
    assert caught.value.temporary


async def test_wrong_credentials_are_not_waited_with(administrator: Credentials) -> None:
    async with Api(replace(administrator, client_certificate=None, client_key=None, token="no")) as api:
        with pytest.raises(KubeError, match="401"):
            await wait_for_node_ready(api, "n", 30)


async def test_a_daemon_set_is_awaited_until_it_runs_on_every_node(work: Workloads) -> None:
    work.node.starts = False
    containers = [{"name": "main", "image": "registry.slipway.test/pause:1"}]
    pods = {
        "metadata": {"labels": {"app": "proxy"}},
        "spec": {"containers": containers, "nodeSelector": {"kubernetes.io/hostname": work.node.name}},
    }
    spec = {"selector": {"matchLabels": {"app": "proxy"}}, "template": pods}
    path = paths.namespaced("/apis/apps/v1", work.namespace, "daemonsets")
    await work.api.create(path, {"metadata": {"name": "proxy"}, "spec": spec})

    async def wanted_on_the_node() -> Observation:
        """Its controller may not know of so new a node yet."""
        status = (await work.api.get(f"{path}/proxy"))["status"]
        return Observation(status["desiredNumberScheduled"] == 1, str(status))

    await wait_for(wanted_on_the_node, "the node to be known", 30)
    with pytest.raises(StepError, match=r"waiting for daemon set \S+/proxy to be current"):
        await wait_for_daemon_set(work.api, work.namespace, "proxy", 3)
    work.node.starts = True
    await wait_for_daemon_set(work.api, work.namespace, "proxy", 30)
    assert len(await work.running()) == 1


async def test_a_daemon_set_that_is_not_there_is_not_awaited(work: Workloads) -> None:
    await wait_for_daemon_set(work.api, work.namespace, "none", 10)
