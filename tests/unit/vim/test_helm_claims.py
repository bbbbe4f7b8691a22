"""Which volume claims go with a release: those that its StatefulSets made, and nobody else's."""

from __future__ import annotations

from typing import Any, cast

import pytest

from slipway.kube.discovery import Resource
from slipway.kube.interface import Object, ObjectRef, Objects
from slipway.kube.ownership import Owner
from slipway.vim.kubernetes.helm.release_objects import (
    claims_of_release,
    is_kept,
    label_claims,
    label_objects,
    read_manifest,
)
from slipway.vim.kubernetes.session import Session

OURS, OTHERS = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
LABEL = "slipway.io/instance"
CLAIMS = "/api/v1/namespaces/prod/persistentvolumeclaims"
STORE = ObjectRef("apps/v1", "StatefulSet", "store", "prod")


class Claims:
    """An API server with one StatefulSet, and volume claims with labels."""

    def __init__(self, **labels: dict[str, str | None]) -> None:
        self.labels = {name.replace("_", "-"): given for name, given in labels.items()}
        self.discovery = self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, "persistentvolumeclaims", namespaced=True)

    async def get(self, path: str) -> Object:
        assert path == "/apis/apps/v1/namespaces/prod/statefulsets/store"
        return {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}}

    async def list(self, path: str, *, metadata_only: bool, labelSelector: str = "") -> Objects:
        assert (path, metadata_only) == (CLAIMS, True)
        wanted = dict(one.split("=") for one in labelSelector.split(",") if one)
        return [
            {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}}
            for name, labels in self.labels.items()
            if wanted.items() <= labels.items()
        ]

    async def patch(self, path: str, body: Object) -> Object:
        """A label that is taken away stays as None, so that it is seen."""
        self.labels[path.rpartition("/")[2]] |= body["metadata"]["labels"]
        return body


def session_on(claims: Claims) -> Session:
    return Session(cast(Any, claims), Owner(OURS, "operation"), "prod", cast(Any, None))


async def test_only_claims_of_its_own_statefulsets_go_with_a_release_that_is_taken_back() -> None:
    claims = Claims(data_store_0={}, data_store_1={}, shared={LABEL: OURS}, data_other_0={})
    session = session_on(claims)
    await label_claims(session, [STORE], "db")
    assert [one.ref.name for one in await claims_of_release(session, "prod", "db")] == ["data-store-0", "data-store-1"]
    assert await claims_of_release(session, "prod", "web") == []


async def test_a_claim_with_the_label_of_another_vnf_is_left_alone() -> None:
    claims = Claims(data_store_0={LABEL: OTHERS})
    await label_claims(session_on(claims), [STORE])
    assert claims.labels == {"data-store-0": {LABEL: OTHERS}}


async def test_what_a_new_revision_keeps_is_no_longer_the_vnfs() -> None:
    claims = Claims(data={LABEL: OURS})
    session = session_on(claims)
    text = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: data\n"
    kept = f"{text}  annotations: {{helm.sh/resource-policy: keep}}\n"
    (found,) = await label_objects(session, "prod", "db", read_manifest("db", text.encode()), {})
    assert (found.name, claims.labels) == ("data", {"data": {LABEL: OURS}})
    assert await label_objects(session, "prod", "db", read_manifest("db", kept.encode()), {}) == []
    assert claims.labels == {"data": {LABEL: None}}


@pytest.mark.parametrize(("policy", "kept"), [("keep", True), (" Keep ", True), ("delete", False)])
def test_what_helm_keeps_is_known_as_helm_reads_it(policy: str, kept: bool) -> None:
    text = (
        f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  annotations: {{helm.sh/resource-policy: '{policy}'}}\n"
    )
    (manifest,) = read_manifest("web", text.encode())
    assert is_kept(manifest) is kept
