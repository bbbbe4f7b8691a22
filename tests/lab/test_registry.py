"""A real registry as a VNF, with TLS, a login and a volume, and a real cluster that pulls from it."""

from __future__ import annotations

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
from slipway.vim.sandbox.inventory import everything
from tests.functional.next_package import OTHER_ID, next_package
from tests.lab.cluster_lab import PASSWORD, SAMPLE, ClusterLab, a_lab, parameters
from tests.lab.registry_lab import SECRET, SLOT, USER, RegistryLab, installation, registry_package
from tests.lab.slipway_lab import INSTANCES
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="registry")

REGISTRY = Path(__file__).parents[2] / "samples" / "registry-sandbox"
CONNECTION = "private_registry_connection_info"
ONE_WORKER = {
    "min_number_of_instances: 2": "min_number_of_instances: 1",
    "number_of_instances: 2": "number_of_instances: 1",
}


@dataclass
class Setting(RegistryLab[ClusterLab]):
    """One Slipway with two VNFs."""

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


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Iterator[Setting]:
    directory = tmp_path_factory.mktemp("registry")
    tree, proof = registry_package(REGISTRY, directory, {})
    with a_lab(directory / "lab", engines) as lab:
        lab.vnfd = lab.onboard(tree)
        yield Setting(lab, directory, proof)


def test_a_registry_with_https_and_a_login(setting: Setting) -> None:
    lab = setting.lab
    lab.create()
    setting.registry = lab.vnf
    asked = installation(ssh_username="slipway", ssh_password=PASSWORD)
    lab.run("instantiate", {"flavourId": "simple", "additionalParams": asked})
    assert lab.inside(SLOT, "systemctl", "is-enabled", "slipway-registry").strip() == "enabled"
    assert "caPrivateKey" not in setting.outputs
    assert SECRET not in lab.inside(SLOT, "cat", "/etc/slipway-registry/htpasswd")


needs_registry = needs(test_a_registry_with_https_and_a_login)


@needs_registry
def test_a_client_pushes_and_pulls(setting: Setting) -> None:
    setting.push_and_pull()


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
    setting.has_images("pushed:1", "proof:1")


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
