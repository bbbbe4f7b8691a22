"""A definition goes with all objects of its kind: so it stays where nobody can tell whose they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError
from slipway.kube.interface import Objects
from slipway.model.errors import VimError
from slipway.vim.kubernetes.arguments import Placed
from slipway.vim.kubernetes.session import Session
from slipway.vim.kubernetes.used_by_others import refuse_if_used

DEFINITIONS = "apiextensions.k8s.io/v1"
DEFINITION = Placed(id="1", api_version=DEFINITIONS, kind="CustomResourceDefinition", name="leaves.trees.example")


class Cluster:
    """An API server that has one definition, and says `status` to whoever lists objects of its kind."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.discovery = self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=False)

    async def get(self, path: str) -> Any:
        versions = [{"name": "v1", "storage": True}]
        return {"spec": {"group": "trees.example", "versions": versions, "names": {"kind": "Leaf"}}}

    async def list(self, path: str, **query: Any) -> Objects:
        raise KubeError("leaves.trees.example is forbidden", status=self.status)


def _session(status: int) -> Session:
    return cast(Session, SimpleNamespace(api=Cluster(status), owner=SimpleNamespace(instance_id="ours")))


async def test_a_definition_whose_objects_may_not_be_listed_is_not_removed() -> None:
    with pytest.raises(VimError, match=r"leaves\.trees\.example can't be seen") as raised:
        await refuse_if_used(_session(403), [DEFINITION])
    assert "allow the VIM's account to list Leaf in all namespaces" in raised.value.detail


async def test_a_definition_that_is_served_no_longer_is_in_nobodys_way() -> None:
    await refuse_if_used(_session(404), [DEFINITION])
