"""Clusters with a storage server, on simulated machines: set up, scaled, healed, terminated, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.kube.interface import Object
from slipway.model.descriptor import Descriptor
from slipway.model.errors import BadRequest, VimFault
from slipway.model.instance import InstantiationState
from slipway.model.operation import OperationType, State
from slipway.model.requests import AnyRequest, ChangePackageRequest, HealRequest
from slipway.simulator.cluster.host import find_host
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.cluster_rig import (
    CLUSTER,
    FORCEFUL,
    ClusterRig,
    back,
    cluster_rig,
    instantiate_storage,
    out,
    storage_parameters,
)
from tests.functional.next_package import NEXT_ID, OTHER_ID, onboard_next
from tests.functional.rig import SIMULATED_VIM, settings_in

INSTANTIATE, HEAL, SCALE = OperationType.INSTANTIATE, OperationType.HEAL, OperationType.SCALE
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLAIM: Object = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": "nfs-pv1",
             "resources": {"requests": {"storage": "100Mi"}}},
}  # fmt: skip


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ClusterRig]:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        yield rig


async def stored(rig: ClusterRig) -> str:
    instance_id = await rig.rig.create()
    await rig.completed(INSTANTIATE, instance_id, instantiate_storage())
    return instance_id


async def volumes(rig: ClusterRig, instance_id: str) -> dict[str, tuple[str, str]]:
    """Phase and server, by name."""
    found = await (await rig.api(instance_id)).list(VOLUMES)
    return {one["metadata"]["name"]: (one["status"]["phase"], one["spec"]["nfs"]["server"]) for one in found}


async def server(rig: ClusterRig, instance_id: str) -> tuple[str, str]:
    """Its address, and the VIM's id of its volume."""
    found = (await rig.rig.inventory())[instance_id]
    (machine,) = (one for one in found.machines if one.name == "storageServer-0")
    return str(machine.ports[0].address), machine.volumes[0].resource_id


async def host(rig: ClusterRig, instance_id: str, slot: str) -> Any:
    machine = (await rig.machines(instance_id))[slot]
    return rig.connector.simulation.look(SIMULATED_VIM, lambda db, _: find_host(db, machine))


async def uuid_of(rig: ClusterRig, volume: str) -> str:
    sql = "SELECT uuid FROM disk WHERE resource_id = ?"
    return str(rig.connector.simulation.look(SIMULATED_VIM, lambda db, _: db.execute(sql, (volume,)).fetchone())[0])


async def test_volumes_are_served_and_registered_before_the_cluster_is(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    await rig.check(instance_id)
    address, volume = await server(rig, instance_id)
    assert await volumes(rig, instance_id) == {
        "nfs-pv1": ("Available", address),
        "nfs-pv2": ("Available", address),
    }
    storage = await host(rig, instance_id, "storageServer-0")
    assert storage.mounts == {"/volume": volume}
    assert storage.served == ["/volume/nfs/pv1", "/volume/nfs/pv2"]
    for slot in ("masterNode-0", "workerNode-0"):
        assert "nfs-common" in (await host(rig, instance_id, slot)).packages


async def test_a_node_that_comes_later_can_mount_them(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    await rig.completed(SCALE, instance_id, out(1))
    assert "nfs-common" in (await host(rig, instance_id, "workerNode-1")).packages
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "workerNode-0"))
    assert "nfs-common" in (await host(rig, instance_id, "workerNode-0")).packages
    await rig.completed(SCALE, instance_id, back(1))
    await rig.check(instance_id)


async def test_a_storage_server_in_use_is_not_healed_and_what_uses_it_is_named(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    api = await rig.api(instance_id)
    await api.create(CLAIMS, CLAIM)
    before = await rig.machines(instance_id)
    operation, detail = await rig.failed(HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    assert "in use: nfs-pv1 by the claim default/data" in detail
    assert "nfs-pv2" not in detail
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    assert await rig.machines(instance_id) == before
    assert {name: phase for name, (phase, _) in (await volumes(rig, instance_id)).items()} == {
        "nfs-pv1": "Bound",
        "nfs-pv2": "Available",
    }


@pytest.mark.parametrize("emptied", [None, False])
async def test_no_request_takes_the_server_out_of_what_is_asked_about_it(rig: ClusterRig, emptied: Any) -> None:
    """The machine would be made anew under those who use its volumes, and serve nothing."""
    instance_id = await stored(rig)
    taken = {"k8s_cluster_installation_param": {"storage_server": emptied, "pv_registration_params": None}}
    asked = replace(await rig.heal(instance_id, "storageServer-0"), additional_params=taken)
    with pytest.raises(BadRequest, match="storage_server: the cluster has one; leave it out"):
        await rig.rig.slipway.lcm.start_operation(HEAL, instance_id, asked)


async def test_once_nobody_uses_it_the_heal_goes_on_and_keeps_the_data(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    api = await rig.api(instance_id)
    await api.create(CLAIMS, CLAIM)
    before, (_, volume) = await rig.machines(instance_id), await server(rig, instance_id)
    uuid = await uuid_of(rig, volume)
    operation, _ = await rig.failed(HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    await api.delete(f"{CLAIMS}/data")
    assert (await volumes(rig, instance_id))["nfs-pv1"][0] == "Released"
    await rig.rig.slipway.lcm.retry(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.COMPLETED
    after = await rig.machines(instance_id)
    assert {slot for slot in before if before[slot] != after[slot]} == {"storageServer-0"}
    address, same = await server(rig, instance_id)
    assert (same, await uuid_of(rig, same)) == (volume, uuid)
    assert await volumes(rig, instance_id) == {
        "nfs-pv1": ("Available", address),
        "nfs-pv2": ("Available", address),
    }
    assert (await host(rig, instance_id, "storageServer-0")).mounts == {"/volume": volume}
    await rig.check(instance_id)


async def test_volumes_of_others_neither_count_nor_go(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    api = await rig.api(instance_id)
    theirs = {"metadata": {"name": "theirs"}, "spec": {"accessModes": ["ReadWriteMany"], "hostPath": {"path": "/x"}}}
    await api.create(VOLUMES, theirs)
    claim = {**CLAIM, "spec": {**CLAIM["spec"], "volumeName": "theirs"}}
    await api.create(CLAIMS, claim)
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    found = {one["metadata"]["name"]: one["status"]["phase"] for one in await api.list(VOLUMES)}
    assert found == {"nfs-pv1": "Available", "nfs-pv2": "Available", "theirs": "Bound"}


async def test_a_volume_of_that_name_that_is_not_ours_stays_and_is_named(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    api = await rig.api(instance_id)
    await api.delete(f"{VOLUMES}/nfs-pv2")
    theirs = {"metadata": {"name": "nfs-pv2"}, "spec": {"hostPath": {"path": "/x"}}}
    await api.create(VOLUMES, theirs)
    operation, detail = await rig.failed(HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    assert "a persistent volume nfs-pv2 that was not registered for this VNF" in detail
    await api.delete(f"{VOLUMES}/nfs-pv2")
    await rig.rig.slipway.lcm.retry(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.COMPLETED


@pytest.mark.parametrize("everything", [False, True])
async def test_a_whole_heal_keeps_the_volume_unless_all_is_asked(rig: ClusterRig, everything: bool) -> None:
    instance_id = await stored(rig)
    _, before = await server(rig, instance_id)
    await rig.completed(HEAL, instance_id, HealRequest(additional_params={"all": everything}))
    address, after = await server(rig, instance_id)
    assert (before == after) is not everything
    assert {phase for phase, _ in (await volumes(rig, instance_id)).values()} == {"Available"}
    assert {at for _, at in (await volumes(rig, instance_id)).values()} == {address}
    await rig.check(instance_id)


async def test_a_volume_with_foreign_data_is_left_as_it_is(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    _, volume = await server(rig, instance_id)

    def fill(db: Any, _: Any) -> None:
        db.execute("UPDATE disk SET uuid = 'foreign' WHERE resource_id = ?", (volume,))

    rig.connector.simulation.look(SIMULATED_VIM, fill)
    _, detail = await rig.failed(HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    assert "'mount volumes storageServer-0'" in detail
    assert "holds something that is not ours" in detail
    assert "e2label" in detail
    assert await uuid_of(rig, volume) == "foreign"


async def test_a_dead_storage_server_is_healed(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, (await rig.machines(instance_id))["storageServer-0"])
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    await rig.check(instance_id)


async def test_a_termination_that_retains_data_keeps_the_volume_and_says_its_id(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    _, volume = await server(rig, instance_id)
    uuid = await uuid_of(rig, volume)
    retaining = replace(FORCEFUL, additional_params={"retain_data": True})
    await rig.completed(OperationType.TERMINATE, instance_id, retaining)
    assert await rig.rig.inventory() == {}
    vnf = (await rig.rig.instance(instance_id)).vnf
    assert vnf.metadata["retainedVolumes"] == {volume: "storageServer_volume"}
    assert await uuid_of(rig, volume) == uuid
    await rig.completed(INSTANTIATE, instance_id, instantiate_storage())
    await rig.completed(OperationType.TERMINATE, instance_id, FORCEFUL)
    assert await uuid_of(rig, volume) == uuid


async def given_up(rig: ClusterRig, operation: OperationType, instance_id: str, request: AnyRequest) -> None:
    """It fails, and nobody retries it or rolls it back."""
    failed, _ = await rig.failed(operation, instance_id, request)
    await rig.rig.slipway.lcm.fail(failed.id)
    await rig.rules()


NO_ROOM = Rule(kind=RuleKind.ERROR, call="make_machine", machine="storageServer-0", fault=VimFault.QUOTA)
NO_NFS = Rule(kind=RuleKind.ERROR, call="host", machine="storageServer-0", asked="*nfs*", fault=VimFault.PERMANENT)


@pytest.mark.parametrize("healed", [True, False])
async def test_the_data_outlive_a_heal_that_was_given_up_without_a_server(rig: ClusterRig, healed: bool) -> None:
    instance_id = await stored(rig)
    _, volume = await server(rig, instance_id)
    uuid = await uuid_of(rig, volume)
    await rig.rules(NO_ROOM)
    await given_up(rig, HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    assert "storageServer-0" not in await rig.machines(instance_id)
    await rig.completed(*((HEAL, instance_id, HealRequest()) if healed else (SCALE, instance_id, out(1))))
    address, same = await server(rig, instance_id)
    assert (same, await uuid_of(rig, same)) == (volume, uuid)
    assert set((await volumes(rig, instance_id)).values()) == {("Available", address)}
    await rig.check(instance_id)


async def test_a_rollback_of_what_made_the_server_again_leaves_its_volume(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    _, volume = await server(rig, instance_id)
    uuid = await uuid_of(rig, volume)
    await rig.rules(NO_ROOM)
    await given_up(rig, HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    await rig.rules(NO_NFS)
    failed, _ = await rig.failed(SCALE, instance_id, out(1))
    await rig.rules()
    await rig.rig.slipway.lcm.roll_back(failed.id)
    assert (await rig.rig.rest(failed.id)).operation_state is State.ROLLED_BACK
    assert await uuid_of(rig, volume) == uuid
    await rig.completed(SCALE, instance_id, out(1))
    assert (await server(rig, instance_id))[1] == volume
    assert await uuid_of(rig, volume) == uuid
    await rig.check(instance_id)


async def test_all_of_a_whole_heal_is_all_also_without_a_server(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    _, volume = await server(rig, instance_id)
    await rig.rules(NO_ROOM)
    await given_up(rig, HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    await rig.completed(HEAL, instance_id, HealRequest(additional_params={"all": True}))
    _, other = await server(rig, instance_id)
    assert other != volume
    await rig.check(instance_id)


@pytest.mark.parametrize("retained_before", [True, False])
async def test_a_termination_retains_the_data_whatever_was_given_up_before(
    rig: ClusterRig, retained_before: bool
) -> None:
    instance_id = await stored(rig)
    _, volume = await server(rig, instance_id)
    uuid, retaining = await uuid_of(rig, volume), replace(FORCEFUL, additional_params={"retain_data": True})
    if retained_before:
        await rig.rules(
            Rule(kind=RuleKind.ERROR, call="remove_machine", machine="masterNode-0", fault=VimFault.PERMANENT)
        )
        await given_up(rig, OperationType.TERMINATE, instance_id, retaining)
    else:
        await rig.rules(NO_ROOM)
        await given_up(rig, HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    await rig.completed(OperationType.TERMINATE, instance_id, retaining)
    assert await rig.rig.inventory() == {}
    vnf = (await rig.rig.instance(instance_id)).vnf
    assert vnf.metadata["retainedVolumes"] == {volume: "storageServer_volume"}
    assert await uuid_of(rig, volume) == uuid


@pytest.mark.parametrize("healed", [False, True])
async def test_what_a_server_that_stays_would_not_hear_of_is_refused(rig: ClusterRig, healed: bool) -> None:
    """It would end COMPLETED, without the volume that was asked for."""
    instance_id, said = await stored(rig), storage_parameters()
    fewer = {"k8s_cluster_installation_param": {**said, "pv_registration_params": said["pv_registration_params"][:1]}}
    kind, request = (HEAL, await rig.heal(instance_id, "workerNode-0")) if healed else (SCALE, out(1))
    with pytest.raises(BadRequest, match="pv_registration_params: the storage server stays as it is"):
        await rig.rig.slipway.lcm.start_operation(kind, instance_id, replace(request, additional_params=fewer))
    same = replace(request, additional_params={"k8s_cluster_installation_param": said})
    await rig.completed(kind, instance_id, same)
    server = await rig.heal(instance_id, "storageServer-0")
    await rig.completed(HEAL, instance_id, replace(server, additional_params=fewer))
    assert list(await volumes(rig, instance_id)) == ["nfs-pv1"]
    await rig.completed(SCALE, instance_id, replace(out(1), additional_params=fewer))
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
    assert list(await volumes(rig, instance_id)) == ["nfs-pv1"], "it is what the cluster has from then on"


def with_another_volume(descriptor: Descriptor) -> Descriptor:
    flavour = descriptor.flavours["storage"]
    vdu, volume = flavour.vdus["storageServer"], flavour.storages["storageServer_volume"]
    flavour = replace(
        flavour,
        storages={**flavour.storages, "another": replace(volume, name="another")},
        vdus={**flavour.vdus, "storageServer": replace(vdu, storages=(*vdu.storages, "another"))},
    )
    return replace(descriptor, flavours={**descriptor.flavours, "storage": flavour})


@pytest.mark.parametrize("completes", [True, False])
async def test_a_volume_that_a_heal_has_mounted_is_taken_away_by_no_change_of_package(
    rig: ClusterRig, tmp_path: Path, completes: bool
) -> None:
    """What the heal said was not kept, and the volume was deleted while it was mounted and in use."""
    instance_id, said = await stored(rig), storage_parameters()
    await onboard_next(rig.rig, CLUSTER, tmp_path / "next", NEXT_ID, change=with_another_volume)
    await onboard_next(rig.rig, CLUSTER, tmp_path / "other", OTHER_ID, version="3.0")
    await rig.completed(OperationType.CHANGE_VNFPKG, instance_id, ChangePackageRequest(vnfd_id=NEXT_ID))
    said["storage_server"]["cinder_volume_setup_params"].append({"volume_resource_id": "another", "mount_to": "/more"})
    asked = {"k8s_cluster_installation_param": said}
    heal = replace(await rig.heal(instance_id, "storageServer-0"), additional_params=asked)
    if completes:
        await rig.completed(HEAL, instance_id, heal)
    else:
        await rig.rules(NO_NFS)
        await given_up(rig, HEAL, instance_id, heal)
    assert set((await host(rig, instance_id, "storageServer-0")).mounts) == {"/volume", "/more"}
    with pytest.raises(BadRequest, match="'another'"):
        await rig.rig.slipway.lcm.start_operation(
            OperationType.CHANGE_VNFPKG, instance_id, ChangePackageRequest(vnfd_id=OTHER_ID)
        )


@pytest.mark.parametrize("stays", [False, True])
async def test_a_change_of_package_takes_no_volume_away(rig: ClusterRig, tmp_path: Path, stays: bool) -> None:
    """The server is not made anew: its volume would be deleted while it is mounted and in use."""
    instance_id = await stored(rig)
    _, volume = await server(rig, instance_id)
    uuid, words = await uuid_of(rig, volume), {} if stays else {"storageServer_volume": "otherVolume"}
    await onboard_next(rig.rig, CLUSTER, tmp_path / "next", NEXT_ID, words=words)
    name = "storageServer_volume" if stays else "otherVolume"
    setup = {"cinder_volume_setup_params": [{"volume_resource_id": name, "mount_to": "/volume"}]}
    first = storage_parameters()["pv_registration_params"][:1]
    asked = {"k8s_cluster_installation_param": {"storage_server": setup, "pv_registration_params": first}}
    request = ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=asked)
    if stays:
        registered = list(await volumes(rig, instance_id))
        await rig.completed(OperationType.CHANGE_VNFPKG, instance_id, request)
        assert list(await volumes(rig, instance_id)) == registered != ["nfs-pv1"]
        await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "storageServer-0"))
        assert list(await volumes(rig, instance_id)) == ["nfs-pv1"], "what the change said counts from then on"
    else:
        with pytest.raises(
            BadRequest, match="cinder_volume_setup_params: the storage server has 'storageServer_volume' mounted"
        ):
            await rig.rig.slipway.lcm.start_operation(OperationType.CHANGE_VNFPKG, instance_id, request)
    assert (await server(rig, instance_id))[1] == volume
    assert await uuid_of(rig, volume) == uuid


async def test_terminated_nothing_is_left(rig: ClusterRig) -> None:
    instance_id = await stored(rig)
    await rig.completed(OperationType.TERMINATE, instance_id, FORCEFUL)
    assert await rig.rig.inventory() == {}
    vnf = (await rig.rig.instance(instance_id)).vnf
    assert vnf.instantiation_state is InstantiationState.NOT_INSTANTIATED
