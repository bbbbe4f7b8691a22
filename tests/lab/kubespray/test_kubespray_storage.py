"""A real cluster of playbooks with a storage server: its volumes, from birth to death. Ansible has no part in them.

What is served and to whom, and disks with other data, are the same for all clusters: tests/lab/test_storage.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from tests.lab.claiming_cnf import CLAIM, claiming_cnf
from tests.lab.kubespray.kubespray_lab import KubesprayLab, a_kubespray_lab
from tests.lab.stages import needs
from tests.lab.storage_lab import SERVER, until
from tests.lab.stored_data import SLOT, VOLUMES, available, read, volumes, write

pytestmark = pytest.mark.group(name="storage")


@pytest.fixture(scope="module")
def life(kubernetes_engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubesprayLab]:
    with a_kubespray_lab(tmp_path_factory.mktemp("kubespray-storage"), kubernetes_engines) as lab:
        yield lab


def runs(life: KubesprayLab) -> set[Path]:
    """What Ansible printed, a file for each playbook that ran."""
    return set(life.inventory.glob("runs/*.log"))


def test_built_although_slipway_is_killed_while_volumes_are_served(life: KubesprayLab) -> None:
    life.create()
    asked = life.asked(storage_server=SERVER, pv_registration_params=VOLUMES)
    operation = life.begin("instantiate", {"flavourId": "storage", "additionalParams": asked})
    life.until_step(operation, f"mount volumes {SLOT}", "DONE", within=600)
    life.kill()
    life.start()
    life.ended(operation, within=900)
    assert life.nodes() == {"masternode-0": True, "workernode-0": True}
    assert volumes(life) == available(life)
    assert "storageserver" not in (life.inventory / "hosts.yaml").read_text().lower()
    assert len(runs(life)) == 1


needs_cluster = needs(test_built_although_slipway_is_killed_while_volumes_are_served)


@needs_cluster
def test_every_node_writes_and_reads(life: KubesprayLab) -> None:
    write(life, "workerNode-0", "one", "by the worker")
    assert read(life, "masterNode-0", "one") == "by the worker"
    for slot in ("masterNode-0", "workerNode-0"):
        assert life.inside(slot, "sh", "-c", "command -v mount.nfs").strip()


@needs(test_every_node_writes_and_reads)
def test_new_nodes_can_use_them(life: KubesprayLab) -> None:
    life.run("scale", life.scale("SCALE_OUT"), within=900)
    life.cut_power("workerNode-0")
    life.heal("workerNode-0")
    for slot in ("workerNode-0", "workerNode-1"):
        assert life.inside(slot, "sh", "-c", "command -v mount.nfs").strip()
        assert read(life, slot, "one") == "by the worker"
    life.run("scale", life.scale("SCALE_IN"), within=900)
    assert volumes(life) == available(life)


@needs(test_every_node_writes_and_reads)
def test_a_heal_waits_for_the_cnf_that_uses_a_volume_and_keeps_the_data(life: KubesprayLab, tmp_path: Path) -> None:
    worker = next(slot for slot in life.machines() if slot.startswith("workerNode"))
    before, ran = {slot: one["id"] for slot, one in life.machines().items()}, runs(life)
    with life.on_the_cluster(claiming_cnf(tmp_path)):
        refused = life.heal(SLOT, state="FAILED_TEMP")
        assert f"in use: nfs-pv1 by the claim default/{CLAIM}." in refused["error"]["detail"]
        assert read(life, worker, "one") == "by the worker"
    until(lambda: volumes(life)["nfs-pv1"][0] == "Released", "the volume is released")
    life.decide(refused["id"], "retry", "COMPLETED")
    after = {slot: one["id"] for slot, one in life.machines().items()}
    assert {slot for slot in before if before[slot] != after[slot]} == {SLOT}
    assert volumes(life) == available(life)
    assert read(life, worker, "one") == "by the worker"
    assert runs(life) == ran


@needs(test_every_node_writes_and_reads)
def test_a_whole_heal_keeps_the_data(life: KubesprayLab) -> None:
    life.run("heal", {}, within=1200)
    assert volumes(life) == available(life)
    assert read(life, "masterNode-0", "one") == "by the worker"
    assert life.health()["problems"] == []


@needs_cluster
def test_terminated_with_its_data_retained(life: KubesprayLab) -> None:
    (volume,) = life.shown()["instantiatedVnfInfo"]["virtualStorageResourceInfo"]
    life.run("terminate", {"terminationType": "GRACEFUL", "additionalParams": {"retain_data": True}})
    resource = volume["storageResource"]["resourceId"]
    assert life.shown()["metadata"]["retainedVolumes"] == {resource: "storageServer_volume"}
    assert everything(life.engines.operations(LOCAL))[life.vnf].names() == ["volume storageServer_volume"]
    assert not life.inventory.exists()
