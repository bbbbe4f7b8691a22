"""A real API server, a namespace of one's own in it, and a node that only says it is one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.credentials import Credentials, from_kubeconfig
from slipway.kube.errors import KubeError
from slipway.waiting import Observation, wait_for
from tests.lab.kube.control_plane import shared_control_plane
from tests.lab.kube.fake_kubelet import FakeNode, fake_node


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Path]:
    """The directory of one that runs."""
    base = tmp_path_factory.getbasetemp()
    with shared_control_plane((base if worker_id == "master" else base.parent) / "control-plane") as path:
        yield path.parent


@pytest.fixture(scope="session")
def kubeconfig(control_plane: Path) -> str:
    """Of an administrator, as kubeadm writes it."""
    return (control_plane / "kubeconfig").read_text()


@pytest.fixture
def administrator(kubeconfig: str) -> Credentials:
    return from_kubeconfig(kubeconfig)


@pytest.fixture
async def api(administrator: Credentials) -> AsyncIterator[Api]:
    async with Api(administrator) as api:
        yield api


@pytest.fixture
async def namespace(api: Api) -> AsyncIterator[str]:
    """Ready for pods, which need the account that a controller makes."""
    name = f"test-{uuid4().hex[:8]}"
    await api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def look() -> Observation:
        try:
            await api.get(paths.namespaced("/api/v1", name, "serviceaccounts", "default"))
        except KubeError as error:
            return Observation(False, error.detail)
        return Observation(True, "")

    await wait_for(look, f"namespace {name} to be usable", 30)
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
async def node(api: Api) -> AsyncIterator[FakeNode]:
    async with fake_node(api) as node:
        yield node
