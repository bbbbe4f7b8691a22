"""A real registry as a VNF and a cluster beside it, on one Slipway with sandbox machines: what tests do to both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.kube import paths
from slipway.kube.interface import Object
from slipway.kube.waiting import wait_for_pod
from slipway.vim.sandbox.engines import Engines
from tests.functional.next_package import OTHER_ID, next_package
from tests.lab.cluster_lab import ONE_WORKER, PASSWORD, SAMPLE, ClusterLab, a_lab
from tests.lab.registry_lab import SECRET, USER, RegistryLab, installation, registry_package
from tests.lab.slipway_lab import INSTANCES

REGISTRY = Path(__file__).parents[2] / "samples" / "registry-sandbox"
CONNECTION = "private_registry_connection_info"


@dataclass
class RegistryAndCluster(RegistryLab[ClusterLab]):
    """`lab.vnf` is the one that is worked on."""

    cluster: str = ""

    def at_registry(self) -> ClusterLab:
        self.lab.vnf = self.registry
        return self.lab

    def at_cluster(self) -> ClusterLab:
        self.lab.vnf = self.cluster
        return self.lab

    def connection(self, **more: Any) -> dict[str, Any]:
        return {"connection_type": 1, "server": self.server, "username": USER, "password": SECRET,
                "certificate_path": "Files/registries/ca.crt", "image": "proof:1", **more}  # fmt: skip

    def install(self) -> None:
        """By HTTPS, with a login and a volume; the package's image proof:1 is in it."""
        self.lab.create()
        self.registry = self.lab.vnf
        asked = installation(ssh_username="slipway", ssh_password=PASSWORD)
        self.lab.run("instantiate", {"flavourId": "simple", "additionalParams": asked})

    def create_cluster(self) -> None:
        """Of a package that has the registry's CA."""
        tree = next_package(SAMPLE, self.directory, OTHER_ID, words=ONE_WORKER)
        (tree / "Files" / "registries").mkdir(parents=True)
        (tree / "Files" / "registries" / "ca.crt").write_text(self.outputs["ca"])
        self.lab.vnfd = self.lab.onboard(tree)
        self.lab.create()
        self.cluster = self.lab.vnf

    def modify(self, registries: list[dict[str, Any]], state: str = "COMPLETED") -> dict[str, Any]:
        lab = self.at_cluster()
        body = {"vnfConfigurableProperties": {CONNECTION: registries}}
        answer = lab.http.patch(f"{INSTANCES}/{lab.vnf}", json=body)
        assert answer.status_code == 202, answer.text
        return lab.ended(answer.headers["location"].rpartition("/")[2], state, 300)

    def start_pod(self, slot: str, image: str) -> str:
        """A pod on that node, whose image is in no other place; its name."""
        lab = self.at_cluster()
        nodes = [node["metadata"]["name"] for node in lab.kube(lambda api: api.list("/api/v1/nodes"))]
        container = {"name": "proof", "image": f"{self.server}/{image}", "imagePullPolicy": "Always"}
        spec = {"nodeName": next(name for name in nodes if name.startswith(slot.lower())), "containers": [container]}
        name = f"proof-{slot.lower()}"
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
        lab.kube(lambda api: api.apply(pod))
        lab.kube(lambda api: wait_for_pod(api, "default", name, 120))
        return name

    def pod(self, name: str) -> Object:
        return self.at_cluster().kube(lambda api: api.get(paths.pod("default", name)))

    def remove_pod(self, name: str) -> None:
        self.at_cluster().kube(lambda api: api.delete(paths.pod("default", name), grace=0))

    def run_pod(self, slot: str, image: str) -> None:
        self.remove_pod(self.start_pod(slot, image))


@contextmanager
def registry_and_cluster(directory: Path, engines: Engines) -> Iterator[RegistryAndCluster]:
    """A Slipway with the registry's package, and nothing made yet."""
    tree, proof = registry_package(REGISTRY, directory, {})
    with a_lab(directory / "lab", engines) as lab:
        lab.vnfd = lab.onboard(tree)
        yield RegistryAndCluster(lab, directory, proof)
