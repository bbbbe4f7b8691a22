"""A registry as a VNF in tests on whatever VIM: its package, and a real client of it.

The registry is Debian's: its package is in the VNF package, for machines need not reach a repository.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from slipway.vim.sandbox.image.kubernetes import programs
from slipway.vim.sandbox.image.kubernetes.oci import Image, layer_of, write_archive
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.paths import default_cache
from tests.functional.next_package import NEXT_ID, next_package
from tests.lab.slipway_lab import INSTANCES, SlipwayLab

DEBIAN = "Files/docker-registry.deb"
USER, SECRET = "puller", "let me: \"in\" % 'please'"
SLOT = "PrivateRegistryVDU-0"
INSTALLATION = "private_registry_installation_param"

Lab = TypeVar("Lab", bound=SlipwayLab)


@dataclass
class RegistryLab(Generic[Lab]):
    """`lab.vnf` is the VNF that is worked on; `registry` the one that is the registry."""

    lab: Lab
    directory: Path
    proof: Path  # an archive with the image proof:1
    registry: str = ""

    @property
    def outputs(self) -> dict[str, Any]:
        found: dict[str, Any] = self.lab.http.get(f"{INSTANCES}/{self.registry}").json()
        outputs: dict[str, Any] = found["instantiatedVnfInfo"]["metadata"]["registry"]
        return outputs

    @property
    def server(self) -> str:
        return str(self.outputs["server"])

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

    def push_and_pull(self) -> None:
        """What is pushed comes back, and what the package brought is there."""
        place = f"docker://{self.server}/pushed:1"
        pushed = self.skopeo("copy", "--dest-cert-dir=CERTS", f"oci-archive:{self.proof}", place)
        assert pushed.returncode == 0, pushed.stderr
        pulled = self.skopeo("copy", "--src-cert-dir=CERTS", place, f"dir:{self.directory / 'pulled'}")
        assert pulled.returncode == 0, pulled.stderr
        self.has_images("proof:1")

    def has_images(self, *images: str) -> None:
        for image in images:
            seen = self.skopeo("inspect", "--cert-dir=CERTS", "--raw", f"docker://{self.server}/{image}")
            assert seen.returncode == 0, seen.stderr


def installation(**login: str) -> dict[str, Any]:
    """With TLS, a login, and images on the volume."""
    asked = {"ssh_cp_name": "CP1", **login, "source": "package", "package_path": DEBIAN,
             "tls": {"names": ["registry.slipway.test"]}, "data_volume": "registryData",
             "users": [{"username": USER, "password": SECRET}]}  # fmt: skip
    return {INSTALLATION: asked}


def registry_package(sample: Path, directory: Path, words: Mapping[str, str]) -> tuple[Path, Path]:
    """A source tree with Debian's registry and an image to load, and that image's archive."""
    if shutil.which("skopeo") is None:
        pytest.skip("no skopeo on this machine: lab/hosts/install brings it")
    program = ProgramCache(default_cache() / "kubernetes", print).built(programs.pause())
    pause = layer_of(directory / "proof.zst", {"pause": program})
    proof = directory / "proof.tar"
    write_archive(proof, [Image("registry.slipway.test/proof:1", [pause], {"Entrypoint": ["/pause"]})])
    tree = next_package(sample, directory, NEXT_ID, words=words)
    (tree / "Files" / "images").mkdir(parents=True)
    shutil.copy(proof, tree / "Files" / "images" / "proof.tar")
    shutil.copy(debian_registry(directory), tree / DEBIAN)
    return tree, proof


def debian_registry(directory: Path) -> Path:
    """The distribution's package, from where this host has its own."""
    subprocess.run(["apt-get", "download", "-qq", "docker-registry"], cwd=directory, check=True)
    return next(directory.glob("docker-registry_*.deb"))
