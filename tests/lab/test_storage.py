"""A real cluster with a storage server: real NFS on a real file system, from birth to death."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.vim.sandbox.connection import LOCAL
from slipway.vim.sandbox.inventory import everything
from tests.lab.claiming_cnf import CLAIM, claiming_cnf
from tests.lab.cluster_lab import ClusterLab
from tests.lab.slipway_lab import INSTANCES, OPERATIONS
from tests.lab.stages import needs
from tests.lab.storage_lab import instantiation, until
from tests.lab.stored_data import available, read, url, volumes, write

pytestmark = pytest.mark.group(name="storage")


def test_built_although_slipway_is_killed_while_volumes_are_served(lab: ClusterLab) -> None:
    lab.create()
    operation = lab.begin("instantiate", instantiation())
    lab.until_step(operation, "mount volumes storageServer-0", "DONE")
    lab.kill()
    lab.start()
    lab.ended(operation)
    assert volumes(lab) == available(lab)
    assert "/volume ext4" in lab.inside("storageServer-0", "findmnt", "-rno", "TARGET,FSTYPE", "/volume")
    assert "UUID=" in lab.inside("storageServer-0", "grep", "/volume", "/etc/fstab")


needs_cluster = needs(test_built_although_slipway_is_killed_while_volumes_are_served)


@needs_cluster
def test_every_node_writes_and_reads_and_belongs_to_nobody(lab: ClusterLab) -> None:
    write(lab, "workerNode-0", "one", "by the worker")
    assert read(lab, "masterNode-0", "one") == "by the worker"
    assert lab.inside("storageServer-0", "stat", "-c", "%U", "/volume/nfs/pv1/one").strip() == "nobody"
    for slot in ("masterNode-0", "workerNode-0"):
        assert lab.inside(slot, "sh", "-c", "command -v mount.nfs").strip()


@needs_cluster
def test_other_networks_and_other_directories_are_not_served(lab: ClusterLab) -> None:
    for place in ("127.0.0.1/volume/nfs/pv1", f"{lab.address('storageServer-0')}/etc"):
        said = lab.inside("storageServer-0", "sh", "-c", f"nfs-ls 'nfs://{place}?version=4' 2>&1 || echo refused")
        assert said.strip().endswith("refused"), said


@needs_cluster
def test_all_of_it_comes_back_after_a_power_cut(lab: ClusterLab) -> None:
    lab.cut_power("storageServer-0")
    engine = lab.engines.operations(LOCAL).engine
    engine.start(lab.machines()["storageServer-0"]["computeResource"]["resourceId"])

    def served() -> bool:
        return "by the worker" in lab.inside("workerNode-0", "sh", "-c", f"nfs-cat '{url(lab, 'one')}' 2>&1 || true")

    until(served, "the volume is served again")


@needs_cluster
def test_a_new_node_can_use_them(lab: ClusterLab) -> None:
    lab.run("scale", lab.scale("SCALE_OUT"))
    assert lab.inside("workerNode-1", "sh", "-c", "command -v mount.nfs").strip()
    assert read(lab, "workerNode-1", "one") == "by the worker"
    lab.run("scale", lab.scale("SCALE_IN"))


@needs_cluster
def test_a_heal_waits_for_the_cnf_that_uses_a_volume_and_keeps_the_data(lab: ClusterLab) -> None:
    cluster, cnf = lab.vnf, _cnf(lab)
    assert volumes(lab)["nfs-pv1"][0] == "Bound"
    before = {slot: one["id"] for slot, one in lab.machines().items()}
    refused = lab.heal("storageServer-0", state="FAILED_TEMP")
    assert f"in use: nfs-pv1 by the claim default/{CLAIM}." in refused["error"]["detail"]
    assert "nfs-pv2" not in refused["error"]["detail"]
    assert read(lab, "workerNode-0", "one") == "by the worker"

    lab.vnf = cnf
    lab.run("terminate", {"terminationType": "FORCEFUL"})
    lab.vnf = cluster
    until(lambda: volumes(lab)["nfs-pv1"][0] == "Released", "the volume is released")
    lab.decide(refused["id"], "retry", "COMPLETED")
    after = {slot: one["id"] for slot, one in lab.machines().items()}
    assert {slot for slot in before if before[slot] != after[slot]} == {"storageServer-0"}
    assert volumes(lab) == available(lab)
    assert read(lab, "workerNode-0", "one") == "by the worker"
    write(lab, "workerNode-0", "two", "after the heal")


def _cnf(lab: ClusterLab) -> str:
    """A CNF on the cluster, with a claim on the first volume. The cluster stays what `lab` is about."""
    cluster, vnfd = lab.vnf, lab.vnfd
    vim = lab.shown()["vimConnectionInfo"]["kubernetes"]
    lab.vnfd = lab.onboard(claiming_cnf(lab.directory))
    try:
        lab.create()
        on_it = {"vim": {"vimId": vim["vimId"], "vimType": vim["vimType"]}}
        lab.run("instantiate", {"flavourId": "simple", "vimConnectionInfo": on_it})
        return lab.vnf
    finally:
        lab.vnf, lab.vnfd = cluster, vnfd


@needs(test_a_heal_waits_for_the_cnf_that_uses_a_volume_and_keeps_the_data)
def test_data_that_is_not_ours_is_left_alone(lab: ClusterLab) -> None:
    device = lab.inside("storageServer-0", "findmnt", "-rno", "SOURCE", "/volume").strip()
    lab.inside("storageServer-0", "e2label", device, "theirs")
    failed = lab.heal("storageServer-0", state="FAILED_TEMP")
    assert "holds something that is not ours (LABEL=theirs TYPE=ext4 )" in failed["error"]["detail"]
    found = everything(lab.engines.operations(LOCAL))[lab.vnf]
    (machine,) = (one for one in found.machines if one.name == "storageServer-0")
    code, said = lab.engines.operations(LOCAL).engine.execute(machine.resource_id, ["e2label", "/dev/vdb", "slipway"])
    assert code == 0, said
    lab.decide(failed["id"], "retry", "COMPLETED")
    assert read(lab, "workerNode-0", "two") == "after the heal"


@needs(test_a_heal_waits_for_the_cnf_that_uses_a_volume_and_keeps_the_data)
def test_a_whole_heal_keeps_the_data(lab: ClusterLab) -> None:
    lab.run("heal", {}, within=900)
    assert volumes(lab) == available(lab)
    assert read(lab, "workerNode-0", "two") == "after the heal"


@needs_cluster
@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"nfs_server_setup_params": [{"export_dir": "/", "export_to": "10.12.0.0/24"}]}, "it is all of the machine"),
        (
            {"cinder_volume_setup_params": [{"volume_resource_id": "masterData", "mount_to": "/volume"}]},
            "has no block storage 'masterData' in the VNFD",
        ),
        ({"password": None}, "there is neither password nor private_key"),
    ],
)
def test_what_can_be_known_is_refused_at_the_request(lab: ClusterLab, server: dict[str, Any], said: str) -> None:
    cluster = lab.vnf
    lab.create()
    try:
        answer = lab.http.post(f"{INSTANCES}/{lab.vnf}/instantiate", json=instantiation(server))
        assert answer.status_code in (400, 422)
        assert said in answer.json()["detail"]
        assert lab.http.get(OPERATIONS, params={"filter": f"(eq,vnfInstanceId,{lab.vnf})"}).json() == []
        lab.http.delete(f"{INSTANCES}/{lab.vnf}").raise_for_status()
    finally:
        lab.vnf = cluster


@needs_cluster
def test_terminated_with_its_data_retained(lab: ClusterLab) -> None:
    (volume,) = lab.shown()["instantiatedVnfInfo"]["virtualStorageResourceInfo"]
    retaining = {"terminationType": "FORCEFUL", "additionalParams": {"retain_data": True}}
    lab.run("terminate", retaining)
    resource = volume["storageResource"]["resourceId"]
    assert lab.shown()["metadata"]["retainedVolumes"] == {resource: "storageServer_volume"}
    left = everything(lab.engines.operations(LOCAL))[lab.vnf]
    assert left.names() == ["volume storageServer_volume"]
    assert left.records[0].disk.exists()
