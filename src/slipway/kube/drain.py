"""Draining a node: its pods are evicted, all at once, as far as their disruption budgets allow.

    await drain(api, "worker-2", DrainPolicy(timeout=600), report)

Done again after a crash at any point, it goes on: what has left is not there, what was evicted is terminating.

**A node that is not Ready is dead to a drain.** Nothing on it would end, and nothing on it can be saved. So it is
cordoned, every pod is evicted once so that others take over elsewhere, and nothing is waited for, refused or forced.
What a budget holds is left where it is; the cluster removes it with the Node object. A node that stops to be Ready
while it is drained is dead from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from slipway.kube import paths
from slipway.kube.errors import BUDGET, TERMINATING, KubeError
from slipway.kube.interface import KubeApi, Object, Objects, ReportProgress, uid_of
from slipway.kube.nodes import cordon, find_node, node_is_ready
from slipway.kube.pods import Pod, PodsOfNode, names, sort_pods
from slipway.model.errors import StepError
from slipway.waiting import Backoff

T = TypeVar("T")
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0  # seconds between two looks: at first and after progress, and at last
FORCED_GRACE = 30  # seconds at most that a pod has to end when the time is over and force removes it
LAST_LOOK = 15.0  # seconds beyond that for the kubelet to say so


@dataclass(frozen=True)
class DrainPolicy:
    timeout: float = 600.0  # seconds, for all pods of the node together
    empty_dir: Literal["delete", "refuse"] = "delete"
    force: bool = False  # pods without a controller go too, and, when the time is over, those a budget holds


async def drain(api: KubeApi, node: str, policy: DrainPolicy, report: ReportProgress, *, dead: bool = False) -> None:
    """Evict all pods but those of DaemonSets and static ones. A node that is not there has none.

    `dead`: the caller knows more than the cluster, which takes most of a minute to miss a node.
    """
    found = await find_node(api, node)
    if found is None:
        return
    await cordon(api, node)
    if dead or not node_is_ready(found):
        await _evict_without_waiting(api, node, sort_pods(await _pods_on(api, node)), report)
        return
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, timeout=policy.timeout)
    for _ in range(2):  # the second time for pods that were on their way here when the node was cordoned
        pods = sort_pods(await _pods_on(api, node))
        if not pods.leaving:
            return
        _check(node, pods, policy)
        report(f"{node}: evicting {_count(pods.leaving)}")
        backoff.reset()
        await _evict_all(api, node, pods.leaving, policy, backoff, report)


def _check(node: str, pods: PodsOfNode, policy: DrainPolicy) -> None:
    """Before anything is evicted."""
    if policy.empty_dir == "refuse" and pods.with_empty_dir:
        raise StepError(
            f"Node {node} is not drained: {names(pods.with_empty_dir)} would lose what is in emptyDir volumes.",
            cure="save it and delete the pods, or set drain.empty_dir to delete.",
        )
    if not policy.force and pods.without_controller:
        raise StepError(
            f"Node {node} is not drained: nothing would bring back {names(pods.without_controller)}.",
            cure="delete the pods, give them a controller such as a Deployment, or set drain.force.",
        )


async def _evict_without_waiting(api: KubeApi, node: str, pods: PodsOfNode, report: ReportProgress) -> None:
    asked = [pod for pod in pods.leaving if not pod.terminating]
    report(f"{node} does not answer: {_count(asked)} evicted without waiting for the end")
    evictions = await gather_or_cancel(evict(api, pod) for pod in asked)
    if held := [eviction for eviction in evictions if eviction.held]:
        report(f"{node}: left to the cluster: {names(held, '; ')}")


async def _evict_all(
    api: KubeApi, node: str, leaving: tuple[Pod, ...], policy: DrainPolicy, backoff: Backoff, report: ReportProgress
) -> None:
    """Rounds: ask all that were not let go yet, look who is left, wait a little longer when nothing moved."""
    reported = len(leaving)
    left, held = await _evict_once(api, node, leaving, [pod for pod in leaving if not pod.terminating])
    while left and await backoff.pause():
        before = (len(left), len(held))
        left, held = await _evict_once(api, node, left, [eviction.pod for eviction in held])
        if left and not await _still_ready(api, node):
            report(f"{node} is no longer ready: {_count(left)} left to the cluster")
            return
        if (len(left), len(held)) != before:
            backoff.reset()
        if len(left) <= reported // 2:  # a few words, not one for each pod
            reported = len(left)
            report(f"{node}: {_count(left)} left")
    if left and policy.force and held:
        report(f"{node}: the time is over, {names([eviction.pod for eviction in held])} deleted")
        left = await _force_delete(api, node, left, [eviction.pod for eviction in held])
        held = []
    if left:
        raise _timeout_error(node, left, held, policy)


async def _still_ready(api: KubeApi, node: str) -> bool:
    """A node that lost its power a moment ago looks ready until the cluster has missed it for a while."""
    found = await find_node(api, node)
    return found is not None and node_is_ready(found)


async def _evict_once(
    api: KubeApi, node: str, left: Iterable[Pod], asked: list[Pod]
) -> tuple[tuple[Pod, ...], list[Eviction]]:
    """Who is left of all, and who of those was held."""
    evictions = await gather_or_cancel(evict(api, pod) for pod in asked)
    left = await _still_there(api, node, left)
    there = set(left)
    return left, [eviction for eviction in evictions if eviction.held and eviction.pod in there]


async def _force_delete(api: KubeApi, node: str, left: tuple[Pod, ...], held: list[Pod]) -> tuple[Pod, ...]:
    """Past their budgets, not past their own time to end, as far as that is short."""

    async def delete(pod: Pod) -> None:
        grace = min(int(pod.grace), FORCED_GRACE)
        await api.delete(paths.pod(pod.namespace, pod.name), uid=pod.uid, grace=grace)

    await gather_or_cancel(delete(pod) for pod in held)
    grace = min(max(pod.grace for pod in held), FORCED_GRACE)
    backoff = Backoff(FIRST_PAUSE, FIRST_PAUSE, timeout=grace + LAST_LOOK)
    while (left := await _still_there(api, node, left)) and await backoff.pause():
        pass
    return left


async def _pods_on(api: KubeApi, node: str) -> Objects:
    return await api.list(paths.PODS, fieldSelector=f"spec.nodeName={node}")


async def _still_there(api: KubeApi, node: str, pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """One look for all. A pod of the same name that came after it is another one."""
    there = {uid_of(pod) for pod in await _pods_on(api, node)}
    return tuple(pod for pod in pods if pod.uid in there)


def _timeout_error(node: str, left: tuple[Pod, ...], held: list[Eviction], policy: DrainPolicy) -> StepError:
    asked = {eviction.pod for eviction in held}
    ending = [pod for pod in left if pod not in asked]
    parts, cures = [], []
    if held:
        parts.append(names(held, "; "))
        cures.append("give the budget room (more replicas that are ready elsewhere), or set drain.force")
    if ending:
        parts.append(f"not ended yet: {names(ending)}")
        cures.append("see what keeps the pods that do not end (a finalizer, a volume), or raise drain.timeout")
    return StepError(
        f"timed out after {policy.timeout:g} s draining node {node} ({_count(left)} left: {'; '.join(parts)}).",
        cure="; ".join(cures) + ".",
    )


def _count(pods: Iterable[Pod]) -> str:
    number = len(list(pods))
    return f"{number} pod" if number == 1 else f"{number} pods"


@dataclass(frozen=True)
class Eviction:
    pod: Pod
    held: str = ""  # why it was not let go; empty: it was, or is gone

    def __str__(self) -> str:
        return f"{self.pod} is held: {self.held}" if self.held else str(self.pod)


async def evict(api: KubeApi, pod: Pod) -> Eviction:
    try:
        await api.create(paths.pod(pod.namespace, pod.name, "eviction"), _eviction_request(pod))
    except KubeError as error:
        if error.status == 404 or (error.status == 403 and error.cause(TERMINATING)):
            return Eviction(pod)  # gone; or its namespace goes, and it with it
        # 429 is a budget, or a server with too much to do; 500 is what a pod of two budgets gets; 409 says that it
        # was changed meanwhile, or that another one has its name by now.
        if error.status == 409 or (error.status is not None and error.temporary):
            budget = error.cause(BUDGET)
            return Eviction(pod, held=budget.message if budget else error.detail.rstrip("."))
        raise
    return Eviction(pod)


def _eviction_request(pod: Pod) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": pod.namespace, "name": pod.name},
        "deleteOptions": {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}},
    }


async def gather_or_cancel(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results; the first call that fails cancels the others, and its error is raised."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
