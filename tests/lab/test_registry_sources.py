"""Where a real registry comes from: the distribution's own package, or a container of docker or podman; by a proxy.

Machines of the sandbox reach Debian's packages by a proxy on this host alone. It is shut at first, so that each life
begins with a failure that a person can mend on the machine, and a retry that goes on.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from tests.functional.next_package import NEXT_ID, next_package
from tests.functional.registry_rig import tar_of
from tests.lab.cluster_lab import PASSWORD, ClusterLab, a_lab
from tests.lab.forward_proxy import PASSWORD as PROXY_PASSWORD
from tests.lab.forward_proxy import REGISTRY as ELSEWHERE
from tests.lab.forward_proxy import ForwardProxy, proxying
from tests.lab.registry_and_cluster import REGISTRY
from tests.lab.registry_lab import INSTALLATION, SLOT, debian_registry

pytestmark = pytest.mark.group(name="registry")

CIDR, GATEWAY = "10.207.78.0/24", "10.207.78.1"
ARCHIVE = "Files/images/private_registry.tar"  # as the documents' own request calls it
NETWORK = {"ipv4\n                dhcp_enabled": f"ipv4\n                cidr: {CIDR}\n                dhcp_enabled"}
# A machine of the sandbox has an overlay for its root, which no engine makes another overlay on.
PODMAN = {
    "/etc/containers/storage.conf": '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\n'
    'graphroot = "/var/lib/containers/storage"\n',
    # Nor has it CAP_SYS_RESOURCE, which crun needs for limits beyond those that are there, and for a cgroup's devices.
    "/etc/containers/containers.conf": '[containers]\ndefault_ulimits = []\ncgroups = "disabled"\n',
    "/etc/containers/registries.conf.d/lab.conf": f'[[registry]]\nlocation = "{ELSEWHERE}"\ninsecure = true\n',
}
DOCKER = {
    "/etc/docker/daemon.json": json.dumps(
        {"storage-driver": "vfs", "insecure-registries": [ELSEWHERE], "bridge": "none", "iptables": False}
    )
}


@dataclass
class Setting:
    lab: ClusterLab
    proxy: ForwardProxy
    image: Path  # the registry's own, as a docker archive

    def begun(self, **asked: Any) -> str:
        """An operation that could not fetch what it needs, and waits."""
        self.proxy.is_open = False
        self.proxy.asked.clear()
        self.lab.create()
        proxy = {"http_proxy": self.proxy.url, "https_proxy": self.proxy.url, "no_proxy": CIDR}
        given = {"ssh_cp_name": "CP1", "ssh_username": "slipway", "ssh_password": PASSWORD, "proxy": proxy,
                 "load_images": False, **asked}  # fmt: skip
        body = {"flavourId": "simple", "additionalParams": {INSTALLATION: given}}
        failed = self.lab.run("instantiate", body, "FAILED_TEMP", within=900)
        assert PROXY_PASSWORD not in json.dumps(failed)
        assert "proxy" in failed["error"]["detail"] or "repositories" in failed["error"]["detail"]
        self.proxy.is_open = True
        return str(failed["id"])

    def inside(self, *command: str) -> str:
        """On the machine, which the record does not know yet."""
        operations = self.lab.engines.operations(LOCAL)
        (machine,) = everything(operations)[self.lab.vnf].machines
        code, printed = operations.engine.execute(machine.resource_id, list(command))
        assert code == 0, printed
        return printed

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            self.inside("sh", "-c", 'mkdir -p "${1%/*}" && printf %s "$2" >"$1"', "sh", path, text)

    def apt_install(self, *packages: str) -> None:
        options = ["-o", f"Acquire::http::Proxy={self.proxy.url}"]
        self.inside("apt-get", *options, "-qq", "update")
        self.inside("apt-get", *options, "-qq", "--yes", "--no-install-recommends", "install", *packages)

    @property
    def server(self) -> str:
        return str(self.lab.shown()["instantiatedVnfInfo"]["metadata"]["registry"]["server"])

    def pushes_and_pulls(self, directory: Path) -> None:
        place = f"docker://{self.server}/pushed:1"
        skopeo("copy", "--dest-tls-verify=false", f"docker-archive:{self.image}", place)
        skopeo("copy", "--src-tls-verify=false", place, f"dir:{directory}")

    def comes_back_after_a_power_failure(self) -> None:
        machine = self.lab.machines()[SLOT]["computeResource"]["resourceId"]
        engine = self.lab.engines.operations(LOCAL).engine
        engine.kill(machine)
        engine.start(machine)
        end = time.monotonic() + 90
        ask = ["skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{self.server}/pushed:1"]
        while (seen := subprocess.run(ask, capture_output=True, text=True, check=False)).returncode:
            assert time.monotonic() < end, seen.stderr
            time.sleep(1)

    def ends(self) -> None:
        self.lab.run("terminate", {"terminationType": "FORCEFUL"})
        assert everything(self.lab.engines.operations(LOCAL)) == {}


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Iterator[Setting]:
    if shutil.which("skopeo") is None:
        pytest.skip("no skopeo on this machine: lab/hosts/install brings it")
    directory = tmp_path_factory.mktemp("sources")
    image = registry_image(directory)
    skopeo("copy", "--dest-compress", f"docker-archive:{image}", f"dir:{directory / 'image'}")
    tree = next_package(REGISTRY, directory, NEXT_ID, words=NETWORK)
    (tree / ARCHIVE).parent.mkdir(parents=True)
    shutil.copy(image, tree / ARCHIVE)
    with proxying(GATEWAY, directory / "image") as proxy, a_lab(directory / "lab", engines) as lab:
        lab.vnfd = lab.onboard(tree)
        yield Setting(lab, proxy, image)


def registry_image(directory: Path) -> Path:
    """A docker archive of Debian's registry, which is started as the public image is: with its configuration's path.

    No layer is compressed by zstd, which Debian's docker does not know.
    """
    unpacked, root = directory / "unpacked", directory / "root"
    subprocess.run(["dpkg-deb", "-x", debian_registry(directory), unpacked], check=True)
    program = unpacked / "usr/bin/docker-registry"
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout.split()
    for file in (program, *(Path(word) for word in linked if word.startswith("/"))):
        target = root / ("usr/bin/docker-registry" if file == program else str(file).lstrip("/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    (root / "tmp").mkdir(mode=0o777)
    subprocess.run(["tar", "--owner=0", "--group=0", "-cf", directory / "layer.tar", "-C", root, "."], check=True)
    layer = (directory / "layer.tar").read_bytes()
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
    entry = {"Entrypoint": ["/usr/bin/docker-registry", "serve"]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": entry, "rootfs": rootfs}).encode()
    listed = [{"Config": "config.json", "RepoTags": [f"{ELSEWHERE}/registry:1"], "Layers": ["layer.tar"]}]
    archive = directory / "registry.tar"
    archive.write_bytes(
        tar_of({"manifest.json": json.dumps(listed).encode(), "config.json": config, "layer.tar": layer})
    )
    return archive


def skopeo(*words: str) -> None:
    command = ["skopeo", "--command-timeout", "120s", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_distributions_own_by_a_proxy_and_a_port_that_is_taken(setting: Setting, tmp_path: Path) -> None:
    operation = setting.begun(source="package")
    setting.inside("systemd-run", "--unit=taken", "python3", "-m", "http.server", "5000")
    failed = setting.lab.decide(operation, "retry", "FAILED_TEMP", within=900)
    assert 'port 5000 is taken: "python3"' in failed["error"]["detail"]
    setting.inside("systemctl", "stop", "taken")
    setting.lab.decide(operation, "retry", "COMPLETED")
    assert any("/docker-registry_" in asked for asked in setting.proxy.asked)
    assert setting.inside("dpkg-query", "--show", "--showformat=${Status}", "docker-registry").endswith("installed")
    assert setting.inside("stat", "-c", "%a", "/etc/slipway/environment").strip() == "600"
    assert setting.inside("systemctl", "show", "--property=User", "--value", "slipway-registry").strip() != "root"
    setting.pushes_and_pulls(tmp_path / "pulled")
    setting.ends()


@pytest.mark.parametrize(
    "asked", [{"image_path": ARCHIVE}, {"image": f"{ELSEWHERE}/registry:1"}], ids=["of the package", "pulled"]
)
def test_podman_is_installed_by_a_proxy_and_runs_it(setting: Setting, tmp_path: Path, asked: dict[str, str]) -> None:
    operation = setting.begun(**asked)
    setting.write(PODMAN)
    setting.lab.decide(operation, "retry", "COMPLETED", within=900)
    assert any("/podman_" in one for one in setting.proxy.asked)
    pulled = [one for one in setting.proxy.asked if one.startswith(f"http://{ELSEWHERE}/v2/registry/blobs/")]
    assert bool(pulled) == ("image" in asked)
    assert "podman run" in setting.inside("systemctl", "cat", "slipway-registry")
    setting.pushes_and_pulls(tmp_path / "pulled")
    setting.comes_back_after_a_power_failure()
    setting.ends()


def test_docker_that_is_there_is_used_and_pulls_by_the_proxy(setting: Setting, tmp_path: Path) -> None:
    operation = setting.begun(image=f"{ELSEWHERE}/registry:1")
    setting.write(DOCKER)
    setting.apt_install("docker.io")
    setting.lab.decide(operation, "retry", "COMPLETED", within=900)
    assert any(one.startswith(f"http://{ELSEWHERE}/v2/registry/blobs/") for one in setting.proxy.asked)
    assert "docker run" in setting.inside("systemctl", "cat", "slipway-registry")
    shown = setting.inside("systemctl", "show", "--property=Environment,EnvironmentFiles", "docker")
    assert PROXY_PASSWORD not in shown
    setting.pushes_and_pulls(tmp_path / "pulled")
    setting.comes_back_after_a_power_failure()
    setting.ends()
