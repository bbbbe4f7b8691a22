"""The Kubernetes driver keeps the contract of all VIM drivers with Helm releases too, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec.structs import replace

from slipway.kube import paths
from slipway.kube.api import Api
from slipway.kube.credentials import Credentials
from slipway.kube.ownership import INSTANCE
from slipway.model.action import VimConnection
from slipway.model.descriptor import Flavour
from slipway.model.target import PackageFile
from slipway.vim.contract import VimDriver
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.contract.driver import DriverContract
from tests.contract.life import FIRST, NEXT, Life, two_vdus
from tests.lab.kube.fake_kubelet import FakeNode
from tests.lab.kubernetes.conftest import vim_of

pytestmark = pytest.mark.group(name="helm")
PATH = "Files/charts/cnf"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: cnf\nversion: 1.0.0\nannotations: {slipway.io/replicas.work: work}\n",
    "values.yaml": "work: 9\n",
    "templates/all.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-settings"}
data: {package: PACKAGE}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-base"}
spec:
  selector: {matchLabels: {app: base}}
  template:
    metadata: {labels: {app: base}}
    spec: {containers: [{name: main, image: registry.slipway.test/pause:1}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-work"}
spec:
  replicas: {{ .Values.work }}
  selector: {matchLabels: {app: work}}
  template:
    metadata: {labels: {app: work}}
    spec: {containers: [{name: main, image: registry.slipway.test/pause:1}]}
""",
}


class TestHelmReleases(DriverContract):
    container = True
    has_ports = False

    @pytest.fixture
    def driver(self, helm: Path) -> VimDriver:
        return KubernetesVimDriver(helm=helm)

    @pytest.fixture
    def connection(self, administrator: Credentials, namespace: str) -> VimConnection:
        return vim_of(administrator, namespace)

    @pytest.fixture
    def elsewhere(self, administrator: Credentials, other_namespace: str) -> VimConnection:
        return vim_of(administrator, other_namespace)

    @pytest.fixture
    async def other_namespace(self, api: Api) -> AsyncIterator[str]:
        name = f"test-{uuid4().hex[:8]}"
        await api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield name
        await api.delete(f"/api/v1/namespaces/{name}")

    @pytest.fixture
    async def life(
        self, driver: VimDriver, connection: VimConnection, node: FakeNode, api: Api, namespace: str
    ) -> AsyncIterator[Life]:
        """At the end nothing is left by a driver that was told to remove it, whatever it looks for itself."""
        life = Life(driver, connection, self.flavours(), files_of=self.files_of)
        yield life
        if life.instance.vnf.instantiated_vnf_info is None:
            for group, plural in (("/api/v1", "secrets"), ("/api/v1", "configmaps"), ("/apis/apps/v1", "deployments")):
                path = paths.namespaced(group, namespace, plural)
                assert await api.list(path, labelSelector=f"{INSTANCE}={life.instance_id}") == []

    def files_of(self, globs: tuple[str, ...], vnfd_id: str) -> dict[str, PackageFile]:
        files = {f"{PATH}/{name}": text.replace("PACKAGE", vnfd_id).encode() for name, text in CHART.items()}
        return {name: PackageFile(content=one, digest=sha256(one).hexdigest()) for name, one in files.items()}

    def flavours(self) -> dict[str, Flavour]:
        return {one: replace(two_vdus(container=True, version=one), charts=(PATH,)) for one in (FIRST, NEXT)}
