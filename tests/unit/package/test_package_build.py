"""Building packages, the samples among them."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from slipway.model.errors import PackageError
from slipway.package.build import build_package
from slipway.package.reader import Package, read_package
from tests.unit.package.csars import META, SCRIPT, VNFD, valid_files

SAMPLES = Path(__file__).parents[3] / "samples"


def source(folder: Path, files: dict[str, bytes] | None = None) -> Path:
    tree = folder / "source"
    for name, content in (valid_files() if files is None else files).items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tree


def without_meta() -> dict[str, bytes]:
    return {name: content for name, content in valid_files().items() if name != META}


def test_a_package_is_built_and_can_be_read(tmp_path: Path) -> None:
    target = tmp_path / "out.csar"
    package = build_package(source(tmp_path), target)
    assert package.path == target
    assert read_package(target) == package


def test_a_chart_of_the_sample_is_its_directory_and_no_manifest(tmp_path: Path) -> None:
    flavour = build_package(SAMPLES / "cnf-helm", tmp_path / "out.csar").descriptor.flavours["simple"]
    assert flavour.charts == ("Files/charts/web",)
    assert flavour.manifests == ()


def test_stale_digests_are_computed_anew(tmp_path: Path) -> None:
    tree = source(tmp_path)
    (tree / SCRIPT).write_bytes(b"changed")
    package = build_package(tree, tmp_path / "out.csar")
    meta = package.vnfd_files()[META].decode()
    assert "Created-by: test" in meta
    assert meta.count("Hash: ") == 2
    assert package.artifacts[0].media_type == "text/plain"


def test_the_same_tree_gives_the_same_bytes(tmp_path: Path) -> None:
    tree = source(tmp_path)
    build_package(tree, tmp_path / "one.csar")
    os.utime(tree / SCRIPT, (1, 1))
    build_package(tree, tmp_path / "two.csar")
    assert (tmp_path / "one.csar").read_bytes() == (tmp_path / "two.csar").read_bytes()


def test_executable_bits_are_kept(tmp_path: Path) -> None:
    tree = source(tmp_path)
    (tree / SCRIPT).chmod(0o755)
    build_package(tree, tmp_path / "out.csar")
    with zipfile.ZipFile(tmp_path / "out.csar") as archive:
        modes = {info.filename: (info.external_attr >> 16) & 0o777 for info in archive.infolist()}
    assert (modes[SCRIPT], modes[VNFD]) == (0o755, 0o644)


def test_without_a_meta_file_the_entry_is_found(tmp_path: Path) -> None:
    assert build_package(source(tmp_path, without_meta()), tmp_path / "out.csar").vnfd_paths == (VNFD,)


def test_without_a_meta_file_two_candidates_are_refused(tmp_path: Path) -> None:
    files = {**without_meta(), "Definitions/other.yaml": valid_files()[VNFD]}
    with pytest.raises(PackageError, match="is ambiguous"):
        build_package(source(tmp_path, files), tmp_path / "out.csar")


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    tree = source(tmp_path, {**valid_files(), ".git/config": b"secret", "Scripts/__pycache__/a.pyc": b""})
    package = build_package(tree, tmp_path / "out.csar")
    assert [one.artifact_path for one in package.artifacts] == [SCRIPT]


def test_links_are_refused(tmp_path: Path) -> None:
    tree = source(tmp_path)
    (tree / "Scripts" / "link.sh").symlink_to("/etc/passwd")
    with pytest.raises(PackageError, match="symbolic link"):
        build_package(tree, tmp_path / "out.csar")


def test_special_files_are_refused(tmp_path: Path) -> None:
    tree = source(tmp_path)
    os.mkfifo(tree / "Scripts" / "pipe")
    with pytest.raises(PackageError, match="special file"):
        build_package(tree, tmp_path / "out.csar")


def test_a_failed_build_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    tree, target = source(tmp_path), tmp_path / "out" / "out.csar"
    target.parent.mkdir()
    target.write_bytes(b"old")
    (tree / VNFD).write_text("topology_template: nonsense")
    with pytest.raises(PackageError):
        build_package(tree, target)
    assert list(target.parent.iterdir()) == [target]
    assert target.read_bytes() == b"old"


def test_a_source_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="not a directory"):
        build_package(tmp_path / "absent", tmp_path / "out.csar")


@pytest.mark.parametrize("sample", [path.name for path in sorted(SAMPLES.iterdir()) if path.is_dir()])
def test_samples_build_and_read(sample: str, tmp_path: Path) -> None:
    package = build_package(SAMPLES / sample, tmp_path / "sample.csar")
    assert package.descriptor.flavours


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return build_package(SAMPLES / "cluster-simulated", tmp_path_factory.mktemp("sample") / "cluster.csar")


@pytest.mark.parametrize(("flavour_id", "masters"), [("simple", 1), ("ha", 3)])
def test_the_sample_cluster_grows_from_two_to_twelve_workers(flavour_id: str, masters: int, cluster: Package) -> None:
    flavour = cluster.descriptor.flavour(flavour_id)
    level = flavour.level(None)
    counts = [flavour.members("workerNode", {"workers": steps}, level) for steps in (0, 1, 10)]
    assert counts == [2, 3, 12]
    assert flavour.members("masterNode", level.scale, level) == masters
    large = flavour.level("large")
    assert flavour.members("workerNode", large.scale, large) == 6


def test_the_sample_cluster_has_its_network_volume_and_rule(cluster: Package) -> None:
    descriptor = cluster.descriptor
    flavour = descriptor.flavours["ha"]
    assert descriptor.default_flavour == "simple"
    assert descriptor.vnfd_version == "1.0"
    assert flavour.virtual_links["clusterNet"].cidr == "10.10.0.0/24"
    assert {point.vdu: point.virtual_link for point in flavour.connection_points.values()} == {
        "masterNode": "clusterNet",
        "workerNode": "clusterNet",
    }
    assert flavour.vdus["masterNode"].storages == ("masterData",)
    assert [(rule.apart, rule.targets) for rule in flavour.placement] == [(True, ("masterNode",))]
    assert flavour.hooks == {}


def test_a_sample_can_be_built_from_a_read_only_copy(tmp_path: Path) -> None:
    tree = tmp_path / "copy"
    shutil.copytree(SAMPLES / "cluster-simulated", tree)
    tree.chmod(0o555)
    try:
        assert build_package(tree, tmp_path / "out.csar").checksum
    finally:
        tree.chmod(0o755)
