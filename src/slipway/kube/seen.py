"""What there is to see of an object, in a few words: its conditions, why its containers wait, its latest events."""

from __future__ import annotations

from typing import Any

from slipway.kube import paths
from slipway.kube.failure import short
from slipway.kube.pods import condition
from slipway.kube.seam import KubeApi, Object

EVENTS = 3


def told_conditions(found: Object, *kinds: str) -> str:
    told = []
    for kind in kinds:
        if one := condition(found, kind):
            why = ": ".join(part for part in (one.get("reason"), one.get("message")) if part)
            told.append(f"{kind} is {one.get('status')}" + (f" ({short(why)})" if why else ""))
    return ", ".join(told)


def told_pod(pod: Object) -> str:
    """Its phase, and what is the matter with it: not scheduled, or a container that waits or has ended."""
    status = pod.get("status") or {}
    told = [f"pod {pod['metadata']['name']} is {status.get('phase', 'unknown')}"]
    if condition(pod, "PodScheduled").get("status") == "False":
        told.append(told_conditions(pod, "PodScheduled"))
    for name in ("initContainerStatuses", "containerStatuses"):
        told += [_told_container(container) for container in status.get(name) or []]
    if status.get("reason"):
        told.append(short(f"{status['reason']} {status.get('message', '')}"))
    return ", ".join(part for part in told if part)


async def events_of(api: KubeApi, namespace: str, kind: str, name: str) -> list[str]:
    """The latest, oldest of them first. A node's events are in the namespace "default"."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    found = await api.list(paths.namespaced("/api/v1", namespace, "events"), fieldSelector=selector)
    latest = sorted(found, key=_when)[-EVENTS:]
    return [short(f"{event.get('reason', '')}: {event.get('message', '')}") for event in latest]


def _told_container(container: dict[str, Any]) -> str:
    state = container.get("state") or {}
    for name in ("waiting", "terminated"):
        if (found := state.get(name)) and found.get("reason") not in ("PodInitializing", "Completed"):
            why = ": ".join(part for part in (found.get("reason"), found.get("message")) if part)
            return f"container {container.get('name')} {name} ({short(why)})"
    return ""


def _when(event: Object) -> str:
    """RFC 3339 in UTC sorts as text."""
    return event.get("eventTime") or event.get("lastTimestamp") or event["metadata"].get("creationTimestamp") or ""
