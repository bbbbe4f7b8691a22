"""Helm deletes whatever has the name of a hook before it makes the hook: what is somebody else's must not be it."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object
from slipway.kube.ownership import Owner
from slipway.model.errors import VimError
from slipway.vim.kubernetes.helm.actions import rendered_release
from slipway.vim.kubernetes.helm.release_objects import is_hook, is_hook_at, read_manifest, refuse_hooks_of_others
from slipway.vim.kubernetes.session import Session

OURS, OTHERS = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
LABEL, HOOK = "slipway.io/instance", {"helm.sh/hook": "pre-install"}
JOB = 'apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {"helm.sh/hook": pre-install}}\n'
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


class Cluster:
    """An API server that has one object, or none."""

    def __init__(self, metadata: Object | None) -> None:
        self.metadata = metadata
        self.discovery = self

    async def resource(self, api_version: str, kind: str) -> Resource:
        return Resource(api_version, kind, "jobs", namespaced=True)

    async def get(self, path: str, *, metadata_only: bool) -> Object:
        assert (path, metadata_only) == ("/apis/batch/v1/namespaces/prod/jobs/migrate", True)
        if self.metadata is None:
            raise KubeError("gone", status=404)
        return {"metadata": {"name": "migrate", **self.metadata}}


async def look(metadata: Object | None) -> None:
    session = Session(cast(Any, Cluster(metadata)), Owner(OURS, "operation"), "prod", cast(Any, None))
    await refuse_hooks_of_others(session, "prod", read_manifest("web", JOB.encode()))


@pytest.mark.parametrize("metadata", [None, {"annotations": HOOK}, {"labels": {LABEL: OURS}}])
async def test_what_is_not_there_or_was_a_hook_or_is_the_vnfs_is_in_nobodys_way(metadata: Object | None) -> None:
    await look(metadata)


@pytest.mark.parametrize(
    "metadata", [{}, {"labels": {LABEL: OTHERS}}, {"labels": {LABEL: OTHERS}, "annotations": HOOK}]
)
async def test_what_somebody_else_made_is_named_and_left(metadata: Object) -> None:
    with pytest.raises(VimError, match=r"Job prod/migrate is there already.*a hook of the chart") as raised:
        await look(metadata)
    assert "give the hook another name" in raised.value.detail


def test_hooks_are_told_from_what_the_release_keeps() -> None:
    printed = json.dumps({"manifest": CONFIG, "hooks": [{"manifest": JOB}]})
    found = rendered_release("web", printed.encode())
    assert [(str(one), is_hook(one)) for one in found] == [("ConfigMap a", False), ("Job migrate", True)]


def test_a_hook_that_is_a_list_is_refused() -> None:
    """Its objects would no longer be hooks when they stand alone."""
    hook = 'apiVersion: v1\nkind: List\nmetadata: {annotations: {"helm.sh/hook": test}}\nitems:\n- ' + CONFIG.replace(
        "\n", "\n  "
    )
    with pytest.raises(VimError, match="a hook of the chart is a List"):
        rendered_release("web", json.dumps({"manifest": "", "hooks": [{"manifest": hook}]}).encode())


def test_small_hooks_that_are_large_when_aliases_are_spelled_out_are_not_all_taken() -> None:
    many = "a: &a [" + "{}," * 99 + "]\nb: &b [" + "*a," * 99 + "]\nc: [" + "*b," * 25 + "]\n"
    hooks = [{"manifest": f"{JOB.replace('migrate', f'migrate-{n}')}\n{many}"} for n in range(4)]
    with pytest.raises(VimError, match="more than 600000 values, aliases spelled out"):
        rendered_release("web", json.dumps({"manifest": "", "hooks": hooks}).encode())


@pytest.mark.parametrize(
    ("said", "runs"), [("pre-delete", True), ("test, Post-Delete ", True), ("pre-install", False), ("", False)]
)
def test_which_hooks_run_when_a_release_goes(said: str, runs: bool) -> None:
    (hook,) = read_manifest("web", JOB.replace("pre-install", f'"{said}"').encode())
    assert is_hook_at(hook, ("pre-delete", "post-delete")) is runs


def test_a_hook_may_not_say_whose_it_is() -> None:
    marked = CONFIG.replace("name: a", f"name: a, labels: {{{LABEL}: {OTHERS}}}")
    with pytest.raises(VimError, match="which Slipway sets"):
        rendered_release("web", json.dumps({"manifest": "", "hooks": [{"manifest": marked}]}).encode())
