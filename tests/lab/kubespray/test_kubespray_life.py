"""The life of a real cluster that playbooks build, behind a real HAProxy, by a real Ansible.

What else can happen to it is in the group: test_kubespray_masters.py, test_kubespray_faults.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slipway.kube.waiting import wait_for_deployment
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from tests.lab.cluster_lab import web
from tests.lab.kubespray.kubespray_lab import KubesprayLab, a_kubespray_lab
from tests.lab.stages import needs

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def life(kubernetes_engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubesprayLab]:
    with a_kubespray_lab(tmp_path_factory.mktemp("kubespray"), kubernetes_engines) as lab:
        yield lab


def test_built_although_slipway_is_killed_in_the_middle_of_cluster_yml(life: KubesprayLab) -> None:
    life.create()
    operation = life.begin("instantiate", {"flavourId": "simple", "additionalParams": life.asked()})
    life.until_step(operation, "cluster.yml", within=600)
    life.until_task("Configure containerd")
    life.kill()
    life.start()
    life.ended(operation, within=900)
    assert life.nodes() == {"masternode-0": True, "workernode-0": True, "workernode-1": True}
    assert len(list(life.inventory.glob("runs/*.log"))) == 1


needs_cluster = needs(test_built_although_slipway_is_killed_in_the_middle_of_cluster_yml)


@needs_cluster
def test_the_api_is_reached_through_the_balancer_with_the_clusters_own_ca(life: KubesprayLab) -> None:
    assert life.shown()["vimConnectionInfo"]["kubernetes"]["interfaceInfo"]["endpoint"].endswith(":8383")
    assert life.balancer() in str(life.machines()["externalLB-0"])
    found = life.http.post(f"/slipway/v1/vims/kubernetes_vim_{life.vnf}/check").json()
    assert found["ok"], found
    life.until_healthy()
    assert f"{life.address('masterNode-0')}:6443" in life.routes()


@needs_cluster
def test_no_secret_is_readable_for_others_on_the_server(life: KubesprayLab) -> None:
    assert life.inventory.stat().st_mode & 0o077 == 0
    assert "over the hills" not in (life.inventory / "hosts.yaml").read_text()


@needs_cluster
def test_scaled_out_and_routed_to(life: KubesprayLab) -> None:
    life.kube(lambda api: api.apply(web()[0]))
    life.kube(lambda api: api.apply(web()[1]))
    life.kube(lambda api: wait_for_deployment(api, "default", "web", 120))
    operation = life.run("scale", life.scale("SCALE_OUT"), within=900)
    assert life.nodes() == {"masternode-0": True} | {f"workernode-{number}": True for number in range(3)}
    assert life.steps(operation["id"])["add routes to workerNode-2"] == "DONE"
    life.web_answers("workerNode-2")


@needs(test_scaled_out_and_routed_to)
def test_a_worker_without_power_is_healed(life: KubesprayLab) -> None:
    before = life.machines()["workerNode-1"]["id"]
    life.cut_power("workerNode-1")
    life.heal("workerNode-1")
    assert life.machines()["workerNode-1"]["id"] != before
    assert all(life.nodes().values())


@needs(test_scaled_out_and_routed_to)
def test_scaled_in_and_out_of_the_inventory(life: KubesprayLab) -> None:
    """Whichever machine is the newest goes: after a heal that is the healed one."""
    before = life.nodes()
    life.run("scale", life.scale("SCALE_IN"), within=900)
    (gone,) = before.keys() - life.nodes().keys()
    assert gone not in (life.inventory / "hosts.yaml").read_text()


@needs_cluster
def test_terminate_leaves_nothing(life: KubesprayLab) -> None:
    life.run("terminate", {"terminationType": "GRACEFUL"})
    assert everything(life.engines.operations(LOCAL)) == {}
    assert not life.inventory.exists()
