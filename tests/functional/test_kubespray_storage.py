"""Clusters by kubespray with a storage server, on simulated machines: as on the other driver, but for the inventory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.errors import BadRequest, RequestError
from slipway.model.journal import StepRecord
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import ChangePackageRequest, HealRequest
from tests.functional.cluster_rig import FORCEFUL, ClusterRig, back, began, ended, out, storage_parameters
from tests.functional.kubespray_rig import (
    BALANCER,
    KUBESPRAY,
    ansible,
    instantiate,
    instantiate_storage,
    inventory_of,
    kubespray_rig,
    parameters,
    server_of,
)
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import SIMULATED_VIM, settings_in
from tests.functional.test_cluster_storage import CLAIM, CLAIMS, host, server, uuid_of, volumes

INSTANTIATE, HEAL, SCALE, TERMINATE = (
    OperationType.INSTANTIATE, OperationType.HEAL, OperationType.SCALE, OperationType.TERMINATE,
)  # fmt: skip
STORAGE = "storageServer-0"
SERVER = storage_parameters()["storage_server"]
AVAILABLE = {"nfs-pv1": "Available", "nfs-pv2": "Available"}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ClusterRig]:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        yield rig


async def stored(rig: ClusterRig, **more: Any) -> tuple[str, Operation]:
    instance_id = await rig.rig.create()
    return instance_id, await rig.completed(INSTANTIATE, instance_id, instantiate_storage(**more))


async def phases(rig: ClusterRig, instance_id: str) -> dict[str, str]:
    return {name: phase for name, (phase, _) in (await volumes(rig, instance_id)).items()}


async def records(rig: ClusterRig, operation: Operation) -> dict[str, StepRecord]:
    return {record.id: record for record in await rig.rig.journal(operation.id)}


async def test_volumes_are_there_before_the_vim_is_and_the_server_is_in_no_inventory(rig: ClusterRig) -> None:
    instance_id, operation = await stored(rig, external_lb_param=BALANCER)
    await rig.check(instance_id)
    address, volume = await server(rig, instance_id)
    assert await volumes(rig, instance_id) == {name: (phase, address) for name, phase in AVAILABLE.items()}
    storage = await host(rig, instance_id, STORAGE)
    assert storage.mounts == {"/volume": volume}
    assert storage.served == ["/volume/nfs/pv1", "/volume/nfs/pv2"]
    for slot in ("masterNode-0", "workerNode-0"):
        assert "nfs-common" in (await host(rig, instance_id, slot)).packages
    ran = await records(rig, operation)
    registered = began(ran["register the persistent volumes"])
    assert registered > max(ended(one) for name, one in ran.items() if name.startswith(("NFS client", "serve NFS")))
    assert began(ran["register the cluster as a VIM"]) > ended(ran["register the persistent volumes"])
    inventory = [one.content for path, one in server_of(rig).files.items() if inventory_of(instance_id) in path]
    assert any(b"masternode-0" in content for content in inventory)
    assert not any(b"storageserver" in content.lower() or address.encode() in content for content in inventory)


async def test_nodes_that_come_later_can_mount_them(rig: ClusterRig) -> None:
    instance_id, _ = await stored(rig)
    await rig.completed(SCALE, instance_id, out(1))
    assert "nfs-common" in (await host(rig, instance_id, "workerNode-1")).packages
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "workerNode-0"))
    assert "nfs-common" in (await host(rig, instance_id, "workerNode-0")).packages
    assert await phases(rig, instance_id) == AVAILABLE
    await rig.completed(SCALE, instance_id, back(1))
    await rig.check(instance_id)


async def test_a_server_in_use_is_healed_when_nobody_uses_it_any_more_and_no_playbook_runs(rig: ClusterRig) -> None:
    instance_id, _ = await stored(rig)
    api = await rig.api(instance_id)
    await api.create(CLAIMS, CLAIM)
    before, (_, volume) = await rig.machines(instance_id), await server(rig, instance_id)
    uuid = await uuid_of(rig, volume)
    operation, detail = await rig.failed(HEAL, instance_id, await rig.heal(instance_id, STORAGE))
    assert "in use: nfs-pv1 by the claim default/data" in detail
    await api.delete(f"{CLAIMS}/data")
    await rig.rig.slipway.lcm.retry(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.COMPLETED
    after = await rig.machines(instance_id)
    assert {slot for slot in before if before[slot] != after[slot]} == {STORAGE}
    address, same = await server(rig, instance_id)
    assert (same, await uuid_of(rig, same)) == (volume, uuid)
    assert await volumes(rig, instance_id) == {name: (phase, address) for name, phase in AVAILABLE.items()}
    assert not [name for name in await records(rig, operation) if ".yml" in name or "Ansible" in name]
    await rig.check(instance_id)


async def test_healed_with_nodes_and_in_use_nothing_has_happened_to_them_and_it_is_rolled_back(rig: ClusterRig) -> None:
    instance_id, _ = await stored(rig)
    await rig.completed(SCALE, instance_id, out(1))
    await (await rig.api(instance_id)).create(CLAIMS, CLAIM)
    before = await rig.machines(instance_id)
    operation, detail = await rig.failed(HEAL, instance_id, await rig.heal(instance_id, "workerNode-1", STORAGE))
    assert "in use: nfs-pv1 by the claim default/data" in detail
    assert [name for name, one in (await records(rig, operation)).items() if one.started_at is not None] == [
        "check that no persistent volume is in use"
    ]
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    assert await rig.machines(instance_id) == before
    assert await phases(rig, instance_id) == {**AVAILABLE, "nfs-pv1": "Bound"}
    await rig.check(instance_id)


async def test_server_balancer_and_a_worker_that_are_dead_are_healed_at_once(rig: ClusterRig) -> None:
    instance_id, _ = await stored(rig, external_lb_param=BALANCER)
    dead = ("workerNode-0", "externalLB-0", STORAGE)
    for slot in dead:
        await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, (await rig.machines(instance_id))[slot])
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, *dead))
    address, _ = await server(rig, instance_id)
    assert await volumes(rig, instance_id) == {name: (phase, address) for name, phase in AVAILABLE.items()}
    await rig.check(instance_id)


@pytest.mark.parametrize("everything", [False, True])
async def test_a_whole_heal_keeps_the_volume_unless_all_is_asked(rig: ClusterRig, everything: bool) -> None:
    instance_id, _ = await stored(rig)
    _, before = await server(rig, instance_id)
    await rig.completed(HEAL, instance_id, HealRequest(additional_params={"all": everything}))
    address, after = await server(rig, instance_id)
    assert (before == after) is not everything
    assert await volumes(rig, instance_id) == {name: (phase, address) for name, phase in AVAILABLE.items()}
    await rig.check(instance_id)


@pytest.mark.parametrize("retained", [False, True])
async def test_terminated_nothing_is_left_but_the_data_that_is_to_be_retained(rig: ClusterRig, retained: bool) -> None:
    instance_id, _ = await stored(rig)
    _, volume = await server(rig, instance_id)
    request = replace(FORCEFUL, additional_params={"retain_data": True}) if retained else FORCEFUL
    await rig.completed(TERMINATE, instance_id, request)
    await rig.check(instance_id)
    vnf = (await rig.rig.instance(instance_id)).vnf
    assert vnf.metadata.get("retainedVolumes", {}) == ({volume: "storageServer_volume"} if retained else {})
    assert server_of(rig).files == {}


async def test_another_ansible_server_is_not_used_by_the_heal_of_a_storage_server(rig: ClusterRig) -> None:
    instance_id, _ = await stored(rig)
    other = "192.0.2.11"
    heal = await rig.heal(instance_id, STORAGE)
    moved = parameters(ansible=ansible(ip_address=other))
    await rig.completed(HEAL, instance_id, replace(heal, additional_params=moved))
    assert server_of(rig).files != {}
    await rig.check(instance_id)


async def test_a_change_of_package_takes_no_volume_away(rig: ClusterRig, tmp_path: Path) -> None:
    instance_id, _ = await stored(rig)
    _, volume = await server(rig, instance_id)
    await onboard_next(rig.rig, KUBESPRAY, tmp_path / "next", NEXT_ID, words={"storageServer_volume": "otherVolume"})
    setup = {"cinder_volume_setup_params": [{"volume_resource_id": "otherVolume", "mount_to": "/volume"}]}
    asked = {"k8s_cluster_installation_param": {"storage_server": setup}}
    with pytest.raises(BadRequest, match="the storage server has 'storageServer_volume' mounted"):
        await rig.rig.slipway.lcm.start_operation(
            OperationType.CHANGE_VNFPKG, instance_id, ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=asked)
        )
    assert (await server(rig, instance_id))[1] == volume


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no machine for it": (storage_parameters(), "storage_server.ssh_cp_name: the flavour has no connection point"),
    "volumes of nobody": (
        {"pv_registration_params": storage_parameters()["pv_registration_params"]},
        "pv_registration_params: there is no storage server for the volumes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_without_a_server_in_the_flavour_or_the_request_it_is_refused(tmp_path: Path, name: str) -> None:
    more, said = REFUSED[name]
    async with kubespray_rig(settings_in(tmp_path), working=False) as rig:
        instance_id = await rig.rig.create()
        with pytest.raises(RequestError) as refused:
            await rig.rig.slipway.lcm.start_operation(INSTANTIATE, instance_id, instantiate(**more))
        assert said in str(refused.value)


REFUSED_STORAGE: dict[str, tuple[dict[str, Any], str]] = {
    "a node": ({"storage_server": {**SERVER, "ssh_cp_name": "workerNode_CP1"}}, "is a VDU of the cluster's nodes"),
    "another volume": (
        {"storage_server": {**SERVER, "cinder_volume_setup_params": [
            {"volume_resource_id": "x", "mount_to": "/volume"}
        ]}},
        "has no block storage 'x' in the VNFD",
    ),
    "the balancer's": (
        {"external_lb_param": {**BALANCER, "ssh_cp_name": "storageServer_CP1"}},
        "external_lb_param.ssh_cp_name: the connection point 'storageServer_CP1' belongs to 'storageServer', which",
    ),
    "no such file": (
        {"pv_registration_params": [
            {"pv_manifest_file_path": "Files/kubernetes/pv9.yaml", "nfs_server_cp": "storageServer_CP1"}
        ]},
        "the package has no file Files/kubernetes/pv9.yaml",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_STORAGE)
async def test_what_can_be_known_is_refused_at_the_request(tmp_path: Path, name: str) -> None:
    more, said = REFUSED_STORAGE[name]
    async with kubespray_rig(settings_in(tmp_path), working=False) as rig:
        instance_id = await rig.rig.create()
        with pytest.raises(BadRequest) as refused:
            await rig.rig.slipway.lcm.start_operation(INSTANTIATE, instance_id, instantiate_storage(**more))
        assert said in str(refused.value)
