"""A real cluster that playbooks build, and that pulls from a real private registry by HTTPS with a login."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from slipway.cluster.containerd_config import CERTIFICATES, CONTAINERD
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from tests.functional.next_package import OTHER_ID, next_package
from tests.lab.cluster_lab import ONE_WORKER
from tests.lab.kubespray.kubespray_lab import SAMPLE, KubesprayLab, a_kubespray_lab
from tests.lab.registry_and_cluster import CONNECTION, REGISTRY, RegistryAndCluster
from tests.lab.registry_lab import registry_package
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="kubespray")
NAME = "registry.slipway.test"  # one that only the nodes' /etc/hosts knows


@dataclass
class KubespraySetting(RegistryAndCluster):
    @property
    def named(self) -> str:
        return f"{NAME}:{self.server.rpartition(':')[2]}"

    def connections(self, **more: Any) -> list[dict[str, Any]]:
        """The one registry at its address, and by a name."""
        address = self.server.rpartition(":")[0]
        by_name = self.connection(server=self.named, hosts_string=f"{address} {NAME}")
        return [self.connection(**more), by_name]

    def nodes(self) -> list[str]:
        return [slot for slot in self.at_cluster().machines() if "Node" in slot]

    def is_connected(self, slot: str) -> bool:
        """By Slipway: in kubespray's own hosts.toml the login is a header, and in its configuration there is none."""
        lab = self.at_cluster()
        private = lab.inside(slot, "stat", "-c", "%a %U", CONTAINERD).split() == ["600", "root"]
        logins = [server in lab.inside(slot, "cat", CONTAINERD) for server in (self.server, self.named)]
        hosts = lab.inside(slot, "sh", "-c", f"cat {CERTIFICATES}/*/hosts.toml")
        return private and all(logins) and "Authorization" not in hosts


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory, kubernetes_engines: Engines) -> Iterator[KubespraySetting]:
    directory = tmp_path_factory.mktemp("kubespray-registry")
    tree, proof = registry_package(REGISTRY, directory, {})
    with a_kubespray_lab(directory / "lab", kubernetes_engines) as lab:
        lab.vnfd = lab.onboard(tree)
        yield KubespraySetting(lab, directory, proof)


def test_a_registry_with_https_and_a_login(setting: KubespraySetting) -> None:
    setting.install()
    setting.push_and_pull()


@needs(test_a_registry_with_https_and_a_login)
def test_every_node_is_connected_and_pods_pull(setting: KubespraySetting) -> None:
    lab = setting.lab
    assert isinstance(lab, KubesprayLab)
    tree = next_package(SAMPLE, setting.directory, OTHER_ID, words=ONE_WORKER)
    (tree / "Files" / "registries").mkdir(parents=True, exist_ok=True)
    (tree / "Files" / "registries" / "ca.crt").write_text(setting.outputs["ca"])
    lab.vnfd = lab.onboard(tree)
    lab.create()
    setting.cluster = lab.vnf
    asked = lab.asked(**{CONNECTION: setting.connections()})
    lab.run("instantiate", {"flavourId": "ha", "additionalParams": asked}, within=1200)
    assert [slot for slot in setting.nodes() if not setting.is_connected(slot)] == []
    assert (lab.inventory / "group_vars" / "all" / "slipway-secrets.yml").stat().st_mode & 0o077 == 0
    setting.run_pod("workerNode-0", "proof:1")


needs_cluster = needs(test_every_node_is_connected_and_pods_pull)


@needs_cluster
def test_a_new_node_pulls_too(setting: KubespraySetting) -> None:
    lab = setting.at_cluster()
    lab.run("scale", lab.scale("SCALE_OUT"), within=900)
    assert setting.is_connected("workerNode-1")
    setting.run_pod("workerNode-1", "proof:1")


@needs_cluster
def test_a_healed_master_leaves_all_nodes_their_login(setting: KubespraySetting) -> None:
    """It comes back by cluster.yml, which writes containerd's configuration anew on every node."""
    setting.at_cluster().heal("masterNode-1")
    assert [slot for slot in setting.nodes() if not setting.is_connected(slot)] == []
    setting.run_pod("workerNode-0", "proof:1")


@needs_cluster
def test_a_mistyped_login_reaches_no_node(setting: KubespraySetting) -> None:
    failed = setting.modify(setting.connections(password="mistyped"), "FAILED_TEMP")
    assert f"can't use the registry {setting.server} (login): it refused the user 'puller'" in failed["error"]["detail"]
    setting.lab.decide(failed["id"], "rollback", "ROLLED_BACK")
    assert [slot for slot in setting.nodes() if not setting.is_connected(slot)] == []


@needs_cluster
def test_a_modification_reaches_all_nodes(setting: KubespraySetting) -> None:
    setting.modify([])
    lab = setting.at_cluster()
    for slot in setting.nodes():
        assert setting.server not in lab.inside(slot, "cat", CONTAINERD)
        assert NAME not in lab.inside(slot, "cat", "/etc/hosts")
        assert lab.inside(slot, "ls", CERTIFICATES).split() == []
    setting.modify(setting.connections())
    assert [slot for slot in setting.nodes() if not setting.is_connected(slot)] == []
    setting.run_pod("workerNode-0", "proof:1")


@needs_cluster
def test_all_leave_nothing_behind(setting: KubespraySetting) -> None:
    lab = setting.lab
    assert isinstance(lab, KubesprayLab)
    setting.at_cluster().run("terminate", {"terminationType": "GRACEFUL"})
    setting.at_registry().run("terminate", {"terminationType": "FORCEFUL"})
    assert everything(lab.engines.operations(LOCAL)) == {}
    assert not lab.inventory.exists()
