"""Programs from packages and from files of the package, on simulated hosts."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from slipway.kube.nodes import kubelet_version
from slipway.model.errors import BadRequest
from slipway.model.operation import OperationType, State
from slipway.model.requests import ChangePackageRequest
from tests.functional.cluster_rig import CLUSTER, ClusterRig, cluster_rig, instantiate, out
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import settings_in

VERSION = "1.33.13"
FILES = {"Files/kubeadm": VERSION.encode(), "Files/kubelet": b"kubelet", "Files/images.tar": b"i" * 9_000_000,
         "Files/key.asc": b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n"}  # fmt: skip
NEXT = "1.34.9"
SMALL = {**FILES, "Files/images.tar": b"images"}
NEXT_SMALL = {**SMALL, "Files/kubeadm": NEXT.encode(), "Files/kubelet": b"next"}
PACKAGES = {"kind": "packages", "repository": "https://packages.example.com/v1.33", "signing_key_path": "Files/key.asc"}

NEXT_PACKAGES = {**PACKAGES, "repository": "https://packages.example.com/v1.34"}


def package_with(files: Mapping[str, bytes], directory: Path) -> Path:
    """The sample with files of its own."""
    sample = directory / "sample"
    shutil.copytree(CLUSTER, sample)
    for name, content in files.items():
        (sample / name).parent.mkdir(exist_ok=True)
        (sample / name).write_bytes(content)
    return sample


def versions_of(rig: ClusterRig) -> set[str | None]:
    (seen,) = rig.seen()
    return {kubelet_version(node) for node in seen.nodes.values()}


def files_of(files: Mapping[str, bytes], **digests: str) -> dict[str, Any]:
    def entry(name: str, path: str) -> dict[str, str]:
        return {"name": name, "path": path, "sha256": digests.get(name) or hashlib.sha256(files[path]).hexdigest()}

    kubectl = {"name": "kubectl", "url": "https://files.example.com/kubectl", "sha256": "0" * 64}
    named = [entry("kubeadm", "Files/kubeadm"), entry("kubelet", "Files/kubelet"), entry("images", "Files/images.tar")]
    return {"kind": "files", "files": [*named, kubectl]}


@pytest.mark.parametrize("source", [PACKAGES, files_of(FILES)], ids=lambda source: str(source["kind"]))
async def test_a_cluster_gets_the_version_that_its_source_brings(source: dict[str, Any], tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.cluster(1, source=source, kubernetes_version=VERSION)
        assert versions_of(rig) == {f"v{VERSION}"}
        await rig.completed(OperationType.SCALE, instance_id, out(1))
        await rig.check(instance_id)


@pytest.mark.parametrize("masters", [1, 3])
@pytest.mark.parametrize("kind", ["packages", "files"])
async def test_a_cluster_comes_to_the_version_that_another_source_brings(
    kind: str, masters: int, tmp_path: Path
) -> None:
    """A version that the machines' image does not have, and whose files only the new package brings."""
    first, later = (PACKAGES, NEXT_PACKAGES) if kind == "packages" else (files_of(SMALL), files_of(NEXT_SMALL))
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(SMALL, tmp_path)) as rig:
        instance_id = await rig.cluster(masters, source=first, kubernetes_version=VERSION)
        with_files = package_with(NEXT_SMALL, tmp_path / "later")
        await onboard_next(rig.rig, with_files, tmp_path, NEXT_ID)
        given = {"k8s_cluster_installation_param": {"kubernetes_version": NEXT, "source": later}}
        await rig.completed(
            OperationType.CHANGE_VNFPKG,
            instance_id,
            ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=given),
        )
        assert versions_of(rig) == {f"v{NEXT}"}
        await rig.completed(OperationType.SCALE, instance_id, out(1))
        assert versions_of(rig) == {f"v{NEXT}"}
        await rig.check(instance_id)


async def test_files_of_another_version_stop_an_upgrade_while_it_can_be_rolled_back(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(SMALL, tmp_path)) as rig:
        instance_id = await rig.cluster(1, source=files_of(SMALL), kubernetes_version=VERSION)
        await onboard_next(rig.rig, package_with(NEXT_SMALL, tmp_path / "later"), tmp_path, NEXT_ID)
        given: dict[str, dict[str, Any]] = {
            "k8s_cluster_installation_param": {"kubernetes_version": "1.34.4", "source": files_of(NEXT_SMALL)}
        }
        request = ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=given)
        operation, detail = await rig.failed(OperationType.CHANGE_VNFPKG, instance_id, request)
        assert f"kubeadm is v{NEXT}, and v1.34.4 is wanted" in detail
        assert "name the files of Kubernetes 1.34.4 in source.files" in detail
        await rig.rig.slipway.lcm.roll_back(operation.id)
        assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
        assert versions_of(rig) == {f"v{VERSION}"}
        # The same files under their right name.
        given["k8s_cluster_installation_param"]["kubernetes_version"] = NEXT
        await rig.completed(OperationType.CHANGE_VNFPKG, instance_id, request)
        assert versions_of(rig) == {f"v{NEXT}"}
        await rig.check(instance_id)


async def test_a_wrong_digest_is_named_with_what_was_found(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(SMALL, tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(1, source=files_of(SMALL, kubelet="b" * 64), kubernetes_version=VERSION)
        _, detail = await rig.failed(OperationType.INSTANTIATE, instance_id, request)
        assert "kubelet is not the file that was meant" in detail
        assert f"its SHA-256 digest is {hashlib.sha256(b'kubelet').hexdigest()}, and {'b' * 64} was expected" in detail


async def test_files_of_another_version_than_was_asked_for_are_refused(tmp_path: Path) -> None:
    """The image of the machine has 1.34.4 as well, but that is not where the programs should come from."""
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(SMALL, tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(1, source=files_of(SMALL), kubernetes_version="1.34.4")
        _, detail = await rig.failed(OperationType.INSTANTIATE, instance_id, request)
        assert f"has Kubernetes {VERSION}, and 1.34.4 is wanted" in detail


async def test_a_file_that_the_package_lacks_is_named(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(1, source=files_of(FILES), kubernetes_version=VERSION)
        with pytest.raises(BadRequest, match=r"source\.files\[0\]\.path: the package has no file Files/"):
            await rig.rig.slipway.lcm.start_operation(OperationType.INSTANTIATE, instance_id, request)
