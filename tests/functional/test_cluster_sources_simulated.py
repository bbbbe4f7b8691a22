"""Programs from packages and from files of the package, on simulated hosts."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from slipway.model.errors import BadRequest
from slipway.model.operation import OperationType
from tests.functional.cluster_rig import CLUSTER, cluster_rig, instantiate, out
from tests.functional.rig import settings_in

VERSION = "1.33.13"
FILES = {"Files/kubeadm": VERSION.encode(), "Files/kubelet": b"kubelet", "Files/images.tar": b"i" * 9_000_000,
         "Files/key.asc": b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n"}  # fmt: skip
PACKAGES = {"kind": "packages", "repository": "https://packages.example.com/v1.33", "signing_key_path": "Files/key.asc"}


def package_with(files: Mapping[str, bytes], directory: Path) -> Path:
    """The sample with files of its own."""
    sample = directory / "sample"
    shutil.copytree(CLUSTER, sample)
    for name, content in files.items():
        (sample / name).parent.mkdir(exist_ok=True)
        (sample / name).write_bytes(content)
    return sample


def files_of_the_package(**digests: str) -> dict[str, Any]:
    def entry(name: str, path: str) -> dict[str, str]:
        return {"name": name, "path": path, "sha256": digests.get(name) or hashlib.sha256(FILES[path]).hexdigest()}

    kubectl = {"name": "kubectl", "url": "https://files.example.com/kubectl", "sha256": "0" * 64}
    named = [entry("kubeadm", "Files/kubeadm"), entry("kubelet", "Files/kubelet"), entry("images", "Files/images.tar")]
    return {"kind": "files", "files": [*named, kubectl]}


@pytest.mark.parametrize("source", [PACKAGES, files_of_the_package()], ids=lambda source: str(source["kind"]))
async def test_a_cluster_gets_the_version_that_its_source_brings(source: dict[str, Any], tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.cluster(1, source=source, kubernetes_version=VERSION)
        (seen,) = rig.seen()
        assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in seen.nodes.values()} == {f"v{VERSION}"}
        await rig.completed(OperationType.SCALE, instance_id, out(1))
        await rig.check(instance_id)


async def test_a_wrong_digest_is_named_with_what_was_found(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(1, source=files_of_the_package(kubelet="b" * 64), kubernetes_version=VERSION)
        _, detail = await rig.failed(OperationType.INSTANTIATE, instance_id, request)
        assert "kubelet is not the file that was meant" in detail
        assert f"its SHA-256 digest is {hashlib.sha256(b'kubelet').hexdigest()}, and {'b' * 64} was expected" in detail


async def test_files_of_another_version_than_was_asked_for_are_refused(tmp_path: Path) -> None:
    """The image of the machine has 1.34.4 as well, but that is not where the programs should come from."""
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(1, source=files_of_the_package(), kubernetes_version="1.34.4")
        _, detail = await rig.failed(OperationType.INSTANTIATE, instance_id, request)
        assert f"has Kubernetes {VERSION}, and 1.34.4 is wanted" in detail


async def test_a_file_that_the_package_lacks_is_named(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(1, source=files_of_the_package(), kubernetes_version=VERSION)
        with pytest.raises(BadRequest, match=r"source\.files\[0\]\.path: the package has no file Files/"):
            await rig.rig.slipway.lcm.begin(OperationType.INSTANTIATE, instance_id, request)
