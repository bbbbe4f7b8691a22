"""What the Kubernetes image is made of, as far as neither a compiler nor an engine is needed."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.checks import Host, cache_disk, clusters_inotify, conntrack
from slipway.vim.sandbox.image import recipes
from slipway.vim.sandbox.image.kubernetes import oci, programs
from slipway.vim.sandbox.image.kubernetes.compile import build_command, build_error, compile_program
from slipway.vim.sandbox.image.kubernetes.images import Images
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.image.kubernetes.programs import GO, Program
from slipway.vim.sandbox.image.kubernetes.versions import DEFAULT, RELEASES, releases
from slipway.vim.sandbox.image.process import Ended, run

PROGRAMS = [
    *(
        program
        for one in RELEASES.values()
        for program in (
            programs.servers(one),
            programs.command(one, "kubeadm"),
            programs.command(one, "kubectl"),
            programs.etcd(one.etcd),
            programs.etcdctl(one.etcd),
        )
    ),
    programs.coredns(),
    programs.flannel(),
    programs.flannel_plugin(),
    programs.pause(),
]
needs_zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd on this machine")


def nothing(line: str) -> None:
    pass


def test_the_usual_version_is_taken_unless_others_are_named() -> None:
    assert [one.version for one in releases(())] == [DEFAULT]
    assert [one.version for one in releases(["v1.34.4", "1.33.13", "1.34.4"])] == ["1.33.13", "1.34.4"]


def test_a_version_that_is_not_pinned_is_refused_with_those_that_are() -> None:
    with pytest.raises(VimError, match=r"1\.2\.3.*1\.33\.13, 1\.34\.4") as refused:
        releases(["1.2.3"])
    assert refused.value.fault is VimFault.PERMANENT


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.title)
def test_every_program_has_its_modules_pinned(program: Program) -> None:
    modules, sums = program.pins
    required = re.findall(r"^(?:require)?\s+(\S+\.\S+/\S+) (v\S+)", modules.read_text(), re.MULTILINE)
    replaced = dict(re.findall(r"^\s+(\S+) => \S+ (v\S+)", modules.read_text(), re.MULTILINE))
    known = set(re.findall(r"^(\S+) (v\S+?)(?:/go\.mod)? h1:", sums.read_text(), re.MULTILINE))
    assert {(name, replaced.get(name, version)) for name, version in required} <= known


def test_no_pin_is_left_over() -> None:
    wanted = {path for program in PROGRAMS for path in program.pins}
    assert {path for path in GO.rglob("*") if path.suffix in (".mod", ".sum")} == wanted


def test_an_image_of_other_versions_has_another_recipe() -> None:
    one, both = (recipes.kubernetes(releases(names)) for names in ((), ("1.33.13", "1.34.4")))
    assert one.digest == recipes.kubernetes(releases([DEFAULT])).digest
    assert len({one.file_name, both.file_name, recipes.machine().file_name}) == 3


def test_the_plain_machine_does_not_know_of_kubernetes() -> None:
    plain, full = recipes.machine(), recipes.kubernetes(releases(()))
    assert not any("kubernetes" in str(path.relative_to(recipes.HERE)) for path in plain.inputs)
    assert set(plain.inputs) < set(full.inputs)
    assert full.packages[: len(plain.packages)] == plain.packages


def test_programs_are_static_stripped_pinned_and_know_their_version() -> None:
    words = build_command("go", programs.servers(RELEASES["1.34.4"]), Path("made"))
    assert words[:2] == ["go", "build"]
    assert {"-mod=readonly", "-trimpath"} <= set(words)
    flags = words[words.index("-ldflags") + 1]
    assert flags.startswith("-s -w ")
    assert "-X k8s.io/component-base/version.gitVersion=v1.34.4" in flags


@pytest.mark.parametrize(
    ("said", "fault", "told"),
    [
        ("write /x: no space left on device", VimFault.QUOTA, "free some room"),
        ("go: a@v1: dial tcp: lookup proxy: no such host", VimFault.TEMPORARY, "GOPROXY"),
        ("verifying a@v1: checksum mismatch", VimFault.PERMANENT, "modcache"),
        ("main.go:1: what is this?", VimFault.PERMANENT, "ended with 1"),
    ],
)
def test_what_go_says_has_its_class_and_cure(said: str, fault: VimFault, told: str) -> None:
    error = build_error("build it", Ended(1, [said]))
    assert error.fault is fault
    assert told in error.detail


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toolchain that does what a test writes into it."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")
    return place / "go"


def write_go(path: Path, build: str, version: str = "go1.24.1") -> None:
    path.write_text(f"#!/bin/sh\ncase $1 in env) echo {version} ;; build) {build} ;; esac\n")
    path.chmod(0o755)


def test_a_program_is_built_where_its_modules_are_pinned(go: Path, tmp_path: Path) -> None:
    # The word after -o is where it goes.
    write_go(go, 'while [ "$1" != -o ]; do shift; done; cat go.mod go.sum main.go >"$2"')
    said: list[str] = []
    compile_program(programs.coredns(), tmp_path / "programs" / "coredns", said.append)
    made = (tmp_path / "programs" / "coredns").read_text()
    assert "module slipway/coredns" in made
    assert "package main" in made
    assert [path.name for path in (tmp_path / "programs").iterdir()] == ["coredns"]
    assert said[0].startswith("building coredns 1.12.1 from Go modules: some minutes")


def test_a_build_that_fails_keeps_nothing(go: Path, tmp_path: Path) -> None:
    write_go(go, "echo 'dial tcp: i/o timeout'; exit 1")
    with pytest.raises(VimError, match="can't be reached"):
        compile_program(programs.pause(), tmp_path / "programs" / "pause", nothing)
    assert list((tmp_path / "programs").iterdir()) == []


@pytest.mark.parametrize("version", ["go1.19.8", "devel", None])
def test_no_toolchain_or_an_old_one_names_its_cure(go: Path, tmp_path: Path, version: str | None) -> None:
    if version:
        write_go(go, "false", version)
    elif shutil.which("go"):
        pytest.skip("there is a Go beside Debian's programs")
    with pytest.raises(VimError, match=r"install Go 1\.24 or newer"):
        compile_program(programs.pause(), tmp_path / "pause", nothing)


def test_a_program_that_takes_too_long_is_ended() -> None:
    heard: list[str] = []
    with pytest.raises(VimError, match=r"sh did not end within 0 s"):
        run(["sh", "-c", "echo begun; exec sleep 30"], heard.append, 0.3)
    assert heard == ["begun"]


class PaperWorkshop(ProgramCache):
    """Its programs hold no more than their name."""

    def built(self, program: Program) -> Path:
        path = self._place(program)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program.title)
        return path


@pytest.fixture
def built(tmp_path: Path) -> Images:
    """All images of all releases."""
    (tmp_path / "work").mkdir()
    with tarfile.open(tmp_path / "tools.tar", "w"):
        pass
    return Images(releases(RELEASES), PaperWorkshop(tmp_path, nothing), tmp_path / "tools.tar", tmp_path / "work")


@needs_zstd
def test_images_have_the_names_that_kubeadm_and_flannel_ask_for(built: Images) -> None:
    names = {one.name.removeprefix("registry.slipway.test/") for one in built.of_nodes()}
    assert names == {
        *("kube-proxy:v1.33.13", "kube-proxy:v1.34.4", "pause:3.10", "pause:3.10.1"),
        *("coredns:v1.12.0", "coredns:v1.12.1", "flannel:v0.26.7", "flannel-cni-plugin:v0.26.7", "tools:1"),
    }
    masters = {one.name.removeprefix("registry.slipway.test/") for one in built.of_masters()}
    servers = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    assert masters == {
        *(f"{name}:v{version}" for name in servers for version in RELEASES),
        *("etcd:3.5.24-0", "etcd:3.6.5-0"),
    }


@needs_zstd
def test_an_archive_has_what_images_share_once_and_is_the_same_each_time(built: Images, tmp_path: Path) -> None:
    first, second = tmp_path / "a.tar", tmp_path / "b.tar"
    oci.write_archive(first, built.of_masters())
    oci.write_archive(second, built.of_masters())
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as tar:
        files = {entry.name: _content(tar, entry) for entry in tar}
        assert len(files) == len(tar.getmembers())
    for manifest in json.loads(files["index.json"])["manifests"]:
        assert manifest["annotations"]["io.containerd.image.name"].startswith("registry.slipway.test/")
        document = json.loads(files[_blob(manifest["digest"])])
        config = json.loads(files[_blob(document["config"]["digest"])])
        assert len(config["rootfs"]["diff_ids"]) == len(document["layers"])
        assert all(len(files[_blob(one["digest"])]) == one["size"] for one in document["layers"])


@needs_zstd
def test_a_layer_belongs_to_root_and_has_no_times(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("x")
    entries: dict[str, Path | oci.SymbolicLink | None] = {
        "usr/bin/one": tmp_path / "program",
        "usr/bin/two": oci.SymbolicLink("one"),
        "tmp": None,
    }
    made = oci.layer_of(tmp_path / "layer.zst", entries)
    assert made == oci.layer_of(tmp_path / "layer.zst", entries)
    plain = tmp_path / "plain.tar"
    assert run([oci.zstd(), "-qdf", str(made.file), "-o", str(plain)], nothing, 30).code == 0
    with tarfile.open(plain) as tar:
        found = {entry.name: (entry.mode, entry.uid, entry.mtime, entry.linkname) for entry in tar}
    assert found == {
        "tmp": (0o1777, 0, 0, ""),
        "usr": (0o755, 0, 0, ""),
        "usr/bin": (0o755, 0, 0, ""),
        "usr/bin/one": (0o755, 0, 0, ""),
        "usr/bin/two": (0o755, 0, 0, "one"),
    }


def test_a_tar_is_copied_without_what_is_unwanted(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "full.tar", "w") as tar:
        for name in ("./usr/bin/sh", "./usr/share", "./usr/share/doc", "./usr/shared"):
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    oci.without(tmp_path / "full.tar", tmp_path / "small.tar", ["./usr/share/"])
    with tarfile.open(tmp_path / "small.tar") as tar:
        assert tar.getnames() == ["./usr/bin/sh", "./usr/shared"]


def test_what_clusters_lack_comes_with_its_cure_and_does_not_hinder_machines(tmp_path: Path) -> None:
    host = Host(tmp_path, is_root=True)
    bare = [clusters_inotify(host), conntrack(host)]
    assert all(one.optional and not one.fine and one.cure for one in bare)
    for path, value in (("fs/inotify/max_user_instances", 8192), ("net/netfilter/nf_conntrack_max", 1 << 17)):
        file = tmp_path / "proc/sys" / path
        file.parent.mkdir(parents=True)
        file.write_text(f"{value}\n")
    full = [clusters_inotify(host), conntrack(host)]
    assert [(one.fine, one.cure) for one in full] == [(True, "")] * 2
    assert "GB free" in cache_disk(tmp_path / "not" / "made").detail


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(entry)
    assert content is not None
    return content.read()
