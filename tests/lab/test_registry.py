"""A real registry as a VNF, with TLS, a login and a volume, and a real cluster that pulls from it.

The registry is Debian's: its package is in the VNF package, for machines need not reach a repository.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slipway.kube import paths
from slipway.kube.waiting import wait_for_pod
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.image.kubernetes import programs
from slipway.vim.sandbox.image.kubernetes.oci import Image, layer_of, write_archive
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.inventory import everything
from slipway.vim.sandbox.paths import default_cache
from tests.functional.next_package import NEXT_ID, OTHER_ID, next_package
from tests.lab.cluster_lab import ONE_WORKER, PASSWORD, SAMPLE, ClusterLab, a_lab, parameters
from tests.lab.slipway_lab import INSTANCES
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="registry")

REGISTRY = Path(__file__).parents[2] / "samples" / "registry-sandbox"
DEBIAN = "Files/docker-registry.deb"
USER, SECRET = "puller", "let me: \"in\" % 'please'"
SLOT = "PrivateRegistryVDU-0"
INSTALLATION, CONNECTION = "private_registry_installation_param", "private_registry_connection_info"


@dataclass
class Setting:
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


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Iterator[Setting]:
    if shutil.which("skopeo") is None:
        pytest.skip("no skopeo on this machine: lab/hosts/install brings it")
    directory = tmp_path_factory.mktemp("registry")
    program = ProgramCache(default_cache() / "kubernetes", print).built(programs.pause())
    pause = layer_of(directory / "proof.zst", {"pause": program})
    proof = directory / "proof.tar"
    write_archive(proof, [Image("registry.slipway.test/proof:1", [pause], {"Entrypoint": ["/pause"]})])
    tree = next_package(REGISTRY, directory, NEXT_ID, words={})
    (tree / "Files" / "images").mkdir(parents=True)
    shutil.copy(proof, tree / "Files" / "images" / "proof.tar")
    subprocess.run(["apt-get", "download", "-qq", "docker-registry"], cwd=directory, check=True)
    shutil.copy(next(directory.glob("docker-registry_*.deb")), tree / DEBIAN)
    with a_lab(directory / "lab", engines) as lab:
        lab.vnfd = lab.onboard(tree)
        yield Setting(lab, directory, proof)


def test_a_registry_with_https_and_a_login(setting: Setting) -> None:
    lab = setting.lab
    lab.create()
    setting.registry = lab.vnf
    asked = {"ssh_cp_name": "CP1", "ssh_username": "slipway", "ssh_password": PASSWORD, "source": "package",
             "package_path": DEBIAN, "tls": {"names": ["registry.slipway.test"]}, "data_volume": "registryData",
             "users": [{"username": USER, "password": SECRET}]}  # fmt: skip
    lab.run("instantiate", {"flavourId": "simple", "additionalParams": {INSTALLATION: asked}})
    assert lab.inside(SLOT, "systemctl", "is-enabled", "slipway-registry").strip() == "enabled"
    assert "caPrivateKey" not in setting.outputs
    assert SECRET not in lab.inside(SLOT, "cat", "/etc/slipway-registry/htpasswd")


needs_registry = needs(test_a_registry_with_https_and_a_login)


@needs_registry
def test_a_client_pushes_and_pulls(setting: Setting) -> None:
    place = f"docker://{setting.server}/pushed:1"
    pushed = setting.skopeo("copy", "--dest-cert-dir=CERTS", f"oci-archive:{setting.proof}", place)
    assert pushed.returncode == 0, pushed.stderr
    pulled = setting.skopeo("copy", "--src-cert-dir=CERTS", place, f"dir:{setting.directory / 'pulled'}")
    assert pulled.returncode == 0, pulled.stderr
    loaded = setting.skopeo("inspect", "--cert-dir=CERTS", "--raw", f"docker://{setting.server}/proof:1")
    assert loaded.returncode == 0, loaded.stderr


@needs_registry
def test_it_comes_back_after_a_power_failure(setting: Setting) -> None:
    lab = setting.at_registry()
    engine, machine = lab.engines.operations(LOCAL).engine, lab.machines()[SLOT]["computeResource"]["resourceId"]
    engine.kill(machine)
    engine.start(machine)
    end = time.monotonic() + 60
    place = f"docker://{setting.server}/pushed:1"
    while (seen := setting.skopeo("inspect", "--cert-dir=CERTS", "--raw", place)).returncode:
        assert time.monotonic() < end, seen.stderr
        time.sleep(1)


@needs_registry
def test_a_heal_keeps_images_address_and_authority(setting: Setting) -> None:
    lab, before = setting.at_registry(), setting.outputs
    lab.heal(SLOT)
    assert setting.outputs == before
    for image in ("pushed:1", "proof:1"):
        seen = setting.skopeo("inspect", "--cert-dir=CERTS", "--raw", f"docker://{setting.server}/{image}")
        assert seen.returncode == 0, seen.stderr


@needs_registry
def test_foreign_data_on_a_volume_is_left_alone(setting: Setting) -> None:
    lab = setting.at_registry()
    lab.inside(SLOT, "systemctl", "stop", "slipway-registry")
    lab.inside(SLOT, "umount", "/var/lib/slipway-registry")
    lab.inside(SLOT, "tune2fs", "-L", "somebodys", "/dev/vdb")
    failed = lab.heal(SLOT, state="FAILED_TEMP")
    assert "holds something that is not ours" in failed["error"]["detail"]
    operations = lab.engines.operations(LOCAL)
    (machine,) = everything(operations)[lab.vnf].machines  # the new one, which the record does not know yet
    code, printed = operations.engine.execute(machine.resource_id, ["tune2fs", "-L", "slipway-registry", "/dev/vdb"])
    assert code == 0, printed
    lab.decide(failed["id"], "retry", "COMPLETED")


@needs_registry
@pytest.mark.usefixtures("kubernetes_engines")
def test_a_cluster_pulls_by_https_with_a_login(setting: Setting) -> None:
    lab = setting.lab
    tree = next_package(SAMPLE, setting.directory, OTHER_ID, words=ONE_WORKER)
    (tree / "Files" / "registries").mkdir(parents=True)
    (tree / "Files" / "registries" / "ca.crt").write_text(setting.outputs["ca"])
    lab.vnfd = lab.onboard(tree)
    lab.create()
    setting.cluster = lab.vnf
    asked = parameters(**{CONNECTION: [setting.connection()]})
    lab.run("instantiate", {"flavourId": "simple", "additionalParams": asked}, within=900)
    assert lab.inside("workerNode-0", "stat", "-c", "%a %U", "/etc/containerd/config.toml").split() == ["600", "root"]
    run_proof(setting, "workerNode-0")


needs_cluster = needs(test_a_cluster_pulls_by_https_with_a_login)


@needs_cluster
def test_a_new_node_pulls_too(setting: Setting) -> None:
    lab = setting.at_cluster()
    lab.run("scale", lab.scale("SCALE_OUT"))
    run_proof(setting, "workerNode-1")


@needs_cluster
def test_a_mistyped_login_reaches_no_node_and_containerd_runs_on(setting: Setting) -> None:
    lab = setting.at_cluster()
    since = {slot: started(lab, slot) for slot in lab.machines()}
    failed = modify(setting, [setting.connection(password="mistyped")], "FAILED_TEMP")
    assert f"can't use the registry {setting.server} (login): it refused the user 'puller'" in failed["error"]["detail"]
    lab.decide(failed["id"], "rollback", "ROLLED_BACK")
    modify(setting, [setting.connection()])  # as it is
    assert {slot: started(lab, slot) for slot in lab.machines()} == since, "containerd was restarted for nothing"
    missing = modify(setting, [setting.connection(image="nothing:1")], "FAILED_TEMP")
    assert "(image): " in missing["error"]["detail"]
    lab.decide(missing["id"], "rollback", "ROLLED_BACK")


@needs_cluster
def test_both_leave_nothing_behind(setting: Setting) -> None:
    setting.at_cluster().run("terminate", {"terminationType": "FORCEFUL"})
    setting.at_registry().run("terminate", {"terminationType": "FORCEFUL"})


def started(lab: ClusterLab, slot: str) -> str:
    return lab.inside(slot, "systemctl", "show", "--property=ActiveEnterTimestampMonotonic", "containerd")


def modify(setting: Setting, registries: list[dict[str, Any]], state: str = "COMPLETED") -> dict[str, Any]:
    lab = setting.at_cluster()
    body = {"vnfConfigurableProperties": {CONNECTION: registries}}
    answer = lab.http.patch(f"{INSTANCES}/{lab.vnf}", json=body)
    assert answer.status_code == 202, answer.text
    return lab.ended(answer.headers["location"].rpartition("/")[2], state, 300)


def run_proof(setting: Setting, slot: str) -> None:
    """A pod on that node, whose image is in no other place."""
    lab = setting.at_cluster()
    nodes = [node["metadata"]["name"] for node in lab.kube(lambda api: api.list("/api/v1/nodes"))]
    container = {"name": "proof", "image": f"{setting.server}/pushed:1", "imagePullPolicy": "Always"}
    spec = {"nodeName": next(name for name in nodes if name.startswith(slot.lower())), "containers": [container]}
    name = f"proof-{slot.lower()}"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    lab.kube(lambda api: api.apply(pod))
    lab.kube(lambda api: wait_for_pod(api, "default", name, 120))
    lab.kube(lambda api: api.delete(paths.pod("default", name), grace=0))
