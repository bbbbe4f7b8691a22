"""The Kubernetes driver keeps the contract of all VIM drivers, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from uuid import uuid4

import pytest
from msgspec.structs import replace

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

pytestmark = pytest.mark.group(name="kubernetes")
PATH = "Files/kubernetes/cnf.yaml"
MANIFESTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {package: PACKAGE}
---
apiVersion: v1
kind: Service
metadata: {name: work}
spec:
  selector: {app: work}
  ports: [{port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: base}
spec:
  selector: {matchLabels: {app: base}}
  template:
    metadata: {labels: {app: base}}
    spec: {containers: [{name: main, image: registry.slipway.test/pause:1}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: work}
spec:
  replicas: 9
  selector: {matchLabels: {app: work}}
  template:
    metadata: {labels: {app: work}}
    spec: {containers: [{name: main, image: registry.slipway.test/pause:1}]}
"""


class TestKubernetesDriver(DriverContract):
    container = True
    has_ports = False

    @pytest.fixture
    def driver(self) -> VimDriver:
        return KubernetesVimDriver()

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
            for path in ("/api/v1/namespaces/{}/configmaps", "/apis/apps/v1/namespaces/{}/deployments"):
                assert await api.list(path.format(namespace), labelSelector=f"{INSTANCE}={life.instance_id}") == []

    def files_of(self, globs: tuple[str, ...], vnfd_id: str) -> dict[str, PackageFile]:
        content = MANIFESTS.replace("PACKAGE", vnfd_id).encode()
        return {glob: PackageFile(content=content, digest=sha256(content).hexdigest()) for glob in globs}

    def flavours(self) -> dict[str, Flavour]:
        return {one: replace(two_vdus(container=True, version=one), manifests=(PATH,)) for one in (FIRST, NEXT)}
