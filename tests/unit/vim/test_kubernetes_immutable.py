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
from slipway.model.errors import VimError
from slipway.model.machine import FoundObject
from slipway.vim.kubernetes.apply_object import apply_object
from slipway.vim.kubernetes.object_plan import ObjectPlan
from slipway.vim.kubernetes.session import Session

PLAN = ObjectPlan(at=0, id="Service/web", api_version="v1", kind="Service", name="web")
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"clusterIP": "None"}}


class Deleted(Exception):
    """What was to be made anew."""


class Cluster:
    """An API server with an object of ours, which refuses to change it."""

    def __init__(self, said: str, spec: Object | None = None) -> None:
        self.said, self.spec = said, spec or {}
        self.discovery = self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, "services", namespaced=True)

    async def path(self, manifest: Object) -> str:
        return "/api/v1/namespaces/default/services/web"

    async def get(self, path: str, **_: Any) -> Object:
        return {"metadata": {"name": "web", "uid": "uid-1", "labels": {INSTANCE: "ours"}}, "spec": self.spec}

    async def server_side_apply(self, path: str, manifest: Object, *, force: bool = False) -> Object:
        whole = f'Service "web" is invalid: spec.clusterIPs[0]: Invalid value: ["None"]: {self.said}'
        cause = {"reason": "FieldValueInvalid", "message": f'Invalid value: ["None"]: {self.said}'}
        status = {"message": whole, "reason": "Invalid", "details": {"causes": [cause]}}
        raise errors.refused("PATCH", 422, json.dumps(status).encode())

    async def delete(self, path: str, **_: Any) -> None:
        raise Deleted(path)


async def apply(
    said: str, plan: ObjectPlan = PLAN, content: Object = SERVICE, spec: Object | None = None
) -> FoundObject:
    owner = SimpleNamespace(instance_id="ours", operation_id="operation")
    ctx = SimpleNamespace(progress=lambda _: None)
    session = Session(cast(Any, Cluster(said, spec)), cast(Any, owner), "default", cast(Any, ctx))
    return await apply_object(session, plan, content, None, present=True, force=False, limit=1.0)


@pytest.mark.parametrize("said", ["may not change once set", "field is immutable"])
async def test_what_can_not_be_changed_is_made_anew(said: str) -> None:
    """The first of them of an address: of a Service that becomes a headless one."""
    with pytest.raises(Deleted):
        await apply(said)


async def test_what_is_wrong_is_not_made_anew() -> None:
    with pytest.raises(KubeError, match="must be empty"):
        await apply("must be empty when `type` is ExternalName")


FORBIDDEN = "updates to statefulset spec for fields other than 'replicas' and 'template' are forbidden"
STORE = ObjectPlan(at=0, id="StatefulSet.apps/web", api_version="apps/v1", kind="StatefulSet", name="web")
STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": {}}


async def test_a_stateful_set_whose_claims_stay_is_made_anew() -> None:
    for policy in ({}, {"whenDeleted": "Retain", "whenScaled": "Delete"}):
        with pytest.raises(Deleted):
            await apply(FORBIDDEN, STORE, STATEFUL_SET, {"persistentVolumeClaimRetentionPolicy": policy})


async def test_a_stateful_set_whose_claims_would_go_with_it_is_left_as_it_is() -> None:
    with pytest.raises(VimError, match="another name"):
        await apply(FORBIDDEN, STORE, STATEFUL_SET, {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}})
