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
from slipway.kube.interface import Object
from slipway.model.vim import KUBERNETES
from tests.functional.processes import Process
from tests.lab.slipway_lab import SlipwayLab
from tests.unit.vim.authority import Authority

T = TypeVar("T")
SAMPLES = Path(__file__).parents[3] / "samples"
SAMPLE = SAMPLES / "workload-cluster"
VNFD_ID, VERSION = "3f0e1c52-7a4b-4e0e-8f2d-5f6a9d1c2b30", "1.34.0"  # of the sample
RECEIVER = SAMPLES.parent / "docs" / "examples" / "credentials_receiver.py"
RECEIVER_TOKEN = "what-slipway-shows"
CORE, INFRASTRUCTURE = "/apis/cluster.x-k8s.io/v1beta2", "/apis/infrastructure.cluster.x-k8s.io/v1beta2"
KINDS = (
    (CORE, "clusters"), (CORE, "machinedeployments"), (CORE, "machinesets"), (CORE, "machines"),
    ("/apis/controlplane.cluster.x-k8s.io/v1beta2", "kubeadmcontrolplanes"),
    ("/apis/bootstrap.cluster.x-k8s.io/v1beta2", "kubeadmconfigtemplates"),
    ("/apis/addons.cluster.x-k8s.io/v1beta2", "clusterresourcesets"),
    (INFRASTRUCTURE, "devclusters"), (INFRASTRUCTURE, "devmachinetemplates"), (INFRASTRUCTURE, "devmachines"),
)  # fmt: skip
FORCEFUL = {"terminationType": "FORCEFUL"}


class ManagementCluster:
    """The workload clusters in one of its namespaces, and what it knows of them."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self.kubeconfig, self.namespace = kubeconfig, namespace

    def instantiate(self, **cluster_api: Any) -> dict[str, Any]:
        return {
            "flavourId": "in-memory",
            "additionalParams": {"namespace": self.namespace, "cluster_api": cluster_api},
        }

    def one(self, plural: str, name: str, group: str = CORE) -> Object:
        return self.on(self.kubeconfig, lambda api: api.get(f"{group}/namespaces/{self.namespace}/{plural}/{name}"))

    def named(self, plural: str, group: str = CORE) -> list[str]:
        found = self.on(self.kubeconfig, lambda api: api.list(f"{group}/namespaces/{self.namespace}/{plural}"))
        return sorted(one["metadata"]["name"] for one in found)

    def left(self) -> dict[str, list[str]]:
        """All that there is of workload clusters in the namespace, by kind."""
        return {plural: found for group, plural in KINDS if (found := self.named(plural, group))}

    def workload(self, path: str) -> list[str]:
        """Names, as the workload cluster's own API server lists them."""
        secret = self.one("secrets", "edge-kubeconfig", "/api/v1")
        text = base64.b64decode(secret["data"]["value"]).decode()
        return sorted(one["metadata"]["name"] for one in self.on(text, lambda api: api.list(path)))

    def nodes_of_workload(self) -> list[str]:
        return self.workload("/api/v1/nodes")

    def versions(self) -> dict[str, str]:
        """Of the machines, by name."""
        return {name: self.one("machines", name)["spec"]["version"] for name in self.named("machines")}

    def on(self, kubeconfig: str, work: Callable[[Api], Awaitable[T]]) -> T:
        async def done() -> T:
            async with Api(from_kubeconfig(kubeconfig)) as api:
                return await work(api)

        return asyncio.run(done())


class WorkloadLab(ManagementCluster, SlipwayLab):
    def __init__(self, directory: Path, kubeconfig: str, namespace: str) -> None:
        ManagementCluster.__init__(self, kubeconfig, namespace)
        self.receiver: subprocess.Popen[str] | None = None
        self.receiver_url = ""
        self.authority = Authority()
        certificate, key = self.authority.issued("receiver", "127.0.0.1")
        (directory / "receiver.pem").write_text(certificate)
        (directory / "receiver.key").write_text(key)
        found = from_kubeconfig(kubeconfig)
        interface = {"endpoint": found.server, "ssl_ca_cert": found.ca}
        access = {"client_certificate": found.client_certificate, "client_key": found.client_key}
        vim = {"name": "management", "vimType": KUBERNETES, "interfaceInfo": interface, "accessInfo": access}
        SlipwayLab.__init__(self, directory, SAMPLE, vim)

    def start(self) -> None:
        """With the receiver of the docs beside it, which registers at it what it is told."""
        settings = {"lease_seconds": 5, "allowed_networks": "127.0.0.0/8"}
        self.process = Process("serve", self.directory / "data", **settings)
        self.http = self.process.client()
        port = self.receiver_url.rpartition(":")[2].partition("/")[0] or "0"
        self.end_receiver()
        words = ["--certificate", "receiver.pem", "--key", "receiver.key", "--slipway", str(self.http.base_url)]
        tokens = {"RECEIVER_TOKEN": RECEIVER_TOKEN, "SLIPWAY_TOKEN": self.http.headers["X-Auth-Token"]}
        self.receiver = subprocess.Popen(
            [sys.executable, RECEIVER, *words, "--port", port],
            cwd=self.directory, env={**os.environ, **tokens}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.receiver.stdout is not None
        self.receiver_url = self.receiver.stdout.readline().removeprefix("receiving at ").strip()

    def end_receiver(self) -> None:
        if self.receiver is not None:
            self.receiver.kill()
            self.receiver.communicate()
            self.receiver = None

    def credentials_receiver(self, **more: Any) -> dict[str, Any]:
        return {"url": self.receiver_url, "ca_certificate": self.authority.pem, "bearer_token": RECEIVER_TOKEN, **more}

    def variant(self, vnfd_id: str, *changes: tuple[str, str]) -> str:
        """The VNFD id of the sample with other content."""
        tree = self.directory / f"package-{vnfd_id}"
        shutil.copytree(SAMPLE, tree, dirs_exist_ok=True)
        for file in tree.rglob("*.yaml"):
            text = file.read_text()
            for old, new in ((VNFD_ID, vnfd_id), *changes):
                text = text.replace(old, new)
            file.write_text(text)
        return self.onboard(tree)

    def next_version(self, vnfd_id: str, version: str) -> str:
        """In another version, whose templates have other names."""
        return self.variant(vnfd_id, (VERSION, version), (VERSION.replace(".", "-"), version.replace(".", "-")))

    def vnfcs(self, vdu: str) -> dict[str, str]:
        """Ids by name."""
        return {name: one["id"] for name, one in self.machines().items() if one["vduId"] == vdu}


@contextmanager
def a_workload_lab(directory: Path, kubeconfig: str, namespace: str) -> Iterator[WorkloadLab]:
    lab = WorkloadLab(directory, kubeconfig, namespace)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    try:
        lab.on(kubeconfig, lambda api: api.create("/api/v1/namespaces", body))
    except KubeError as error:
        if error.status != 409:
            raise
    try:
        yield lab
    finally:
        lab.end_receiver()
        lab.kill()
