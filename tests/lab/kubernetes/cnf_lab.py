"""A Slipway process beside a real API server, the sample CNF that it deploys there, and a node that plays its pods."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from slipway.kube.api import Api
from slipway.kube.credentials import from_kubeconfig
from slipway.kube.interface import Object
from slipway.kube.ownership import INSTANCE
from slipway.model.vim import KUBERNETES
from tests.functional.processes import Process
from tests.lab.kube.fake_kubelet import FakeNode, fake_node
from tests.lab.slipway_lab import SlipwayLab

T = TypeVar("T")
SAMPLE = Path(__file__).parents[3] / "samples" / "cnf"
VNFD_ID = "0d6f2c5e-4b7a-4e1c-9b52-6f0a3d1c7e21"  # of the sample


class CnfLab(SlipwayLab):
    sample, sample_id = SAMPLE, VNFD_ID
    definitions = ("Definitions/cnf_top.vnfd.yaml", "Definitions/cnf_types.yaml")

    def __init__(self, directory: Path, kubeconfig: str, namespace: str, node: FakeNode) -> None:
        self.kubeconfig, self.namespace, self.node = kubeconfig, namespace, node
        who = from_kubeconfig(kubeconfig)
        self.run_on_cluster(
            lambda api: api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        )
        access = {"client_certificate": who.client_certificate, "client_key": who.client_key, "namespace": namespace}
        vim = {"interfaceInfo": {"endpoint": who.server, "ssl_ca_cert": who.ca}, "accessInfo": access}
        super().__init__(directory, self.sample, {"name": "lab", "vimType": KUBERNETES, **vim})

    def start(self) -> None:
        self.process = Process("serve", self.directory, lease_seconds=5, allowed_networks="127.0.0.0/8")
        self.http = self.process.client()

    def variant(self, number: int, *changes: tuple[str, str, str]) -> str:
        """The VNFD id of the sample with other content: (file, what stands there, what is to stand there)."""
        tree, id_ = self.directory / f"variant-{number}", f"{self.sample_id[:-1]}{number + 5:x}"
        shutil.copytree(self.sample, tree)
        for file, old, new in (*((name, self.sample_id, id_) for name in self.definitions), *changes):
            text = (tree / file).read_text()
            assert old in text, f"{file} has no {old!r}"
            (tree / file).write_text(text.replace(old, new))
        return self.onboard(tree)

    def pods(self) -> Counter[str]:
        """VNFCs of the record, by VDU."""
        return Counter(str(one["vduId"]) for one in self.machines().values())

    def drift(self) -> list[str]:
        found = self.http.get(f"/slipway/v1/vnf_instances/{self.vnf}/drift", timeout=60).json()
        return list(found["problems"])

    def get(self, path: str) -> Object:
        """In the namespace of the CNF: "apps/v1/deployments/web"."""
        return self.run_on_cluster(lambda api: api.get(self._place(path)))

    def change_as_somebody(self, path: str, patch: Object) -> None:
        query, kind = {"fieldManager": "somebody"}, "application/merge-patch+json"
        self.run_on_cluster(lambda api: api._json("PATCH", self._place(path), query, patch, kind))

    def _place(self, path: str) -> str:
        group, version, plural, name = path.split("/") if path.count("/") == 3 else ("", *path.split("/"))
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return f"{root}/namespaces/{self.namespace}/{plural}/{name}"

    def left(self) -> list[str]:
        """Everything with the label of the VNF, of every kind, and all pods of its namespace."""

        async def look(api: Api) -> list[str]:
            found = list[str]()
            for resource in await api.discovery.everything():
                if "list" in resource.verbs:
                    ours = await api.list(resource.collection(), labelSelector=f"{INSTANCE}={self.vnf}")
                    found += (f"{resource.kind} {one['metadata']['name']}" for one in ours)
            pods = await api.list(f"/api/v1/namespaces/{self.namespace}/pods")
            return found + [f"Pod {one['metadata']['name']}" for one in pods]

        return self.run_on_cluster(look)

    def run_on_cluster(self, work: Callable[[Api], Awaitable[T]]) -> T:
        async def done() -> T:
            async with Api(from_kubeconfig(self.kubeconfig)) as api:
                return await work(api)

        return asyncio.run(done())


@contextmanager
def node_in_background(kubeconfig: str) -> Iterator[FakeNode]:
    """One that plays pods while a test waits for Slipway."""
    made = list[FakeNode]()
    ready, loop = threading.Event(), asyncio.new_event_loop()
    end = asyncio.Event()

    async def play() -> None:
        async with Api(from_kubeconfig(kubeconfig)) as api, fake_node(api) as node:
            made.append(node)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(play()))
    thread.start()
    try:
        assert ready.wait(60)
        yield made[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(60)
        loop.close()


def vnfcs(lab: CnfLab, vdu: str) -> dict[str, Any]:
    """Ids by name."""
    return {name: one["id"] for name, one in lab.machines().items() if one["vduId"] == vdu}
