"""What the API of every cluster must do for whoever applies, patches, deletes, lists, evicts."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from slipway.cluster.containerd_config import DEFAULT_REPOSITORY
from slipway.cluster.versions import version
from slipway.kube import paths
from slipway.kube.account import ACCOUNTS, BINDINGS, NAME, ensure_account, remove_account, request_token
from slipway.kube.drain import DrainPolicy, drain
from slipway.kube.errors import BUDGET, KubeError
from slipway.kube.interface import KubeApi, Object
from slipway.kube.nodes import cordon, find_node, uncordon
from slipway.kube.pods import condition
from slipway.kube.waiting import wait_for_deployment, wait_for_node_gone
from tests.contract.cluster_world import Check, Stage

MAPS = paths.namespaced("/api/v1", "default", "configmaps")
BUDGETS = paths.namespaced("/apis/policy/v1", "default", "poddisruptionbudgets")


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


async def answered(call: Awaitable[Any], status: int, reason: str, *words: str) -> KubeError:
    with pytest.raises(KubeError) as caught:
        await call
    assert (caught.value.status, caught.value.reason) == (status, reason), caught.value.detail
    for word in words:
        assert word in caught.value.detail, f"no {word!r} in: {caught.value.detail}"
    return caught.value


async def what_is_applied_twice_is_the_same(stage: Stage) -> None:
    async with stage.api() as api:
        first = await api.apply(config_map("one", a="1", b="2"))
        again = await api.apply(config_map("one", a="1", b="2"))
        assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        assert (await api.apply(config_map("one", a="1")))["data"] == {"a": "1"}
        await api.patch(f"{MAPS}/one", {"data": {"theirs": "3"}})
        changed = await api.apply(config_map("one", a="4"))
        assert changed["data"] == {"a": "4", "theirs": "3"}
        assert changed["metadata"]["uid"] == first["metadata"]["uid"]
        assert int(changed["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


async def patches_merge_and_know_old_versions(stage: Stage) -> None:
    async with stage.api() as api:
        old = (await api.get(f"{MAPS}/one"))["metadata"]["resourceVersion"]
        assert (await api.patch(f"{MAPS}/one", {"data": {"a": None, "b": "5"}}))["data"] == {"b": "5", "theirs": "3"}
        stale = {"metadata": {"resourceVersion": old}, "data": {"b": "6"}}
        await answered(api.patch(f"{MAPS}/one", stale), 409, "Conflict", "the object has been modified")
        operations = [{"op": "remove", "path": "/data/theirs"}, {"op": "add", "path": "/data/c", "value": "7"}]
        assert (await api.patch(f"{MAPS}/one", operations, "json"))["data"] == {"b": "5", "c": "7"}


async def what_can_not_be_is_told(stage: Stage) -> None:
    async with stage.api() as api:
        await answered(api.create(MAPS, config_map("one")), 409, "AlreadyExists", 'configmaps "one" already exists')
        await answered(api.get(f"{MAPS}/none"), 404, "NotFound", 'configmaps "none" not found')
        await answered(api.patch(f"{MAPS}/none", {}), 404, "NotFound", 'configmaps "none" not found')
        await answered(api.get("/apis/apps/v1/namespaces/default/deployments/none"), 404, "NotFound",
                       'deployments.apps "none" not found')  # fmt: skip
        await answered(api.create(MAPS, config_map("Not A Name")), 422, "Invalid", "metadata.name")
        lost = paths.namespaced("/api/v1", "nowhere", "configmaps")
        homeless = {**config_map("one"), "metadata": {"name": "one", "namespace": "nowhere"}}
        await answered(api.create(lost, homeless), 404, "NotFound", 'namespaces "nowhere" not found')
        unknown = "the server could not find the requested resource"
        await answered(api.get("/api/v1/namespaces/default/ships"), 404, "NotFound", unknown)
        await answered(api.get("/apis/sea.test/v1/ships"), 404, "", "404 page not found")
        ship = {"apiVersion": "sea.test/v1", "kind": "Ship", "metadata": {"name": "one"}}
        await answered(api.apply(ship), 404, "NotFound", "knows no Ship in sea.test/v1")


async def only_what_is_meant_is_deleted(stage: Stage) -> None:
    async with stage.api() as api:
        await api.delete(f"{MAPS}/none")
        await api.delete(f"{MAPS}/one", uid=str(uuid4()))
        seen = (await api.get(f"{MAPS}/one"))["metadata"]
        made = await api.patch(f"{MAPS}/one", {"metadata": {"labels": {"changed": "meanwhile"}}})
        late = api.delete(f"{MAPS}/one", uid=seen["uid"], version=seen["resourceVersion"])
        await answered(late, 409, "Conflict", "the ResourceVersion in the precondition")
        await api.delete(f"{MAPS}/one", uid=made["metadata"]["uid"], version=made["metadata"]["resourceVersion"])
        await answered(api.get(f"{MAPS}/one"), 404, "NotFound")


async def lists_are_selected_and_whole(stage: Stage) -> None:
    async with stage.api() as api:
        for number in range(7):
            labels = {"metadata": {"name": f"n{number}", "namespace": "default", "labels": {"odd": str(number % 2)}}}
            await api.create(MAPS, {**config_map(f"n{number}"), **labels})
        found = await api.list(MAPS, limit="3", labelSelector="odd=1")
        assert sorted(one["metadata"]["name"] for one in found) == ["n1", "n3", "n5"]
        (only,) = await api.list(MAPS, fieldSelector="metadata.name=n4")
        assert only["metadata"]["name"] == "n4"
        every = await api.list(MAPS, limit="2", labelSelector="odd")
        assert sorted(one["metadata"]["name"] for one in every) == [f"n{number}" for number in range(7)]
        first = await api.get(MAPS, limit="2")
        assert len(first["items"]) == 2
        assert first["metadata"]["continue"]
        assert first["kind"] == "ConfigMapList"
        for number in range(7):
            await api.delete(f"{MAPS}/n{number}")


async def a_secret_is_kept_in_base64(stage: Stage) -> None:
    async with stage.api() as api:
        place = paths.namespaced("/api/v1", "default", "secrets")
        metadata = {"name": "hidden", "namespace": "default"}
        await api.create(
            place, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"word": "open sesame"}}
        )
        found = await api.get(f"{place}/hidden")
        assert found["data"] == {"word": "b3BlbiBzZXNhbWU="}
        assert "stringData" not in found
        await api.delete(f"{place}/hidden")


async def an_account_is_granted_a_token(stage: Stage) -> None:
    async with stage.api() as api:
        await ensure_account(api)
        token = await request_token(api, timedelta(hours=1))
        assert len(token.value) > 20
        nobody = paths.namespaced("/api/v1", "kube-system", "serviceaccounts", "nobody")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
        await answered(api.create(f"{nobody}/token", request), 404, "NotFound", 'serviceaccounts "nobody" not found')
        short = {**request, "spec": {"expirationSeconds": 599}}
        words = ("spec.expirationSeconds", "may not specify a duration less than 10 minutes")
        await answered(api.create(f"{ACCOUNTS}/{NAME}/token", short), 422, "Invalid", *words)
        assert (await request_token(api, timedelta(hours=1))).value != token.value
        await remove_account(api)
        await answered(request_token(api, timedelta(hours=1)), 404, "NotFound", f'serviceaccounts "{NAME}" not found')
        await remove_account(api)
        await answered(api.get(f"{BINDINGS}/{NAME}"), 404, "NotFound")


async def a_budget_holds_a_pod_and_names_itself(stage: Stage) -> None:
    async with stage.api() as api:
        await api.apply(deployment(await pause(stage, api), 1))
        await wait_for_deployment(api, "default", "web", stage.patience)
        pod = (await pods(api))[0]
        assert pod["spec"]["nodeName"] == stage.worker.name
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        await api.apply({**budget, "metadata": {"name": "web-stays", "namespace": "default"}, "spec": spec})

        async def held() -> bool:
            error = await answered(evict(api, pod), 429, "TooManyRequests", "Cannot evict pod")
            cause = error.cause(BUDGET)
            assert error.temporary
            return cause is not None and "budget web-stays needs 1 healthy pods and has 1 currently" in cause.message

        await stage.until(held, "the budget names itself")
        await api.delete(f"{BUDGETS}/web-stays")


async def an_evicted_pod_goes_and_another_comes(stage: Stage) -> None:
    async with stage.api() as api:
        pod = (await pods(api))[0]
        another = {**pod, "metadata": {**pod["metadata"], "uid": str(uuid4())}}
        await answered(evict(api, another), 409, "Conflict")
        await evict(api, pod)

        async def replaced() -> bool:
            uids = [one["metadata"]["uid"] for one in await pods(api)]
            return len(uids) == 1 and uids != [pod["metadata"]["uid"]]

        await stage.until(replaced, "another pod in its place")
        await answered(evict(api, pod), 404, "NotFound")
        await wait_for_deployment(api, "default", "web", stage.patience)


async def a_cordoned_node_takes_no_pods_until_it_is_uncordoned(stage: Stage) -> None:
    async with stage.api() as api:
        assert await cordon(api, stage.worker.name)
        assert not await cordon(api, stage.worker.name)
        await drain(api, stage.worker.name, DrainPolicy(timeout=stage.patience), lambda said: None)

        async def waits() -> bool:
            (pod, *more) = await pods(api)
            placed = condition(pod, "PodScheduled")
            return not more and placed.get("reason") == "Unschedulable" and pod["status"]["phase"] == "Pending"

        await stage.until(waits, "the pod waits for a node")
        (pod,) = await pods(api)
        assert "0/2 nodes are available" in condition(pod, "PodScheduled")["message"]
        await uncordon(api, stage.worker.name)
        assert "unschedulable" not in ((await find_node(api, stage.worker.name)) or {})["spec"]
        await wait_for_deployment(api, "default", "web", stage.patience)


async def a_daemon_is_on_every_node(stage: Stage) -> None:
    async with stage.api() as api:
        for node in (stage.master, stage.worker):
            found = await api.list(paths.PODS, fieldSelector=f"spec.nodeName={node.name}")
            kinds = {owner["kind"] for pod in found for owner in pod["metadata"].get("ownerReferences", ()) if owner}
            assert "DaemonSet" in kinds
        flannel = await api.list(paths.pods("kube-flannel"))
        assert sorted(pod["spec"]["nodeName"] for pod in flannel) == sorted([stage.master.name, stage.worker.name])


async def a_node_that_is_deleted_takes_its_pods_along(stage: Stage) -> None:
    async with stage.api() as api:
        await api.delete(paths.node(stage.worker.name))
        await wait_for_node_gone(api, stage.worker.name, stage.patience)
        await api.delete(paths.node(stage.worker.name))

        async def empty() -> bool:
            return not await api.list(paths.PODS, fieldSelector=f"spec.nodeName={stage.worker.name}")

        await stage.until(empty, "no pods on a node that is not there")


async def evict(api: KubeApi, pod: Object) -> Object:
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod["metadata"]["uid"]}}
    request = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    return await api.create(paths.pod("default", metadata["name"], "eviction"), request)


async def pods(api: KubeApi) -> list[Object]:
    """Of the Deployment, without those that end."""
    found = await api.list(paths.pods("default"), labelSelector="app=web")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


async def pause(stage: Stage, api: KubeApi) -> str:
    running = version((await api.get("/version"))["gitVersion"])
    return f"{stage.cluster.image_repository or DEFAULT_REPOSITORY}/pause:{running.needs.pause}"


def deployment(image: str, replicas: int) -> Object:
    labels = {"app": "web"}
    pod = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": image}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


KUBE_CHECKS: tuple[Check, ...] = (
    what_is_applied_twice_is_the_same,
    patches_merge_and_know_old_versions,
    what_can_not_be_is_told,
    only_what_is_meant_is_deleted,
    lists_are_selected_and_whole,
    a_secret_is_kept_in_base64,
    an_account_is_granted_a_token,
    a_budget_holds_a_pod_and_names_itself,
    an_evicted_pod_goes_and_another_comes,
    a_cordoned_node_takes_no_pods_until_it_is_uncordoned,
    a_daemon_is_on_every_node,
    a_node_that_is_deleted_takes_its_pods_along,
)
