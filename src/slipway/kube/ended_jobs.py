"""How a Job ended that is gone by itself (`ttlSecondsAfterFinished`): its events outlive it, for an hour mostly."""

from __future__ import annotations

from slipway.kube import paths
from slipway.kube.errors import KubeError
from slipway.kube.interface import ObjectApi, ObjectRef
from slipway.kube.readiness import Failed, Readiness, Ready
from slipway.kube.waiting import describe_event, latest

COMPLETED = "Completed"


async def how_it_ended(api: ObjectApi, ref: ObjectRef) -> Readiness | None:
    """None while it is there and stays. One of which nobody tells anything bad has ended well."""
    resource = await api.discovery.resource(ref.api_version, ref.kind)
    try:
        there = await api.get(resource.path(ref.namespace, ref.name), metadata_only=True)
    except KubeError as error:
        if error.status != 404:
            raise
    else:
        if "deletionTimestamp" not in there["metadata"]:
            return None
    path = paths.namespaced("/api/v1", ref.namespace or "default", "events")
    selector = f"involvedObject.kind={ref.kind},involvedObject.name={ref.name}"
    try:
        events = await api.list(path, fieldSelector=selector)
    except KubeError as error:
        if error.status != 403:  # not for this user to see
            raise
        return Ready()
    telling = [one for one in events if one.get("type") == "Warning" or one.get("reason") == COMPLETED]
    for one in latest(telling, 1):
        if one.get("reason") != COMPLETED:
            return Failed(f"it is gone, and had not ended well ({describe_event(one)})")
    return Ready()
