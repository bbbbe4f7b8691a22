"""Jobs that go by themselves once they have ended (`ttlSecondsAfterFinished`): nobody waits for one that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectRef, Objects
from slipway.kube.wait_ready import wait_ready
from slipway.model.errors import StepError
from slipway.model.machine import Found, FoundObject
from slipway.vim.kubernetes.drift import drift

REF = ObjectRef("batch/v1", "Job", "prepare", "default")
COMPLETED = {"reason": "Completed", "type": "Normal", "lastTimestamp": "2026-01-01T00:00:02Z"}
FAILED = {"reason": "BackoffLimitExceeded", "type": "Warning", "message": "no more", "metadata": {}}


def job(condition: str | None, **metadata: Any) -> Object:
    conditions = [{"type": condition, "status": "True"}] if condition else []
    return {"metadata": {"name": "prepare", "namespace": "default", **metadata}, "status": {"conditions": conditions}}


class Cluster:
    """Has one Job, or none, and tells what happens to it and what was noted of it."""

    def __init__(self, there: Object | None, *happens: tuple[str, Object], events: Objects | None = None) -> None:
        self.there, self.happens, self.events = there, list(happens), events
        self.discovery = self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=True)

    async def get(self, path: str, **query: Any) -> Object:
        if "limit" in query:
            return {"metadata": {"resourceVersion": "1"}, "items": [self.there] if self.there else []}
        if self.there is None:
            raise KubeError("no", status=404)
        return self.there

    async def list(self, path: str, **query: Any) -> Objects:
        if not path.endswith("/events"):
            return []
        if self.events is None:
            raise KubeError("not for you", status=403)
        return self.events

    async def watch(self, path: str, **query: Any) -> AsyncGenerator[Object, None]:
        for kind, found in self.happens:
            yield {"type": kind, "object": found}
        await asyncio.sleep(60)


async def wait(cluster: Cluster, *, expiring: bool = True) -> dict[ObjectRef, Object]:
    return await wait_ready(cast(Any, cluster), [REF], (), 1.0, expiring=[REF] if expiring else [])


@pytest.mark.parametrize(
    "cluster",
    [
        Cluster(job(None), ("MODIFIED", job("Complete")), ("DELETED", job("Complete"))),
        Cluster(None, events=[COMPLETED]),
        Cluster(None, events=[{**FAILED, "lastTimestamp": "2026-01-01T00:00:01Z"}, COMPLETED]),
        Cluster(None, events=[]),  # they are kept for an hour
        Cluster(None, events=None),
        Cluster(job("Complete", deletionTimestamp="now"), ("DELETED", job("Complete")), events=[COMPLETED]),
    ],
)
async def test_one_that_has_ended_well_and_is_gone_is_not_waited_for(cluster: Cluster) -> None:
    assert await wait(cluster) == {}


@pytest.mark.parametrize(
    "cluster",
    [
        Cluster(job(None), ("MODIFIED", job("Failed")), ("DELETED", job("Failed"))),
        Cluster(None, events=[COMPLETED, {**FAILED, "lastTimestamp": "2026-01-01T00:00:03Z"}]),
    ],
)
async def test_one_that_failed_before_it_went_is_told(cluster: Cluster) -> None:
    with pytest.raises(StepError, match=r"stopped waiting for .*Job default/prepare: (Failed is True|.*no more)"):
        await wait(cluster)


async def test_one_that_somebody_else_removed_is_waited_for() -> None:
    with pytest.raises(StepError, match="it is not there"):
        await wait(Cluster(None, events=[COMPLETED]), expiring=False)
    with pytest.raises(StepError, match="it is not there"):
        await wait(Cluster(job(None), ("DELETED", job(None)), events=[]))


@pytest.mark.parametrize(("expires", "told"), [(True, ()), (False, ("Job default/prepare is gone.",))])
async def test_that_it_is_gone_is_no_drift(expires: bool, told: tuple[str, ...]) -> None:
    one = FoundObject(
        id="Job.batch/prepare", kind="Job", name="prepare", namespace="default", api_version="batch/v1",
        expires=expires,
    )  # fmt: skip
    assert await drift(cast(Any, Cluster(None)), "instance", Found(objects=(one,))) == told
