"""What is watched for many objects: few connections, however many kinds and namespaces there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from slipway.kube.discovery import Resource
from slipway.kube.interface import Object, ObjectApi, ObjectRef
from slipway.kube.watch import MOST_SELECTIONS, Selection, Watch, select
from slipway.vim.kubernetes.vnfcs import wait_for_vnfcs


class Cluster:
    """Serves whatever kind; all lists are of one page, and no watch has anything to tell."""

    def __init__(self) -> None:
        self.discovery = self
        self.listed = list[str]()
        self.objects: Mapping[str, list[Object]] = {}

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=kind != "Namespace")

    async def get(self, path: str, **query: Any) -> Object:
        self.listed.append(path)
        return {"metadata": {"resourceVersion": "1"}, "items": self.objects.get(path, [])}

    async def watch(self, path: str, **query: Any) -> Any:
        return
        yield {}


async def selected(kinds: int, namespaces: int, names: int) -> tuple[list[Selection], int]:
    refs = [
        ObjectRef("v1", f"Kind{kind}", f"n{name}", f"ns{namespace}")
        for kind in range(kinds)
        for namespace in range(namespaces)
        for name in range(names)
    ]
    selections, called = await select(cast(ObjectApi, Cluster()), refs)
    assert set(called) == set(called.values()) == set(refs)
    Watch(cast(ObjectApi, Cluster()), selections, lambda one: one)
    return selections, len(selections)


async def test_a_few_of_a_kind_are_watched_by_name() -> None:
    selections, number = await selected(7, 4, 3)
    assert number == 7 * 4 * 3
    assert selections[0].fields == "metadata.name=n0"


async def test_where_that_would_be_too_many_each_namespace_is_watched() -> None:
    selections, number = await selected(7, 5, 3)
    assert number == 7 * 5
    assert (selections[0].namespace, selections[0].fields) == ("ns0", "")


async def test_where_that_would_be_too_many_all_namespaces_are() -> None:
    selections, number = await selected(3, 40, 1)
    assert number == 3
    assert {one.namespace for one in selections} == {None}


@pytest.mark.parametrize(("namespaces", "places"), [(2, 2), (MOST_SELECTIONS, 1)])
async def test_what_belongs_to_objects_of_many_namespaces_is_watched_in_all(namespaces: int, places: int) -> None:
    cluster = Cluster()
    owners = [{"uid": "u0"}]
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    pod = {"metadata": {"name": "p", "namespace": "ns0", "uid": "p", "ownerReferences": owners}, "status": ready}
    cluster.objects = {"/api/v1/namespaces/ns0/pods": [pod], "/api/v1/pods": [pod]}
    roots: list[Object] = [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "web", "namespace": f"ns{at}", "uid": f"u{at}"},
            "spec": {"replicas": int(at == 0)},
        }
        for at in range(namespaces)
    ]
    found = await wait_for_vnfcs(cast(ObjectApi, cluster), roots, 10)
    assert [one.id for one in found] == ["p"]
    assert len(cluster.listed) == 3 * places
