"""The package's own node script, and Helm, on simulated hosts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from slipway.model.operation import OperationType
from slipway.simulator.cluster.host import SimulatedHost, find_host
from slipway.simulator.cluster.node_script import HELM
from tests.functional.cluster_rig import FORCEFUL, ClusterRig, back, cluster_rig, instantiate, out
from tests.functional.rig import SIMULATED_VIM, settings_in
from tests.functional.test_cluster_sources_simulated import package_with

SCRIPT = "Scripts/install_k8s_cluster.sh"
TOKEN = "abcdef.0123456789abcdef"
FILES = {
    SCRIPT: b"#!/bin/sh\nkubeadm ...\n",
    "Scripts/fails.sh": f"#!/bin/sh\necho token: {TOKEN}\nexit 1\n".encode(),
    "Scripts/does_nothing.sh": b"#!/bin/sh\nexit 0\n",
    "Scripts/helm.sh": b"#!/bin/sh\ninstall helm\n",
    "Files/helm.tar.gz": b"v3.19.0",
}
HELM_FILE = {"path": "Files/helm.tar.gz", "sha256": hashlib.sha256(b"v3.19.0").hexdigest(), "version": "3.19.0"}


async def host(rig: ClusterRig, instance_id: str, slot: str) -> SimulatedHost:
    machine = (await rig.machines(instance_id))[slot]
    return rig.connector.simulation.look(SIMULATED_VIM, lambda db, _: find_host(db, machine))


async def test_a_script_makes_a_cluster_that_grows_is_healed_shrinks_and_goes(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.cluster(1, script_path=SCRIPT)
        await rig.check(instance_id)
        await rig.completed(OperationType.SCALE, instance_id, out(1))
        await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "workerNode-1"))
        await rig.check(instance_id)
        await rig.completed(OperationType.SCALE, instance_id, back(1))
        await rig.check(instance_id)
        asked = set(await rig.host_calls())
        assert not {"masterNode-0 prepare", "masterNode-0 init", "workerNode-0 join"} & asked
        for slot in await rig.machines(instance_id):
            left = (await host(rig, instance_id, slot)).files
            assert not any(path.startswith("/var/lib/slipway/script") for path in left)
        await rig.completed(OperationType.TERMINATE, instance_id, FORCEFUL)
        await rig.check(instance_id)


async def test_masters_join_by_the_script_too(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.cluster(3, script_path=SCRIPT, smoke_test=False)
        await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "masterNode-1"))
        (seen,) = rig.seen()
        assert len(seen.nodes) == 5
        assert seen.cluster is not None
        assert len(seen.cluster.members) == 3


async def test_a_script_that_fails_is_told_without_what_it_printed_of_tokens(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(1, script_path="Scripts/fails.sh")
        _, detail = await rig.failed(OperationType.INSTANTIATE, instance_id, request)
        assert "'init masterNode-0' on masterNode-0" in detail
        assert "Scripts/fails.sh failed" in detail


async def test_a_script_that_ends_well_without_a_cluster_has_failed(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(1, script_path="Scripts/does_nothing.sh")
        _, detail = await rig.failed(OperationType.INSTANTIATE, instance_id, request)
        assert "ended well on masterNode-0, but began no cluster: there is no /etc/kubernetes/admin.conf" in detail


@pytest.mark.parametrize("masters", [1, 3])
async def test_helm_is_on_every_master_also_on_a_healed_one(masters: int, tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.cluster(masters, helm=HELM_FILE)
        if masters > 1:
            await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "masterNode-1"))
        for slot in await rig.machines(instance_id):
            assert (HELM in (await host(rig, instance_id, slot)).files) == slot.startswith("masterNode")


async def test_helm_by_the_packages_script(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.cluster(1, helm_installation_script_path="Scripts/helm.sh")
        assert HELM in (await host(rig, instance_id, "masterNode-0")).files


async def test_another_version_of_helm_than_was_asked_for_is_refused(tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path / "data"), sample=package_with(FILES, tmp_path)) as rig:
        instance_id = await rig.rig.create()
        request = instantiate(1, helm={**HELM_FILE, "version": "3.18.0"})
        _, detail = await rig.failed(OperationType.INSTANTIATE, instance_id, request)
        assert "has Helm v3.19.0, and 3.18.0 is wanted" in detail
