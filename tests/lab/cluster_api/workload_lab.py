"""A Slipway process on a real management cluster: workload clusters, and what Cluster API knows of them."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from slipway.kube.api import Api
from slipway.kube.credentials import from_kubeconfig
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectApi
from slipway.model.vim import KUBERNETES
from tests.functional.processes import Process
from tests.lab.slipway_lab import SlipwayLab
from tests.unit.vim.authority import Authority

T = TypeVar("T")
SAMPLES = Path(__file__).parents[3] / "samples"
SAMPLE = SAMPLES / "workload-cluster"
RECEIVER = SAMPLES.parent / "docs" / "examples" / "credentials_receiver.py"
CORE = "/apis/cluster.x-k8s.io/v1beta2"
RECEIVER_TOKEN = "what-slipway-shows"
KINDS = (
    (CORE, "clusters"), (CORE, "machinedeployments"), (CORE, "machinesets"), (CORE, "machines"),
    ("/apis/controlplane.cluster.x-k8s.io/v1beta2", "kubeadmcontrolplanes"),
    ("/apis/bootstrap.cluster.x-k8s.io/v1beta2", "kubeadmconfigtemplates"),
    ("/apis/infrastructure.cluster.x-k8s.io/v1beta2", "devclusters"),
    ("/apis/infrastructure.cluster.x-k8s.io/v1beta2", "devmachinetemplates"),
    ("/apis/infrastructure.cluster.x-k8s.io/v1beta2", "devmachines"),
)  # fmt: skip


class WorkloadLab(SlipwayLab):
    def __init__(self, directory: Path, kubeconfig: str, namespace: str) -> None:
        self.kubeconfig, self.namespace = kubeconfig, namespace
        self.authority = Authority()
        self.receiver = ""
        found = from_kubeconfig(kubeconfig)
        self.management = found
        interface = {"endpoint": found.server, "ssl_ca_cert": found.ca}
        access = {"client_certificate": found.client_certificate, "client_key": found.client_key}
        vim = {"name": "management", "vimType": KUBERNETES, "interfaceInfo": interface, "accessInfo": access}
        super().__init__(directory, SAMPLE, vim)

    def start(self) -> None:
        self.process = Process("serve", self.directory / "data", script_network="true")
        self.http = self.process.client()

    def instantiate(self, **cluster_api: Any) -> dict[str, Any]:
        return {"flavourId": "in-memory", "additionalParams": {
            "namespace": self.namespace, "cluster_api": cluster_api}}  # fmt: skip

    def credentials_receiver(self, **more: Any) -> dict[str, Any]:
        return {"url": self.receiver, "ca_certificate": self.authority.pem, "bearer_token": RECEIVER_TOKEN, **more}

    def next_package(self, vnfd_id: str, version: str) -> str:
        """The sample in another version, whose templates have other names."""
        tree = self.directory / f"package-{version}"
        shutil.copytree(SAMPLE, tree)
        for file in tree.rglob("*.yaml"):
            text = file.read_text().replace("3f0e1c52-7a4b-4e0e-8f2d-5f6a9d1c2b30", vnfd_id)
            file.write_text(text.replace("1.34.0", version).replace("1-34-0", version.replace(".", "-")))
        return self.onboard(tree)

    def ask(self, path: str) -> Object:
        return self.kube_management(lambda api: api.get(path))

    def one(self, plural: str, name: str, group: str = CORE) -> Object:
        return self.ask(f"{group}/namespaces/{self.namespace}/{plural}/{name}")

    def named(self, plural: str, group: str = CORE) -> list[str]:
        found = self.kube_management(lambda api: api.list(f"{group}/namespaces/{self.namespace}/{plural}"))
        return sorted(one["metadata"]["name"] for one in found)

    def left(self) -> dict[str, list[str]]:
        """All that there is of workload clusters in the namespace, by kind."""
        return {plural: found for group, plural in KINDS if (found := self.named(plural, group))}

    def workload_nodes(self) -> list[str]:
        """As the workload cluster's own API server lists them."""
        secret = self.ask(f"/api/v1/namespaces/{self.namespace}/secrets/edge-kubeconfig")
        text = base64.b64decode(secret["data"]["value"]).decode()

        async def nodes(api: ObjectApi) -> list[str]:
            return sorted(one["metadata"]["name"] for one in await api.list("/api/v1/nodes"))

        return self.kube_of(text, nodes)

    def kube_management(self, work: Callable[[ObjectApi], Awaitable[T]]) -> T:
        return self.kube_of(self.kubeconfig, work)

    def kube_of(self, kubeconfig: str, work: Callable[[ObjectApi], Awaitable[T]]) -> T:
        async def done() -> T:
            async with Api(from_kubeconfig(kubeconfig)) as api:
                return await work(api)

        return asyncio.run(done())

    def vims(self) -> dict[str, dict[str, Any]]:
        return {vim["name"]: vim for vim in self.http.get("/slipway/v1/vims").json()}

    @contextmanager
    def receiving(self) -> Iterator[None]:
        """The receiver of the docs runs, and registers what it is told."""
        certificate, key = self.authority.issued("receiver", "127.0.0.1")
        (self.directory / "receiver.pem").write_text(certificate)
        (self.directory / "receiver.key").write_text(key)
        words = ["--certificate", "receiver.pem", "--key", "receiver.key", "--port", "0"]
        process = subprocess.Popen(
            [
                sys.executable,
                RECEIVER,
                "--slipway",
                str(self.http.base_url),
                *words,
            ],
            cwd=self.directory,
            env={**os.environ, "RECEIVER_TOKEN": RECEIVER_TOKEN, "SLIPWAY_TOKEN": self.http.headers["X-Auth-Token"]},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            self.receiver = process.stdout.readline().removeprefix("receiving at ").strip()
            yield
        finally:
            process.kill()
            process.communicate()


@contextmanager
def a_workload_lab(directory: Path, kubeconfig: str, namespace: str) -> Iterator[WorkloadLab]:
    lab = WorkloadLab(directory, kubeconfig, namespace)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    try:
        lab.kube_management(lambda api: api.create("/api/v1/namespaces", body))
    except KubeError as error:
        if error.status != 409:
            raise
    try:
        with lab.receiving():
            yield lab
    finally:
        lab.http.close()
        lab.process.end()
