"""Emptying a node: its pods are asked to leave, at once, as far as their disruption budgets let them.

    await drain(api, "worker-2", Policy(timeout=600), say)

Done again after a crash at any point, it goes on: what has left is not there, what was evicted is terminating.

**A node that is not Ready is dead to a drain.** Nothing on it would end, and nothing on it can be saved. So it is
cordoned, every pod is evicted once so that others take over elsewhere, and nothing is waited for, refused or forced.
What a budget holds is left where it is; the cluster removes it with the Node object. A node that stops to be Ready
while it is drained is dead from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from slipway.kube import paths
from slipway.kube.eviction import Eviction, evict
from slipway.kube.nodes import cordon, find_node, node_is_ready, uncordon
from slipway.kube.pods import Pod, Sorted, names, sort
from slipway.kube.seam import KubeApi, Objects, Say
from slipway.kube.together import together
from slipway.model.errors import StepError

__all__ = ["Policy", "cordon", "drain", "node_is_ready", "uncordon"]

SHORT, LONG = 0.5, 5.0  # seconds between two looks: at first and after progress, and at last
FORCED_GRACE = 30  # seconds at most that a pod has to end when the time is over and force removes it
LAST_LOOK = 15.0  # seconds beyond that for the kubelet to say so


@dataclass(frozen=True)
class Policy:
    timeout: float = 600.0  # seconds, for all pods of the node together
    empty_dir: Literal["delete", "refuse"] = "delete"
    force: bool = False  # pods that nobody would bring back go too, and, when the time is over, those a budget holds


async def drain(api: KubeApi, node: str, policy: Policy, say: Say, *, dead: bool = False) -> None:
    """A node without pods but its DaemonSets' and its static ones. One that is not there is as empty as can be.

    `dead`: the caller knows more than the cluster, which takes most of a minute to miss a node.
    """
    found = await find_node(api, node)
    if found is None:
        return
    await cordon(api, node)
    if dead or not node_is_ready(found):
        await _leave_dead(api, node, sort(await _pods_on(api, node)), say)
        return
    end = asyncio.get_running_loop().time() + policy.timeout
    for _ in range(2):  # the second time for pods that were on their way here when the node was cordoned
        pods = sort(await _pods_on(api, node))
        if not pods.leaving:
            return
        _check(node, pods, policy)
        say(f"{node}: evicting {_count(pods.leaving)}")
        await _empty(api, node, pods.leaving, policy, end, say)


def _check(node: str, pods: Sorted, policy: Policy) -> None:
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


async def _leave_dead(api: KubeApi, node: str, pods: Sorted, say: Say) -> None:
    asked = [pod for pod in pods.leaving if not pod.terminating]
    say(f"{node} does not answer: {_count(asked)} evicted without waiting for the end")
    evictions = await together(evict(api, pod) for pod in asked)
    if held := [eviction for eviction in evictions if eviction.held]:
        say(f"{node}: left to the cluster: {names(held, '; ')}")


async def _empty(api: KubeApi, node: str, leaving: tuple[Pod, ...], policy: Policy, end: float, say: Say) -> None:
    """Rounds: ask all that were not let go yet, look who is left, wait a little longer when nothing moved."""
    now = asyncio.get_running_loop().time
    pause, told = SHORT, len(leaving)
    left, held = await _round(api, node, leaving, [pod for pod in leaving if not pod.terminating])
    while left and now() < end:
        await asyncio.sleep(min(pause, max(0.0, end - now())))
        before = (len(left), len(held))
        left, held = await _round(api, node, left, [eviction.pod for eviction in held])
        if left and not await _still_ready(api, node):
            say(f"{node} is no longer ready: {_count(left)} left to the cluster")
            return
        pause = SHORT if (len(left), len(held)) != before else min(pause * 1.5, LONG)
        if len(left) <= told // 2:  # a few words, not one for each pod
            told = len(left)
            say(f"{node}: {_count(left)} left")
    if left and policy.force and held:
        say(f"{node}: the time is over, {names([eviction.pod for eviction in held])} deleted")
        left = await _delete(api, node, left, [eviction.pod for eviction in held])
        held = []
    if left:
        raise _not_empty(node, left, held, policy)


async def _still_ready(api: KubeApi, node: str) -> bool:
    """A node that lost its power a moment ago looks ready until the cluster has missed it for a while."""
    found = await find_node(api, node)
    return found is not None and node_is_ready(found)


async def _round(
    api: KubeApi, node: str, left: Iterable[Pod], asked: list[Pod]
) -> tuple[tuple[Pod, ...], list[Eviction]]:
    """Who is left of all, and who of those was held."""
    evictions = await together(evict(api, pod) for pod in asked)
    left = await _still_there(api, node, left)
    there = set(left)
    return left, [eviction for eviction in evictions if eviction.held and eviction.pod in there]


async def _delete(api: KubeApi, node: str, left: tuple[Pod, ...], held: list[Pod]) -> tuple[Pod, ...]:
    """Past their budgets, not past their own time to end, as far as that is short."""

    async def delete(pod: Pod) -> None:
        grace = min(int(pod.grace), FORCED_GRACE)
        await api.delete(paths.pod(pod.namespace, pod.name), uid=pod.uid, grace=grace)

    await together(delete(pod) for pod in held)
    now = asyncio.get_running_loop().time
    end = now() + min(max(pod.grace for pod in held), FORCED_GRACE) + LAST_LOOK
    while (left := await _still_there(api, node, left)) and now() < end:  # noqa: ASYNC110 - their kubelet ends them
        await asyncio.sleep(SHORT)
    return left


async def _pods_on(api: KubeApi, node: str) -> Objects:
    return await api.list(paths.PODS, fieldSelector=f"spec.nodeName={node}")


async def _still_there(api: KubeApi, node: str, pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """One look for all. A pod of the same name that came after it is another one."""
    there = {pod["metadata"]["uid"] for pod in await _pods_on(api, node)}
    return tuple(pod for pod in pods if pod.uid in there)


def _not_empty(node: str, left: tuple[Pod, ...], held: list[Eviction], policy: Policy) -> StepError:
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
        f"Node {node} still has {_count(left)} after {policy.timeout:g} s: {'; '.join(parts)}.",
        cure="; ".join(cures) + ".",
    )


def _count(pods: Iterable[Pod]) -> str:
    number = len(list(pods))
    return f"{number} pod" if number == 1 else f"{number} pods"
