"""Why an object is not ready, in the cluster's own words, short enough for an error.

    text = await diagnose(api, [found, ...])

The pods that belong to it and what they wait for, how their containers ended, and the warnings among the events.
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway.kube.drain import gather_or_cancel
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectApi, Objects, ref_of, uid_of
from slipway.kube.owners import PODS, find_owned
from slipway.kube.paths import namespaced
from slipway.kube.readiness import Ready, readiness
from slipway.kube.waiting import describe_event, describe_pod, latest

MOST_OBJECTS = 3  # that are looked into
MOST_PODS = 3  # of each
EVENTS = 3  # of each object and pod
LONGEST = 2000  # characters
WITH_PODS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "Pod"})


async def diagnose(api: ObjectApi, unready: Sequence[Object]) -> str:
    """A sentence for each of the first few; empty when the cluster tells nothing more, or can't be asked."""
    told = await gather_or_cancel(_diagnosed(api, one) for one in unready[:MOST_OBJECTS])
    text = " ".join(sentence for sentence in told if sentence)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


async def _diagnosed(api: ObjectApi, found: Object) -> str:
    try:
        pods = await _unready_pods(api, found) if found.get("kind") in WITH_PODS else []
        about = [found, *(pod for pod in pods if uid_of(pod) != uid_of(found))]
        events = await gather_or_cancel(_warnings(api, one) for one in about)
    except KubeError:
        return ""
    parts = [*(describe_pod(pod) for pod in pods), *dict.fromkeys(event for some in events for event in some)]
    return f"{ref_of(found)}: {'; '.join(parts)}." if parts else ""


async def _unready_pods(api: ObjectApi, found: Object) -> Objects:
    owned = await find_owned(api, [found], PODS)
    pods = [pod for pods in owned.values() for pod in pods]
    return [pod for pod in pods if not isinstance(readiness(pod), Ready)][:MOST_PODS]


async def _warnings(api: ObjectApi, found: Object) -> list[str]:
    """Events of what has no namespace are in "default"."""
    metadata = found["metadata"]
    path = namespaced("/api/v1", metadata.get("namespace") or "default", "events")
    selector = f"involvedObject.uid={metadata['uid']},type=Warning"
    return [describe_event(event) for event in latest(await api.list(path, fieldSelector=selector), EVENTS)]
