"""A definition that is served already with the same content is relied upon; the server writes it in its own way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from slipway.kube.apply import ForeignObject
from slipway.kube.discovery import Resource
from slipway.model.machine import PREREQUISITE
from slipway.vim.kubernetes.apply_object import apply_object
from slipway.vim.kubernetes.object_plan import ObjectPlan
from slipway.vim.kubernetes.session import Session

DEFINITIONS = "apiextensions.k8s.io/v1"
PLAN = ObjectPlan(at=0, id="pages", api_version=DEFINITIONS, kind="CustomResourceDefinition", name="pages.example.com")
SCHEMA = {"type": "object", "properties": {"url": {"type": "string"}}}


def definition(**more: Any) -> dict[str, Any]:
    names = {"kind": "Page", "plural": "pages"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version], **more}
    return {"apiVersion": DEFINITIONS, "kind": PLAN.kind, "metadata": {"name": PLAN.name}, "spec": spec}


def versions(schema: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}]


class Cluster:
    """An API server on which somebody else has made a definition."""

    def __init__(self, there: dict[str, Any]) -> None:
        self.there = there
        self.discovery = self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, f"{kind.lower()}s", namespaced=False)

    async def get(self, path: str) -> dict[str, Any]:
        return self.there


async def apply(wanted: dict[str, Any], there: dict[str, Any]) -> str:
    """The id that is recorded for it."""
    owner = SimpleNamespace(instance_id="ours", operation_id="operation")
    session = Session(cast(Any, Cluster(there)), cast(Any, owner), "default", cast(Any, None))
    return (await apply_object(session, PLAN, wanted, None, present=False, force=False, limit=1.0)).id


@pytest.mark.parametrize(
    "written",
    [
        definition(),
        # What Go leaves out when it is empty: generators of definitions write it, and no server gives it back.
        definition(preserveUnknownFields=False),
        definition(versions=versions({**SCHEMA, "description": "", "required": []}, deprecated=False)),
        definition(versions=versions({**SCHEMA, "properties": {"url": {"type": "string", "nullable": False}}})),
        definition(names={"kind": "Page", "plural": "pages", "shortNames": None}),
    ],
)
async def test_the_same_content_is_relied_upon(written: dict[str, Any]) -> None:
    there = definition(names={"kind": "Page", "plural": "pages", "singular": "page", "listKind": "PageList"})
    assert await apply(written, there) == f"{PREREQUISITE}{PLAN.id}"


@pytest.mark.parametrize(
    "written",
    [
        definition(scope="Cluster"),
        definition(versions=versions(SCHEMA, subresources={"status": {}})),
        definition(versions=versions({**SCHEMA, "properties": {"url": {"type": "string", "default": ""}}})),
        definition(versions=versions({**SCHEMA, "properties": {"url": {"type": "string", "maxLength": 0}}})),
        definition(versions=[*versions(SCHEMA), *versions(SCHEMA)]),
    ],
)
async def test_one_that_says_something_else_is_somebody_elses(written: dict[str, Any]) -> None:
    with pytest.raises(ForeignObject, match="was not made by Slipway"):
        await apply(written, definition())
