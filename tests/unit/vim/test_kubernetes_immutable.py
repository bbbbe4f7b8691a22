"""What an API server says of fields that can't be changed: then the object is made anew, and for nothing else."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slipway.kube import errors
from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object
from slipway.kube.ownership import INSTANCE
from slipway.model.machine import FoundObject
from slipway.vim.kubernetes.apply_object import apply_object
from slipway.vim.kubernetes.object_plan import ObjectPlan
from slipway.vim.kubernetes.session import Session

PLAN = ObjectPlan(at=0, id="Service/web", api_version="v1", kind="Service", name="web")
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"clusterIP": "None"}}


class Deleted(Exception):
    """What was to be made anew."""


class Cluster:
    """An API server with a Service of ours, which refuses to change it."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.discovery = self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, "services", namespaced=True)

    async def path(self, manifest: Object) -> str:
        return "/api/v1/namespaces/default/services/web"

    async def get(self, path: str, **_: Any) -> Object:
        return {"metadata": {"name": "web", "uid": "uid-1", "labels": {INSTANCE: "ours"}}}

    async def server_side_apply(self, path: str, manifest: Object, *, force: bool = False) -> Object:
        whole = f'Service "web" is invalid: spec.clusterIPs[0]: Invalid value: ["None"]: {self.said}'
        cause = {"reason": "FieldValueInvalid", "message": f'Invalid value: ["None"]: {self.said}'}
        status = {"message": whole, "reason": "Invalid", "details": {"causes": [cause]}}
        raise errors.refused("PATCH", 422, json.dumps(status).encode())

    async def delete(self, path: str, **_: Any) -> None:
        raise Deleted(path)


async def apply(said: str) -> FoundObject:
    owner = SimpleNamespace(instance_id="ours", operation_id="operation")
    ctx = SimpleNamespace(progress=lambda _: None)
    session = Session(cast(Any, Cluster(said)), cast(Any, owner), "default", cast(Any, ctx))
    return await apply_object(session, PLAN, SERVICE, None, present=True, force=False, limit=1.0)


@pytest.mark.parametrize("said", ["may not change once set", "field is immutable"])
async def test_what_can_not_be_changed_is_made_anew(said: str) -> None:
    """The first of them of an address: of a Service that becomes a headless one."""
    with pytest.raises(Deleted):
        await apply(said)


async def test_what_is_wrong_is_not_made_anew() -> None:
    with pytest.raises(KubeError, match="must be empty"):
        await apply("must be empty when `type` is ExternalName")
