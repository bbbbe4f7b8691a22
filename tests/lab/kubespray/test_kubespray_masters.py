"""A real cluster of playbooks with three masters: any master and the balancer may be lost, and CNFs stay reachable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.kube.nodes import kubelet_version
from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from tests.functional.next_package import NEXT_ID, next_package
from tests.lab.conftest import VERSIONS
from tests.lab.kubespray.kubespray_lab import SAMPLE, KubesprayLab, a_kubespray_lab, balanced_cnf
from tests.lab.slipway_lab import web_answers_at
from tests.lab.stages import needs

pytestmark = pytest.mark.group(name="kubespray")
OLD, NEW = VERSIONS


@pytest.fixture(scope="module")
def life(kubernetes_engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubesprayLab]:
    with a_kubespray_lab(tmp_path_factory.mktemp("kubespray"), kubernetes_engines) as lab:
        yield lab


def test_three_masters_are_built_and_all_are_behind_the_balancer(life: KubesprayLab) -> None:
    life.create()
    life.run("instantiate", {"flavourId": "ha", "additionalParams": life.asked(kubernetes_version=OLD)}, within=900)
    assert len(life.nodes()) == 5
    assert all(life.nodes().values())
    assert all(f"{life.address(f'masterNode-{number}')}:6443" in life.routes() for number in range(3))


needs_cluster = needs(test_three_masters_are_built_and_all_are_behind_the_balancer)


@needs_cluster
def test_a_cnf_is_reached_by_the_balancer_and_stays_so_when_that_is_healed(life: KubesprayLab, tmp_path: Path) -> None:
    with life.on_the_cluster(balanced_cnf(tmp_path)):
        web_answers_at(life.balancer(), within=60)
        before = life.machines()["externalLB-0"]["id"]
        life.cut_power("externalLB-0")
        life.heal("externalLB-0")
        assert life.machines()["externalLB-0"]["id"] != before
        web_answers_at(life.balancer(), within=60)
    assert ":30080" not in life.routes()
    assert all(life.nodes().values())
    assert life.http.post(f"/slipway/v1/vims/kubernetes_vim_{life.vnf}/check").json()["ok"]


@needs_cluster
@pytest.mark.parametrize("slot", ["masterNode-0", "masterNode-1"])
def test_a_master_loses_its_power_and_is_healed(life: KubesprayLab, slot: str) -> None:
    """The first one too, with which the cluster began. Workers join afterwards, so nothing leads to the one before."""
    before = life.machines()[slot]["id"]
    life.cut_power(slot)
    life.heal(slot)
    assert life.machines()[slot]["id"] != before
    assert all(life.nodes().values())
    assert len(life.nodes()) == 5
    assert f"{life.address(slot)}:6443" in life.routes()
    life.until_healthy()


@needs_cluster
def test_scaled_out_after_the_first_master_was_healed(life: KubesprayLab) -> None:
    life.run("scale", life.scale("SCALE_OUT"), within=900)
    assert all(life.nodes().values())
    assert len(life.nodes()) == 6


@needs_cluster
def test_upgraded_by_upgrade_cluster(life: KubesprayLab, tmp_path: Path) -> None:
    new = life.onboard(next_package(SAMPLE, tmp_path, NEXT_ID, words={}))
    named = {"k8s_cluster_installation_param": {"kubernetes_version": NEW}}
    life.run("change_vnfpkg", {"vnfdId": new, "additionalParams": named}, within=1800)
    nodes = life.kube(lambda api: api.list("/api/v1/nodes"))
    assert {str(kubelet_version(node)).removeprefix("v") for node in nodes} == {NEW}
    life.until_healthy()


@needs_cluster
def test_a_whole_heal_and_terminate(life: KubesprayLab) -> None:
    life.run("heal", {}, within=1200)
    assert all(life.nodes().values())
    life.run("terminate", {"terminationType": "GRACEFUL"})
    assert everything(life.engines.operations(LOCAL)) == {}
    assert not life.inventory.exists()
