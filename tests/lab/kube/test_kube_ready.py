"""Readiness, owners and diagnosis on a real API server with real controllers."""

from __future__ import annotations

import asyncio

import pytest

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.apply import apply
from slipway.kube.deletion import Doomed, delete
from slipway.kube.interface import ObjectRef
from slipway.kube.owners import PODS, find_owned
from slipway.kube.ownership import Owner
from slipway.kube.readiness_rules import read_rules
from slipway.kube.wait_ready import wait_ready
from slipway.model.errors import StepError
from tests.lab.kube.custom_resources import definition, ship
from tests.lab.kube.fake_kubelet import FakeNode, fake_node
from tests.lab.kube.workloads import CONTAINERS, Workloads

pytestmark = pytest.mark.journey

US = Owner("instance-1", "operation-1")


@pytest.fixture
def work(api: Api, namespace: str, node: FakeNode) -> Workloads:
    return Workloads(api, namespace, node)


async def test_workloads_are_ready_when_their_pods_are_and_know_them_by_their_owners(work: Workloads) -> None:
    await work.daemon_set()
    await work.deployment(2)
    await work.pod("bare")
    refs = [
        ObjectRef("apps/v1", "Deployment", "web", work.namespace),
        ObjectRef("apps/v1", "DaemonSet", "daemon", work.namespace),
        ObjectRef("v1", "Pod", "bare", work.namespace),
        ObjectRef("v1", "Namespace", work.namespace),
    ]
    progress: list[str] = []
    found = await wait_ready(work.api, refs, (), 60, progress.append)
    assert list(found) == refs
    assert "managedFields" not in found[refs[0]]["metadata"]
    roots = [found[ref] for ref in refs[:3]]
    owned = await find_owned(work.api, roots, PODS)
    names = [[pod["metadata"]["name"] for pod in owned[root["metadata"]["uid"]]] for root in roots]
    assert [len(some) for some in names] == [2, 1, 1]
    assert names[2] == ["bare"]
    assert all("of 4 ready" in text for text in progress)


async def test_a_deployment_whose_image_is_not_there_says_so(api: Api, namespace: str) -> None:
    async with fake_node(api, tended=False) as node:
        work = Workloads(api, namespace, node)
        await work.deployment(1)
        waiting = asyncio.create_task(wait_ready(api, [ObjectRef("apps/v1", "Deployment", "web", namespace)], (), 8))
        await _pull_fails(work)
        with pytest.raises(StepError) as caught:
            await waiting
    detail = caught.value.detail
    assert caught.value.temporary
    assert f"waiting for Deployment {namespace}/web to be ready (last condition: 0 of 1 ready; " in detail
    assert "status.availableReplicas is not there, must be at least 1 (spec.replicas)" in detail
    assert "container main waiting (ImagePullBackOff: no such image), after it ended with exit code 3 (Error)" in detail
    assert "Failed: Failed to pull" in detail


async def _pull_fails(work: Workloads) -> None:
    """As a kubelet tells it."""
    ((name, uid),) = (await pods_of(work)).items()
    container = {"name": "main", "image": "any", "imageID": "", "ready": False, "restartCount": 1}
    state = {
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}},
    }
    path = paths.pod(work.namespace, name)
    await work.api.patch(f"{path}/status", {"status": {"containerStatuses": [{**container, **state}]}})
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "pull", "namespace": work.namespace},
        "involvedObject": {"kind": "Pod", "name": name, "namespace": work.namespace, "uid": uid},
        "type": "Warning",
        "reason": "Failed",
        "message": "Failed to pull image",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    await work.api.create(paths.namespaced("/api/v1", work.namespace, "events"), event)


async def test_pods_that_no_node_takes_say_why(api: Api, namespace: str) -> None:
    work = Workloads(api, namespace, FakeNode(api, "nowhere"))
    await work.deployment(1)
    with pytest.raises(StepError, match=r"PodScheduled is False \(Unschedulable: ") as caught:
        await wait_ready(api, [ObjectRef("apps/v1", "Deployment", "web", namespace)], (), 5)
    assert "FailedScheduling" in caught.value.detail


async def test_a_job_that_failed_ends_the_waiting(api: Api, namespace: str) -> None:
    async with fake_node(api, tended=False) as node:
        template = {"spec": {"containers": CONTAINERS, "restartPolicy": "Never", "nodeName": node.name}}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "once", "namespace": namespace},
            "spec": {"backoffLimit": 0, "template": template},
        }
        applied = await apply(api, job, US)
        waiting = asyncio.create_task(wait_ready(api, [applied.ref], (), 60))
        pod = next(iter(await pods_of(Workloads(api, namespace, node))))
        status = {"phase": "Failed", "startTime": "2026-01-01T00:00:00Z"}
        await api.patch(f"{paths.pod(namespace, pod)}/status", {"status": status})
        with pytest.raises(StepError, match=r"Failed is True \(BackoffLimitExceeded") as caught:
            await waiting
    assert not caught.value.temporary


async def pods_of(work: Workloads) -> dict[str, str]:
    """Names and uids, as soon as a controller has made some."""
    async with asyncio.timeout(30):
        while not (pods := await work.running()):  # noqa: ASYNC110 - a look at the cluster
            await asyncio.sleep(0.1)
    return pods


async def test_a_custom_resource_is_ready_by_its_conditions_or_by_a_rule_of_the_package(
    api: Api, namespace: str
) -> None:
    group = f"{namespace}.sea.test"
    defined = await apply(api, definition(group), US)
    await wait_ready(api, [defined.ref], (), 30)
    rules = read_rules(
        [{
            "apiVersion": f"{group}/v1", "kind": "Ship",
            "ready": [{"field": {"path": "status.replicas", "equals_field": "spec.replicas"}}],
            "failed": [{"condition": {"type": "Sunk"}}],
        }],
        "readiness.yaml",
    )  # fmt: skip
    applied = await apply(api, ship(group, namespace, replicas=3), US)
    path = (await api.discovery.resource(f"{group}/v1", "Ship")).path(namespace, "one")
    waiting = asyncio.create_task(wait_ready(api, [applied.ref], rules, 30))
    await api.patch(f"{path}/status", {"status": {"replicas": 3}})
    await waiting
    await api.patch(f"{path}/status", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    with pytest.raises(StepError, match="Ready is False"):
        await wait_ready(api, [applied.ref], (), 0.5)
    await api.patch(f"{path}/status", {"status": {"conditions": [{"type": "Sunk", "status": "True"}]}})
    with pytest.raises(StepError, match=r"stopped waiting for Ship .*: Sunk is True"):
        await wait_ready(api, [applied.ref], rules, 30)
    await delete(api, Doomed(defined.ref))


async def test_what_is_not_there_is_told_as_such(api: Api, namespace: str) -> None:
    with pytest.raises(StepError, match=rf"ConfigMap {namespace}/none: it is not there"):
        await wait_ready(api, [ObjectRef("v1", "ConfigMap", "none", namespace)], (), 0.5)
