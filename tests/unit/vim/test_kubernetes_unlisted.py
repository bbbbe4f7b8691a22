"""Kinds of which nothing can be kept, such as access reviews: a package may name one all the same."""

from __future__ import annotations

from typing import Any, cast

import pytest

from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError
from slipway.kube.interface import ObjectApi, Objects
from slipway.vim.kubernetes.inventory import labelled

KINDS = {("authorization.k8s.io/v1", "SelfSubjectAccessReview", None), ("v1", "ConfigMap", "web")}


class Cluster:
    """An API server that says `status` to whoever lists access reviews, and has one ConfigMap."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.discovery = self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=kind == "ConfigMap")

    async def list(self, path: str, **query: Any) -> Objects:
        if path == "/api/v1/namespaces/web/configmaps":
            return [{"metadata": {"name": "settings", "namespace": "web", "uid": "u"}}]
        raise KubeError("no", status=self.status)


@pytest.mark.parametrize("status", [404, 405])
async def test_there_are_none_of_them_and_the_others_are_found(status: int) -> None:
    found = await labelled(cast(ObjectApi, Cluster(status)), "ours", KINDS)
    assert [one["metadata"]["name"] for one in found] == ["settings"]


async def test_what_may_not_be_listed_may_be_there() -> None:
    with pytest.raises(KubeError):
        await labelled(cast(ObjectApi, Cluster(403)), "ours", KINDS)
