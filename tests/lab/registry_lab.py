"""A real registry as a VNF and a cluster beside it, on one Slipway: what tests do to both.

The registry is Debian's: its package is in the VNF package, for machines need not reach a repository.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slipway.kube import paths
from slipway.kube.interface import Object
from slipway.kube.waiting import wait_for_pod
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.image.kubernetes import programs
from slipway.vim.sandbox.image.kubernetes.oci import Image, layer_of, write_archive
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.paths import default_cache
from tests.functional.next_package import NEXT_ID, OTHER_ID, next_package
from tests.lab.cluster_lab import PASSWORD, SAMPLE, ClusterLab, a_lab
from tests.lab.slipway_lab import INSTANCES

REGISTRY = Path(__file__).parents[2] / "samples" / "registry-sandbox"
DEBIAN = "Files/docker-registry.deb"
USER, SECRET = "puller", "let me: \"in\" % 'please'"
SLOT = "PrivateRegistryVDU-0"
INSTALLATION, CONNECTION = "private_registry_installation_param", "private_registry_connection_info"
ONE_WORKER = {
    "min_number_of_instances: 2": "min_number_of_instances: 1",
    "number_of_instances: 2": "number_of_instances: 1",
}


@dataclass
class RegistryLab:
    """One Slipway with two VNFs; `lab.vnf` is the one that is worked on."""

    lab: ClusterLab
    directory: Path
    proof: Path  # an archive with the image proof:1
    registry: str = ""
    cluster: str = ""

    @property
    def outputs(self) -> dict[str, Any]:
        found: dict[str, Any] = self.lab.http.get(f"{INSTANCES}/{self.registry}").json()
        outputs: dict[str, Any] = found["instantiatedVnfInfo"]["metadata"]["registry"]
        return outputs

    @property
    def server(self) -> str:
        return str(self.outputs["server"])

    def at_registry(self) -> ClusterLab:
        self.lab.vnf = self.registry
        return self.lab

    def at_cluster(self) -> ClusterLab:
        self.lab.vnf = self.cluster
        return self.lab

    def connection(self, **more: Any) -> dict[str, Any]:
        return {"connection_type": 1, "server": self.server, "username": USER, "password": SECRET,
                "certificate_path": "Files/registries/ca.crt", "image": "proof:1", **more}  # fmt: skip

    def skopeo(self, *words: str) -> subprocess.CompletedProcess[str]:
        """As a person uses it: with a file of logins, and the CA in a directory."""
        certificates = self.directory / "certificates"
        certificates.mkdir(exist_ok=True)
        (certificates / "ca.crt").write_text(self.outputs["ca"])
        login = base64.b64encode(f"{USER}:{SECRET}".encode()).decode()
        logins = self.directory / "auth.json"
        logins.write_text(json.dumps({"auths": {self.server: {"auth": login}}}))
        verb, *rest = (word.replace("CERTS", str(certificates)) for word in words)
        command = ["skopeo", "--command-timeout", "120s", verb, "--authfile", str(logins), *rest]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def install(self) -> None:
        """By HTTPS, with a login and a volume; the package's image proof:1 is in it."""
        self.lab.create()
        self.registry = self.lab.vnf
        asked = {"ssh_cp_name": "CP1", "ssh_username": "slipway", "ssh_password": PASSWORD, "source": "package",
                 "package_path": DEBIAN, "tls": {"names": ["registry.slipway.test"]}, "data_volume": "registryData",
                 "users": [{"username": USER, "password": SECRET}]}  # fmt: skip
        self.lab.run("instantiate", {"flavourId": "simple", "additionalParams": {INSTALLATION: asked}})

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
def registry_lab(directory: Path, engines: Engines) -> Iterator[RegistryLab]:
    """A Slipway with the registry's package, and nothing made yet."""
    if shutil.which("skopeo") is None:
        pytest.skip("no skopeo on this machine: lab/hosts/install brings it")
    program = ProgramCache(default_cache() / "kubernetes", print).built(programs.pause())
    pause = layer_of(directory / "proof.zst", {"pause": program})
    proof = directory / "proof.tar"
    write_archive(proof, [Image("registry.slipway.test/proof:1", [pause], {"Entrypoint": ["/pause"]})])
    tree = next_package(REGISTRY, directory, NEXT_ID, words={})
    (tree / "Files" / "images").mkdir(parents=True)
    shutil.copy(proof, tree / "Files" / "images" / "proof.tar")
    shutil.copy(debian_registry(directory), tree / DEBIAN)
    with a_lab(directory / "lab", engines) as lab:
        lab.vnfd = lab.onboard(tree)
        yield RegistryLab(lab, directory, proof)


def debian_registry(directory: Path) -> Path:
    """The distribution's package, from where this host has its own."""
    subprocess.run(["apt-get", "download", "-qq", "docker-registry"], cwd=directory, check=True)
    return next(directory.glob("docker-registry_*.deb"))
