"""Real clusters whose programs come from elsewhere: packages, files, and a script of the package's own."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slipway.cluster.source_parameters import NEEDED_FILES
from slipway.cluster.steps.machine import line
from slipway.cluster.steps.setup import exports
from slipway.cluster.steps.sources import APT_LIST
from slipway.kube import paths
from slipway.kube.nodes import kubelet_version
from slipway.kube.waiting import wait_for_pod
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.image import recipes
from slipway.vim.sandbox.image.build import cached_image
from slipway.vim.sandbox.image.kubernetes import programs
from slipway.vim.sandbox.image.kubernetes.oci import Image, layer_of, write_archive
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.image.kubernetes.versions import RELEASES, releases
from slipway.vim.sandbox.paths import default_cache
from tests.functional.next_package import NEXT_ID, OTHER_ID, next_package
from tests.lab.cluster_lab import ONE_WORKER, SAMPLE, ClusterLab, parameters
from tests.lab.conftest import VERSIONS
from tests.lab.file_server import PASSWORD, USER, Server, serving
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="sources")

VERSION, NEXT = VERSIONS
CIDR, GATEWAY = "10.207.77.0/24", "10.207.77.1"
REPOSITORY_MAKER = Path(__file__).parents[2] / "lab" / "kubernetes" / "packages"
WORDS = {
    **ONE_WORKER,
    "ipv4\n                dhcp_enabled": f"ipv4\n                cidr: {CIDR}\n                dhcp_enabled",
}


@dataclass(frozen=True)
class Setting:
    lab: ClusterLab
    server: Server
    programs: dict[str, Path]
    next_vnfd: str

    @property
    def place(self) -> str:
        return f"{GATEWAY}:{self.server.server_address[1]}"

    def file(self, name: str, **more: str) -> dict[str, str]:
        """An entry of source.files, by URL unless told otherwise."""
        given = {"name": name, "sha256": digest(self.programs[name]), **more}
        return given if "path" in more else {"url": f"http://{self.place}/{name}", **given}


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory, lab: ClusterLab) -> Iterator[Setting]:
    tmp_path = tmp_path_factory.mktemp("setting")
    program_cache = ProgramCache(default_cache() / "kubernetes", print)
    found = program_cache.kubernetes(RELEASES[VERSION]).files
    web = tmp_path / "web"
    for version, name in ((VERSION, "apt"), (NEXT, "apt-next")):
        subprocess.run([sys.executable, REPOSITORY_MAKER, version, web / name], check=True)
    pause = layer_of(tmp_path / "proof.zst", {"pause": program_cache.built(programs.pause())})
    proof = Image("registry.slipway.test/proof:1", [pause], {"Entrypoint": ["/pause"]})
    tree = next_package(SAMPLE, tmp_path, NEXT_ID, words=WORDS)
    (tree / "Files").mkdir(exist_ok=True)
    (tree / "Files" / "key.asc").write_bytes((web / "apt" / "key.asc").read_bytes())
    (tree / "Files" / "kubeadm").write_bytes(found["kubeadm"].read_bytes())
    write_archive(tree / "Files" / "images.tar", [proof])
    (web / "kubectl").symlink_to(found["kubectl"])
    (web / "kubelet").symlink_to(found["kubelet"])
    (web / "kubeadm").symlink_to(found["kubeadm"])
    others = programs_of_the_image(web)
    later = next_package(SAMPLE, tmp_path, OTHER_ID, words=WORDS)
    (later / "Files").mkdir(exist_ok=True)
    (later / "Files" / "key.asc").write_bytes((web / "apt-next" / "key.asc").read_bytes())
    lab.vnfd, next_vnfd = lab.onboard(tree), lab.onboard(later)
    with serving(GATEWAY, web, {"proof:1": proof}) as server:
        yield Setting(lab, server, {**found, **others, "images": tree / "Files" / "images.tar"}, next_vnfd)


def test_built_from_packages(setting: Setting) -> None:
    lab = setting.lab
    lab.create()
    source = {"kind": "packages", "repository": f"http://{setting.place}/apt", "signing_key_path": "Files/key.asc"}
    registry = {"connection_type": 0, "server": setting.place, "username": USER, "password": PASSWORD}
    asked = parameters(source=source, kubernetes_version=VERSION, private_registry_connection_info=[registry])
    lab.run("instantiate", {"flavourId": "simple", "additionalParams": asked}, within=900)
    assert lab.nodes() == {"masternode-0": True, "workernode-0": True}
    for slot in lab.machines():
        assert lab.inside(slot, "dpkg-query", "--search", "/usr/bin/kubeadm").startswith("kubeadm:")
        assert lab.inside(slot, "apt-mark", "showhold").split() == ["kubeadm", "kubectl", "kubelet"]
        assert lab.inside(slot, "kubelet", "--version").strip() == f"Kubernetes v{VERSION}"


needs_cluster = needs(test_built_from_packages)


@needs_cluster
def test_a_pod_pulls_from_a_registry_that_wants_a_login(setting: Setting) -> None:
    lab = setting.lab
    assert lab.inside("workerNode-0", "stat", "-c", "%a %U", "/etc/containerd/config.toml").split() == ["600", "root"]
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "proof", "namespace": "default"},
        "spec": {"containers": [{"name": "proof", "image": f"{setting.place}/proof:1"}]},
    }
    lab.kube(lambda api: api.apply(pod))
    lab.kube(lambda api: wait_for_pod(api, "default", "proof", 90))
    assert any(path.startswith("/v2/proof/blobs/") for path in setting.server.asked)
    lab.kube(lambda api: api.delete(paths.pod("default", "proof")))


@needs_cluster
def test_a_wrong_digest_is_refused_and_leaves_nothing(setting: Setting) -> None:
    lab = setting.lab
    wrong = [
        setting.file("kubelet"),
        setting.file("kubectl", sha256="b" * 64),
        setting.file("kubeadm", path="Files/kubeadm"),
    ]
    operation = lab.run("scale", lab.scale("SCALE_OUT", additionalParams=from_files(wrong)), "FAILED_TEMP")
    detail = operation["error"]["detail"]
    assert (
        f"kubectl is not the file that was meant: its SHA-256 digest is {digest(setting.programs['kubectl'])}" in detail
    )
    assert f"and {'b' * 64} was expected" in detail
    lab.decide(operation["id"], "rollback", "ROLLED_BACK")
    assert lab.nodes() == {"masternode-0": True, "workernode-0": True}


@needs_cluster
def test_a_worker_from_files(setting: Setting) -> None:
    """Partly from URLs, partly from the package: more than a step could hold at once."""
    lab = setting.lab
    of_package = [setting.file("kubeadm", path="Files/kubeadm"), setting.file("images", path="Files/images.tar")]
    fetched = ("kubelet", "kubectl", "containerd", "runc", "cni-plugins", "crictl")
    asked = from_files([*(setting.file(name) for name in fetched), *of_package])
    lab.run("scale", lab.scale("SCALE_OUT", additionalParams=asked))
    assert lab.nodes()["workernode-1"]
    assert digest_on(lab, "workerNode-1", "/usr/bin/kubeadm") == digest(setting.programs["kubeadm"])
    assert digest_on(lab, "workerNode-1", "/usr/bin/kubelet") == digest(setting.programs["kubelet"])
    assert "registry.slipway.test/proof:1" in lab.inside("workerNode-1", "ctr", "-n", "k8s.io", "images", "ls", "-q")
    running = lab.inside("workerNode-1", "systemctl", "show", "--property=ExecStart", "--value", "containerd")
    assert "path=/usr/local/bin/containerd" in running
    assert lab.inside("workerNode-1", "/usr/local/bin/crictl").strip() == "crictl for tests"
    assert lab.inside("workerNode-1", "ls", "/opt/cni/bin/proof", "/usr/local/sbin/runc")
    left = lab.inside("workerNode-1", "ls", "/var/lib/slipway/files").split()
    assert sorted(left) == sorted(f"{entry['sha256']}.done" for entry in asked[KEY]["source"]["files"])


@needs(test_a_worker_from_files)
def test_a_machine_without_units_gets_them(setting: Setting) -> None:
    lab, kubelet = setting.lab, setting.file("kubelet")
    units = "/usr/lib/systemd/system/kubelet.service"
    lab.inside("workerNode-1", "rm", "-r", units, f"{units}.d", f"/var/lib/slipway/files/{kubelet['sha256']}.done")
    command = line("install_programs", "", "kubelet", kubelet["sha256"], kubelet["url"])
    assert _execute(lab, "workerNode-1", command) == (0, "")
    lab.inside("workerNode-1", "systemctl", "daemon-reload")
    lab.inside("workerNode-1", "systemctl", "restart", "kubelet")
    assert "KUBELET_KUBEADM_ARGS" in lab.inside("workerNode-1", "systemctl", "cat", "kubelet")
    assert lab.inside("workerNode-1", "systemctl", "is-active", "kubelet").strip() == "active"


@needs(test_a_worker_from_files)
def test_what_cannot_be_fetched_is_named(setting: Setting) -> None:
    lab, before = setting.lab, digest_on(setting.lab, "workerNode-1", "/usr/bin/kubectl")
    for url in (
        f"http://{GATEWAY}:9/kubectl",
        f"http://{setting.place}/nothing",
        f"http://{setting.place}/elsewhere/passwd",
    ):
        code, printed = _execute(lab, "workerNode-1", line("install_programs", "", "kubectl", "c" * 64, url))
        assert code != 0
        assert f"kubectl can't be fetched from {url}" in printed
    assert digest_on(lab, "workerNode-1", "/usr/bin/kubectl") == before
    assert "c" * 64 not in lab.inside("workerNode-1", "ls", "/var/lib/slipway/files")


@needs_cluster
def test_a_repository_that_nobody_known_has_signed_is_refused(setting: Setting) -> None:
    """The machine's own keys do not know this one."""
    lab = setting.lab
    lab.inside("workerNode-0", "sed", "-i", "s/\\[.*\\] //", APT_LIST)
    code, printed = _execute(lab, "workerNode-0", line("packages", VERSION, "install", *NEEDED_FILES))
    assert code != 0
    assert "NO_PUBKEY" in printed


@needs_cluster
def test_a_proxy_is_asked_for_what_is_elsewhere(setting: Setting) -> None:
    lab, environment = setting.lab, exports({"HTTP_PROXY": f"http://me:hills@{setting.place}"})
    lab.inside("workerNode-0", "sh", "-c", 'printf %s "$1" >/etc/slipway/environment', "sh", environment)
    for command in (
        line("install_programs", "", "kubectl", "c" * 64, "http://elsewhere.test/kubectl"),
        line("packages", VERSION, "install", *NEEDED_FILES),
    ):
        code, printed = _execute(lab, "workerNode-0", command)
        assert code != 0
        assert "hills" not in printed
    assert "http://elsewhere.test/kubectl" in setting.server.asked
    assert f"http://{setting.place}/apt/InRelease" in setting.server.asked
    assert lab.inside("workerNode-0", "stat", "-c", "%a", "/etc/slipway/environment").strip() == "600"


@needs_cluster
def test_upgraded_from_another_repository(setting: Setting) -> None:
    """Its key is another one, and only the new package has it."""
    lab = setting.lab
    asked = {KEY: {"kubernetes_version": NEXT, "source": {"repository": f"http://{setting.place}/apt-next"}}}
    operation = lab.begin("change_vnfpkg", {"vnfdId": setting.next_vnfd, "additionalParams": asked})
    lab.ended(operation, within=900)
    assert {kubelet_version(node) for node in lab.kube(lambda api: api.list("/api/v1/nodes"))} == {f"v{NEXT}"}
    for slot in lab.machines():
        for program in NEEDED_FILES:
            assert lab.inside(slot, "dpkg-query", "--show", "--showformat=${Version}", program) == f"{NEXT}-1.1"
            assert lab.inside(slot, "stat", "-c", "%F", f"/usr/bin/{program}").strip() == "regular file"
        assert lab.inside(slot, "apt-mark", "showhold").split() == ["kubeadm", "kubectl", "kubelet"]
    lab.until_healthy()


@needs(test_upgraded_from_another_repository)
def test_files_of_another_version_are_known(setting: Setting) -> None:
    """And wait until that one is asked for."""
    lab, wanted = setting.lab, ("kubeadm", "kubelet")
    files = [
        part for name in wanted for part in (name, digest(setting.programs[name]), f"http://{setting.place}/{name}")
    ]
    lab.inside("workerNode-0", "rm", "-rf", "/var/lib/slipway/files", f"/opt/kubernetes/{VERSION}")
    said = f"kubeadm is v{VERSION}, and v1.35.0 is wanted\n"
    assert _execute(lab, "workerNode-0", line("install_programs", "1.35.0", *files)) == (65, said)
    setting.server.asked.clear()
    assert _execute(lab, "workerNode-0", line("install_programs", VERSION, *files)) == (0, "")
    assert setting.server.asked == []
    assert lab.inside("workerNode-0", "ls", "/opt/kubernetes").split() == [VERSION, NEXT]
    assert digest_on(lab, "workerNode-0", f"/opt/kubernetes/{VERSION}/bin/kubelet") == digest(
        setting.programs["kubelet"]
    )
    assert lab.inside("workerNode-0", "kubelet", "--version").strip() == f"Kubernetes v{NEXT}"


@needs_cluster
def test_terminated(setting: Setting) -> None:
    setting.lab.run("terminate", {"terminationType": "FORCEFUL"})


def programs_of_the_image(web: Path) -> dict[str, Path]:
    """containerd and runc as the machines have them, packed as their releases are; the others only look so."""
    wanted = {f"./usr/bin/{name}": f"bin/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")}
    with tarfile.open(cached_image(default_cache(), recipes.kubernetes(releases(VERSIONS)))) as image:
        with tarfile.open(web / "containerd", "w") as archive:
            for name, member in wanted.items():
                entry = image.getmember(name)
                content = image.extractfile(entry)
                entry.name = member
                archive.addfile(entry, content)
        runc = image.extractfile("./usr/sbin/runc")
        assert runc
        (web / "runc").write_bytes(runc.read())
    for name, program in (("cni-plugins", "proof"), ("crictl", "crictl")):
        text = f"#!/bin/sh\necho {program} for tests\n".encode()
        with tarfile.open(web / name, "w:gz") as archive:
            entry = tarfile.TarInfo(f"./{program}")
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text))
    return {name: web / name for name in ("containerd", "runc", "cni-plugins", "crictl")}


KEY = "k8s_cluster_installation_param"


def from_files(files: list[dict[str, str]]) -> dict[str, Any]:
    """Over what is stored: the repository goes."""
    return {KEY: {"source": {"kind": "files", "files": files, "repository": None, "signing_key_path": None}}}


def digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def digest_on(lab: ClusterLab, slot: str, path: str) -> str:
    return lab.inside(slot, "sha256sum", path).split()[0]


def _execute(lab: ClusterLab, slot: str, command: list[str]) -> tuple[int, str]:
    machine = lab.machines()[slot]["computeResource"]["resourceId"]
    return lab.engines.operations(LOCAL).engine.execute(machine, command)
