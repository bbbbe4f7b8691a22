"""A real registry as a VNF, with TLS, a login and a volume, and a real cluster that pulls from it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from tests.lab.cluster_lab import ClusterLab, parameters
from tests.lab.registry_and_cluster import CONNECTION, RegistryAndCluster, registry_and_cluster
from tests.lab.registry_lab import SECRET, SLOT
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="registry")


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Iterator[RegistryAndCluster]:
    with registry_and_cluster(tmp_path_factory.mktemp("registry"), engines) as setting:
        yield setting


def test_a_registry_with_https_and_a_login(setting: RegistryAndCluster) -> None:
    lab = setting.lab
    setting.install()
    assert lab.inside(SLOT, "systemctl", "is-enabled", "slipway-registry").strip() == "enabled"
    assert "caPrivateKey" not in setting.outputs
    assert SECRET not in lab.inside(SLOT, "cat", "/etc/slipway-registry/htpasswd")


needs_registry = needs(test_a_registry_with_https_and_a_login)


@needs_registry
def test_a_client_pushes_and_pulls(setting: RegistryAndCluster) -> None:
    setting.push_and_pull()


@needs_registry
def test_a_push_to_a_full_disk_fails_and_works_again_when_there_is_room(setting: RegistryAndCluster) -> None:
    lab, place = setting.at_registry(), f"docker://{setting.server}/full:1"
    filler = "/var/lib/slipway-registry/filler"
    fill = f"fallocate -l $(df --output=avail -B1 /var/lib/slipway-registry | tail -n 1) {filler}"
    lab.inside(SLOT, "sh", "-c", f"{fill} || true; dd if=/dev/zero of={filler}.rest bs=4k 2>&1 || true")
    assert setting.skopeo("copy", "--dest-cert-dir=CERTS", f"oci-archive:{setting.proof}", place).returncode != 0
    lab.inside(SLOT, "rm", filler, f"{filler}.rest")
    pushed = setting.skopeo("copy", "--dest-cert-dir=CERTS", f"oci-archive:{setting.proof}", place)
    assert pushed.returncode == 0, pushed.stderr


@needs_registry
def test_it_comes_back_after_a_power_failure(setting: RegistryAndCluster) -> None:
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
@pytest.mark.parametrize("whole", [False, True])
def test_a_heal_keeps_images_address_and_authority(setting: RegistryAndCluster, whole: bool) -> None:
    lab, before = setting.at_registry(), setting.outputs
    if whole:
        lab.run("heal", {})
    else:
        lab.heal(SLOT)
    assert setting.outputs == before
    setting.has_images("pushed:1", "proof:1")


@needs_registry
def test_foreign_data_on_a_volume_is_left_alone(setting: RegistryAndCluster) -> None:
    lab = setting.at_registry()
    lab.inside(SLOT, "systemctl", "stop", "slipway-registry")
    lab.inside(SLOT, "umount", "/var/lib/slipway-registry")
    lab.inside(SLOT, "tune2fs", "-L", "somebodys", "/dev/vdb")
    failed = lab.heal(SLOT, state="FAILED_TEMP")
    assert "holds something that is not ours" in failed["error"]["detail"]
    operations = lab.engines.operations(LOCAL)
    (machine,) = everything(operations)[lab.vnf].machines  # the new one, which the record does not know yet
    code, printed = operations.engine.execute(machine.resource_id, ["tune2fs", "-L", "slipway", "/dev/vdb"])
    assert code == 0, printed
    lab.decide(failed["id"], "retry", "COMPLETED")


@needs_registry
@pytest.mark.usefixtures("kubernetes_engines")
def test_a_cluster_pulls_by_https_with_a_login(setting: RegistryAndCluster) -> None:
    setting.create_cluster()
    asked = parameters(**{CONNECTION: [setting.connection()]})
    lab = setting.at_cluster()
    lab.run("instantiate", {"flavourId": "simple", "additionalParams": asked}, within=900)
    assert lab.inside("workerNode-0", "stat", "-c", "%a %U", "/etc/containerd/config.toml").split() == ["600", "root"]
    setting.run_pod("workerNode-0", "pushed:1")


needs_cluster = needs(test_a_cluster_pulls_by_https_with_a_login)


@needs_cluster
def test_a_new_node_pulls_too_once_a_registry_that_was_down_is_back(setting: RegistryAndCluster) -> None:
    setting.at_registry().inside(SLOT, "systemctl", "stop", "slipway-registry")
    lab = setting.at_cluster()
    failed = lab.run("scale", lab.scale("SCALE_OUT"), "FAILED_TEMP")
    said = f"workerNode-1 can't use the registry {setting.server} (connection)"
    assert said in failed["error"]["detail"]
    setting.at_registry().inside(SLOT, "systemctl", "start", "slipway-registry")
    setting.at_cluster().decide(failed["id"], "retry", "COMPLETED")
    setting.run_pod("workerNode-1", "pushed:1")


@needs_cluster
def test_a_mistyped_login_reaches_no_node_and_containerd_runs_on(setting: RegistryAndCluster) -> None:
    lab = setting.at_cluster()
    since = {slot: started(lab, slot) for slot in lab.machines()}
    failed = setting.modify([setting.connection(password="mistyped")], "FAILED_TEMP")
    assert f"can't use the registry {setting.server} (login): it refused the user 'puller'" in failed["error"]["detail"]
    lab.decide(failed["id"], "rollback", "ROLLED_BACK")
    setting.modify([setting.connection()])  # as it is
    assert {slot: started(lab, slot) for slot in lab.machines()} == since, "containerd was restarted for nothing"
    missing = setting.modify([setting.connection(image="nothing:1")], "FAILED_TEMP")
    assert "(image): " in missing["error"]["detail"]
    lab.decide(missing["id"], "rollback", "ROLLED_BACK")


@needs_cluster
def test_pods_run_on_while_a_modification_restarts_containerd(setting: RegistryAndCluster) -> None:
    """The login goes, and comes back: both change what containerd reads when it starts."""
    lab, name = setting.at_cluster(), setting.start_pod("workerNode-0", "pushed:1")
    before, since = running(setting, name), started(lab, "workerNode-0")
    setting.modify([])
    assert started(lab, "workerNode-0") != since, "containerd was not restarted, so that nothing was tried"
    setting.modify([setting.connection()])
    assert running(setting, name) == before
    setting.remove_pod(name)
    setting.run_pod("workerNode-0", "pushed:1")


@needs_cluster
def test_both_leave_nothing_behind(setting: RegistryAndCluster) -> None:
    setting.at_cluster().run("terminate", {"terminationType": "FORCEFUL"})
    setting.at_registry().run("terminate", {"terminationType": "FORCEFUL"})
    assert everything(setting.lab.engines.operations(LOCAL)) == {}


def started(lab: ClusterLab, slot: str) -> str:
    return lab.inside(slot, "systemctl", "show", "--property=ActiveEnterTimestampMonotonic", "containerd")


def running(setting: RegistryAndCluster, name: str) -> tuple[Any, ...]:
    """What is another after a restart: the kubelet's count, the container, and the process itself."""
    (status,) = setting.pod(name)["status"]["containerStatuses"]
    container = status["containerID"].removeprefix("containerd://")
    tasks = setting.lab.inside("workerNode-0", "ctr", "--namespace", "k8s.io", "tasks", "ls").splitlines()
    (task,) = (line.split() for line in tasks if line.startswith(container))
    return container, status["restartCount"], status["state"]["running"]["startedAt"], task
