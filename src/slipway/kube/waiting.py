"""Waiting for nodes, deployments, daemon sets and pods.

A timeout's error has the last condition in the cluster's own words: conditions, the reason a container waits, the
latest events; or that the API does not answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from slipway.kube import paths
from slipway.kube.errors import KubeError, short
from slipway.kube.interface import KubeApi, Object, Objects
from slipway.kube.nodes import find_node, kubelet_version, node_is_ready, unreachable_nodes
from slipway.kube.pods import condition
from slipway.model.errors import StepError
from slipway.waiting import Observation, wait_for

APPS = "/apis/apps/v1"
EVENTS = 3  # the latest, in an error


async def wait_for_node_ready(api: KubeApi, name: str, limit: float, version: str | None = None) -> None:
    """With `version` as v1.34.4: and its kubelet has that one."""

    async def look() -> Observation:
        node = await find_node(api, name)
        if node is None:
            return Observation(False, "no such node")
        if version and (has := kubelet_version(node)) != version:
            return Observation(False, f"its kubelet has {has or 'no version'}")
        return Observation(node_is_ready(node), describe_conditions(node, "Ready") or "no word from its kubelet")

    at = f" at {version}" if version else ""
    await _wait_with_events(api, look, f"node {name} to be Ready{at}", limit, "default", "Node", name)


async def wait_for_node_gone(api: KubeApi, name: str, limit: float) -> None:
    async def look() -> Observation:
        node = await find_node(api, name)
        finalizers = (node or {}).get("metadata", {}).get("finalizers") or []
        return Observation(
            node is None, "it is still there" + (f", held by {', '.join(finalizers)}" if finalizers else "")
        )

    await wait_for(look, f"node {name} to be gone", limit)


async def wait_for_deployment(api: KubeApi, namespace: str, name: str, limit: float) -> None:
    """The newest version of it, with all replicas."""
    path = paths.namespaced(APPS, namespace, "deployments", name)

    async def look() -> Observation:
        if (found := await _find(api, path)) is None:
            return Observation(False, "no such deployment")
        status, wanted = found.get("status") or {}, found["spec"].get("replicas", 1)
        current = status.get("observedGeneration", 0) >= found["metadata"].get("generation", 0)
        counts = [status.get(key, 0) for key in ("updatedReplicas", "availableReplicas", "replicas")]
        if current and counts == [wanted] * 3 and condition(found, "Available").get("status") == "True":
            return Observation(True, "")
        labels = found["spec"]["selector"].get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        pods = await api.list(paths.pods(namespace), labelSelector=selector)
        parts = [f"{counts[1]} of {wanted} available", describe_conditions(found, "Progressing", "ReplicaFailure")]
        parts += [describe_pod(pod) for pod in pods if condition(pod, "Ready").get("status") != "True"][:3]
        return Observation(False, "; ".join(part for part in parts if part))

    await _wait_with_events(
        api, look, f"deployment {namespace}/{name} to be available", limit, namespace, "Deployment", name
    )


async def wait_for_daemon_set(api: KubeApi, namespace: str, name: str, limit: float) -> None:
    """Its newest version on every node. One that is not there has nothing to bring, and on a dead node it never is."""
    path = paths.namespaced(APPS, namespace, "daemonsets", name)

    async def look() -> Observation:
        if (found := await _find(api, path)) is None:
            return Observation(True, "")
        status = found.get("status") or {}
        wanted = status.get("desiredNumberScheduled", 0)
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        updated, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
        if seen and updated == available == wanted:
            return Observation(True, "")
        counted = f"{updated} updated, {available} available of {wanted}"
        dead = await unreachable_nodes(api)
        described = (
            f"{counted}; {', '.join(dead)} not Ready, and no kubelet answers there: heal it first" if dead else counted
        )
        return Observation(False, described, hopeless=bool(dead))

    await _wait_with_events(
        api, look, f"daemon set {namespace}/{name} to be current", limit, namespace, "DaemonSet", name
    )


async def wait_for_pod(api: KubeApi, namespace: str, name: str, limit: float) -> None:
    """Running and ready; one that ran to a good end did as well."""

    async def look() -> Observation:
        if (pod := await _find(api, paths.pod(namespace, name))) is None:
            return Observation(False, "no such pod")
        phase = (pod.get("status") or {}).get("phase")
        ready = phase == "Running" and condition(pod, "Ready").get("status") == "True"
        return Observation(ready or phase == "Succeeded", describe_pod(pod), hopeless=phase == "Failed")

    await _wait_with_events(api, look, f"pod {namespace}/{name} to run", limit, namespace, "Pod", name)


async def _wait_with_events(
    api: KubeApi,
    look: Callable[[], Awaitable[Observation]],
    what: str,
    limit: float,
    namespace: str,
    kind: str,
    name: str,
) -> None:
    """As `wait_for`, with the latest events in the error. A KubeError is raised as it is: the API can't be asked."""
    try:
        await wait_for(look, what, limit)
    except KubeError:
        raise
    except StepError as error:
        try:
            events = await latest_events(api, namespace, kind, name)
        except KubeError:
            events = []
        described = f" Events: {'; '.join(short(event) for event in events)}." if events else ""
        raise StepError(error.detail + described, temporary=error.temporary) from None


async def _find(api: KubeApi, path: str) -> Object | None:
    try:
        return await api.get(path)
    except KubeError as error:
        if error.status == 404:
            return None
        raise


def describe_conditions(found: Object, *kinds: str) -> str:
    described = []
    for kind in kinds:
        if one := condition(found, kind):
            why = ": ".join(part for part in (one.get("reason"), one.get("message")) if part)
            described.append(f"{kind} is {one.get('status')}" + (f" ({short(why)})" if why else ""))
    return ", ".join(described)


def describe_pod(pod: Object) -> str:
    """Its phase, and what is the matter with it: not scheduled, or a container that waits or has ended."""
    status = pod.get("status") or {}
    described = [f"pod {pod['metadata']['name']} is {status.get('phase', 'unknown')}"]
    if condition(pod, "PodScheduled").get("status") == "False":
        described.append(describe_conditions(pod, "PodScheduled"))
    for name in ("initContainerStatuses", "containerStatuses"):
        described += [_describe_container(container) for container in status.get(name) or []]
    if status.get("reason"):
        described.append(short(f"{status['reason']} {status.get('message', '')}"))
    return ", ".join(part for part in described if part)


async def latest_events(api: KubeApi, namespace: str, kind: str, name: str) -> list[str]:
    """The latest, oldest of them first. A node's events are in the namespace "default"."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    found = await api.list(paths.namespaced("/api/v1", namespace, "events"), fieldSelector=selector)
    return [describe_event(event) for event in latest(found, EVENTS)]


def latest(events: Objects, most: int) -> Objects:
    return sorted(events, key=_timestamp)[-most:]


def describe_event(event: Object) -> str:
    return short(f"{event.get('reason', '')}: {event.get('message', '')}")


def _describe_container(container: dict[str, Any]) -> str:
    state = container.get("state") or {}
    for name in ("waiting", "terminated"):
        if (found := state.get(name)) and found.get("reason") not in ("PodInitializing", "Completed"):
            why = ": ".join(part for part in (found.get("reason"), found.get("message")) if part)
            return f"container {container.get('name')} {name} ({short(why)}){_describe_last_end(container)}"
    return ""


def _describe_last_end(container: dict[str, Any]) -> str:
    """How it ended the last time, which is what one that waits to be started again is about."""
    if not (ended := (container.get("lastState") or {}).get("terminated")):
        return ""
    why = ": ".join(str(part) for part in (ended.get("reason"), ended.get("message")) if part)
    return f", after it ended with exit code {ended.get('exitCode')}" + (f" ({short(why)})" if why else "")


def _timestamp(event: Object) -> str:
    """RFC 3339 in UTC sorts as text."""
    return event.get("eventTime") or event.get("lastTimestamp") or event["metadata"].get("creationTimestamp") or ""
