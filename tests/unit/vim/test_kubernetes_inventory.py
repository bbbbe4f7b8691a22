"""What a cluster says that it has of an instance, as plans are made with it."""

from __future__ import annotations

from typing import Any, cast

from slipway.kube.discovery import Resource
from slipway.kube.interface import Object, ObjectApi, Objects
from slipway.model.machine import Found, FoundObject
from slipway.vim.kubernetes.inventory import find
from slipway.vim.kubernetes.object_plan import CONTENT, OBJECT


def there(name: str, namespace: str | None = None, **more: Any) -> Object:
    notes = {OBJECT: name, CONTENT: f"digest of {name}"}
    return {"metadata": {"name": name, "namespace": namespace, "uid": name, "annotations": notes, **more}}


class Cluster:
    def __init__(self, *objects: tuple[str, Object]) -> None:
        self.discovery = self
        self._objects = objects

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=kind != "Namespace")

    async def list(self, path: str, **query: Any) -> Objects:
        return [one for place, one in self._objects if place == path]


async def test_what_is_on_its_way_out_is_made_anew_by_the_next_operation() -> None:
    """Somebody has deleted a ConfigMap, and a namespace in which the other objects still are."""
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster = Cluster(
        ("/api/v1/namespaces", there("web", **leaving)),
        ("/api/v1/namespaces/web/configmaps", there("settings", "web")),
        ("/api/v1/namespaces/db/configmaps", there("rules", "db", **leaving)),
        ("/api/v1/namespaces/db/configmaps", there("values", "db")),
    )
    recorded = [("Namespace", "web", None), ("ConfigMap", "settings", "web"), ("ConfigMap", "rules", "db")]
    objects = tuple(
        FoundObject(id=name, kind=kind, name=name, namespace=namespace, api_version="v1")
        for kind, name, namespace in recorded
    )
    found = await find(cast(ObjectApi, cluster), "ours", Found(objects=objects))
    assert {one.id: one.digest for one in found.objects} == {
        "web": None,
        "settings": None,
        "rules": None,
        "values": "digest of values",
    }
