"""What does not go is named, with what holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from slipway.kube.deletion import Doomed, wait_gone
from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectRef
from slipway.model.errors import StepError

WHY = "Some resources are remaining: leaves.example.com has 1 resource instances"
CONDITIONS = [
    {
        "type": "NamespaceDeletionDiscoveryFailure",
        "status": "False",
        "message": "All resources successfully discovered",
    },
    {"type": "NamespaceContentRemaining", "status": "True", "reason": "SomeResourcesRemain", "message": WHY},
]


class Cluster:
    """A namespace in it does not go."""

    def __init__(self, refuses: int | None = None) -> None:
        self.refuses = refuses
        self.discovery = self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, "namespaces", namespaced=False)

    async def get(self, path: str, *, metadata_only: bool = False, **query: str) -> Object:
        metadata = {"name": "edge", "uid": "uid-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}
        if "limit" in query:
            return {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": metadata}]}
        if self.refuses:
            raise KubeError("no", status=self.refuses)
        return {"metadata": metadata, "status": {"phase": "Terminating", "conditions": CONDITIONS}}

    async def watch(self, path: str, **query: Any) -> AsyncGenerator[Object, None]:
        await asyncio.sleep(60)
        yield {}


async def hangs(cluster: Cluster) -> str:
    with pytest.raises(StepError) as raised:
        await wait_gone(cast(Any, cluster), [Doomed(ObjectRef("v1", "Namespace", "edge"), "uid-1")], 0.3)
    return raised.value.detail


async def test_a_namespace_that_does_not_go_says_what_is_left_in_it() -> None:
    """It has no finalizers of its own: those of what people have put into it hold it."""
    detail = await hangs(Cluster())
    assert "Namespace edge (being deleted since 2026-01-01T00:00:00Z)" in detail
    assert detail.endswith(f"Namespace edge: NamespaceContentRemaining is True (SomeResourcesRemain: {WHY}).")
    assert "DiscoveryFailure" not in detail


@pytest.mark.parametrize("status", [403, 404])
async def test_where_that_can_not_be_seen_it_is_named_alone(status: int) -> None:
    assert "Namespace edge (being deleted since" in await hangs(Cluster(status))
