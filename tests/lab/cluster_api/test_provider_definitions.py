"""The manifests of the sample against the real definitions: an API server is asked, and nothing is made."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from slipway.kube.api import Api
from slipway.kube.credentials import from_kubeconfig, tls
from slipway.kube.interface import ObjectRef
from slipway.kube.wait_ready import wait_ready
from slipway.model.errors import VimError
from slipway.vim.sandbox.image.kubernetes.compile import module_directory
from slipway.vim.sandbox.image.kubernetes.programs import Program
from tests.lab.kube.control_plane import shared_control_plane

pytestmark = pytest.mark.group(name="cluster-api")

ROOT = Path(__file__).parents[3]
GO = ROOT / "lab" / "cluster-api" / "go"
MANIFESTS = ROOT / "samples" / "workload-cluster" / "Files" / "kubernetes"
CORE = "sigs.k8s.io/cluster-api"
MODULES = (
    ("cluster-api", "v1.14.2", CORE),
    ("cluster-api", "v1.14.2", f"{CORE}/test"),
    ("openstack", "v0.14.6", f"{CORE}-provider-openstack"),
)
DEFINITION = "apiextensions.k8s.io/v1"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with shared_control_plane(tmp_path_factory.getbasetemp() / "definitions") as path:
        yield path.read_text()


def definitions() -> Iterator[dict[str, Any]]:
    """All of the providers, without the webhooks that convert between versions."""
    for pins, version, module in MODULES:
        try:
            directory = module_directory(Program("none", pins, version, go=GO), module)
        except VimError as error:
            pytest.skip(error.detail)
        for file in sorted(directory.rglob("crd/bases/*.yaml")):
            for document in yaml.safe_load_all(file.read_text()):
                document["spec"].pop("conversion", None)
                yield document


@pytest.mark.parametrize("provider", ["in-memory", "openstack"])
async def test_every_manifest_is_what_the_providers_definitions_ask_for(kubeconfig: str, provider: str) -> None:
    files = (MANIFESTS / provider / "cluster.yaml", MANIFESTS / "cni.yaml")
    wanted = [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]
    kinds = {(one["apiVersion"].partition("/")[0], one["kind"]) for one in wanted}
    found = [one for one in await asyncio.to_thread(lambda: list(definitions())) if _defines(one) in kinds]
    assert {_defines(one) for one in found} == kinds
    administrator = from_kubeconfig(kubeconfig)
    async with (
        Api(administrator) as api,
        httpx.AsyncClient(base_url=administrator.server, verify=tls(administrator)) as http,
    ):
        for one in found:
            await api.apply(one)
        refs = [ObjectRef(DEFINITION, one["kind"], one["metadata"]["name"]) for one in found]
        await wait_ready(api, refs, (), 60)
        refused = [why for one in wanted if (why := await _refused(api, http, one))]
    assert refused == []


def _defines(definition: dict[str, Any]) -> tuple[str, str]:
    return definition["spec"]["group"], definition["spec"]["names"]["kind"]


async def _refused(api: Api, http: httpx.AsyncClient, manifest: dict[str, Any]) -> str | None:
    path = (await api.discovery.resource(manifest["apiVersion"], manifest["kind"])).collection("default")
    answer = await http.post(path, json=manifest, params={"dryRun": "All", "fieldValidation": "Strict"})
    return None if answer.is_success else str(answer.json()["message"])
