"""Waiting for a cluster to become what it was asked to be: looked at ever less often, and never without an end.

When the time is over the error tells what was seen last, in the cluster's own words: conditions, the reason a
container waits, the latest events. While the API itself does not answer, that is what was seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from slipway.kube import paths
from slipway.kube.failure import KubeError, short
from slipway.kube.nodes import find_node, kubelet_version, node_is_ready, silent_nodes
from slipway.kube.pods import condition
from slipway.kube.seam import KubeApi, Object
from slipway.kube.seen import events_of, told_conditions, told_pod
from slipway.model.errors import StepError

SHORT, LONG = 0.2, 3.0  # seconds between two looks: at first, and at last
APPS = "/apis/apps/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Look:
    """What one look found. `done` ends the wait; `hopeless` too, with an error."""

    done: bool
    seen: str
    hopeless: bool = False


async def until(look: Callable[[], Awaitable[Look]], what: str, limit: float) -> None:
    """`what` is what is waited for: "node worker-1 is Ready"."""
    now = asyncio.get_running_loop().time
    end, pause, last = now() + limit, SHORT, Look(False, "nothing yet")
    while True:
        try:
            last = await look()
        except KubeError as error:
            if not error.temporary:
                raise
            last = Look(False, error.detail)
        if last.done:
            return
        if last.hopeless:
            raise StepError(f"It can't be that {what} any more. Seen: {last.seen}.")
        if now() >= end:
            seen = last.seen.rstrip(".")
            raise StepError(f"Waited {limit:g} s in vain until {what}. Last seen: {seen}.", temporary=True)
        await asyncio.sleep(min(pause, max(0.0, end - now())))
        pause = min(pause * 1.3, LONG)


async def node_ready(api: KubeApi, name: str, limit: float, version: str | None = None) -> None:
    """With `version` as v1.34.4: and its kubelet has that one."""

    async def look() -> Look:
        node = await find_node(api, name)
        if node is None:
            return Look(False, "no such node")
        if version and (has := kubelet_version(node)) != version:
            return Look(False, f"its kubelet has {has or 'no version'}")
        return Look(node_is_ready(node), told_conditions(node, "Ready") or "no word from its kubelet")

    at = f" at {version}" if version else ""
    await _explained(api, look, f"node {name} is Ready{at}", limit, "default", "Node", name)


async def node_gone(api: KubeApi, name: str, limit: float) -> None:
    async def look() -> Look:
        node = await find_node(api, name)
        finalizers = (node or {}).get("metadata", {}).get("finalizers") or []
        return Look(node is None, "it is still there" + (f", held by {', '.join(finalizers)}" if finalizers else ""))

    await until(look, f"node {name} is gone", limit)


async def deployment_available(api: KubeApi, namespace: str, name: str, limit: float) -> None:
    """The newest version of it, with all replicas."""
    path = paths.namespaced(APPS, namespace, "deployments", name)

    async def look() -> Look:
        if (found := await _find(api, path)) is None:
            return Look(False, "no such deployment")
        status, wanted = found.get("status") or {}, found["spec"].get("replicas", 1)
        current = status.get("observedGeneration", 0) >= found["metadata"].get("generation", 0)
        counts = [status.get(key, 0) for key in ("updatedReplicas", "availableReplicas", "replicas")]
        if current and counts == [wanted] * 3 and condition(found, "Available").get("status") == "True":
            return Look(True, "")
        labels = found["spec"]["selector"].get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        pods = await api.list(paths.pods(namespace), labelSelector=selector)
        parts = [f"{counts[1]} of {wanted} available", told_conditions(found, "Progressing", "ReplicaFailure")]
        parts += [told_pod(pod) for pod in pods if condition(pod, "Ready").get("status") != "True"][:3]
        return Look(False, "; ".join(part for part in parts if part))

    await _explained(api, look, f"deployment {namespace}/{name} is available", limit, namespace, "Deployment", name)


async def daemon_set_current(api: KubeApi, namespace: str, name: str, limit: float) -> None:
    """Its newest version on every node. One that is not there has nothing to bring, and on a dead node it never is."""
    path = paths.namespaced(APPS, namespace, "daemonsets", name)

    async def look() -> Look:
        if (found := await _find(api, path)) is None:
            return Look(True, "")
        status = found.get("status") or {}
        wanted = status.get("desiredNumberScheduled", 0)
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        updated, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
        if seen and updated == available == wanted:
            return Look(True, "")
        counted = f"{updated} updated, {available} available of {wanted}"
        dead = await silent_nodes(api)
        told = (
            f"{counted}; {', '.join(dead)} not Ready, and no kubelet answers there: heal it first" if dead else counted
        )
        return Look(False, told, hopeless=bool(dead))

    await _explained(api, look, f"daemon set {namespace}/{name} is current", limit, namespace, "DaemonSet", name)


async def pod_running(api: KubeApi, namespace: str, name: str, limit: float) -> None:
    """Running and ready; one that ran to a good end did as well."""

    async def look() -> Look:
        if (pod := await _find(api, paths.pod(namespace, name))) is None:
            return Look(False, "no such pod")
        phase = (pod.get("status") or {}).get("phase")
        ready = phase == "Running" and condition(pod, "Ready").get("status") == "True"
        return Look(ready or phase == "Succeeded", told_pod(pod), hopeless=phase == "Failed")

    await _explained(api, look, f"pod {namespace}/{name} runs", limit, namespace, "Pod", name)


async def definition_established(api: KubeApi, name: str, limit: float) -> None:
    """A CustomResourceDefinition: from then on its kind can be applied."""

    async def look() -> Look:
        if (found := await _find(api, f"{DEFINITIONS}/{paths.segment(name)}")) is None:
            return Look(False, "no such definition")
        established = condition(found, "Established").get("status") == "True"
        return Look(established, told_conditions(found, "NamesAccepted", "Established") or "no conditions")

    await until(look, f"custom resource definition {name} is established", limit)


async def _explained(
    api: KubeApi, look: Callable[[], Awaitable[Look]], what: str, limit: float, namespace: str, kind: str, name: str
) -> None:
    """As `until`, with the latest events in the error. One that can't be asked for them any more is raised as it is."""
    try:
        await until(look, what, limit)
    except KubeError:
        raise
    except StepError as error:
        try:
            events = await events_of(api, namespace, kind, name)
        except KubeError:
            events = []
        told = f" Events: {'; '.join(short(event) for event in events)}." if events else ""
        raise StepError(error.detail + told, temporary=error.temporary) from None


async def _find(api: KubeApi, path: str) -> Object | None:
    try:
        return await api.get(path)
    except KubeError as error:
        if error.status == 404:
            return None
        raise
