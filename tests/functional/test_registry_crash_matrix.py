"""kill -9 at every step boundary of a registry's heal: it serves in the end as it did before, from the same volume."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from slipway.model.operation import OperationType, State
from slipway.settings import Settings
from tests.functional.cluster_crash_child import work_on_a_cluster
from tests.functional.cluster_rig import cluster_rig
from tests.functional.lives import one_life
from tests.functional.registry_rig import SECURE, SLOT, a_registry, docker_archive, host_at, onboard_registry, outputs
from tests.functional.rig import settings_in
from tests.functional.test_cluster_crash_matrix import EDGES, LEASE, copied

TOOLS = {"Files/images/tools.tar": docker_archive("tools/shell:1")}


@pytest.mark.group(name="crash")
async def test_killed_at_every_step_a_healed_registry_serves_as_before(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "prepared", lease_seconds=LEASE)
    async with cluster_rig(settings) as rig:
        await onboard_registry(rig, tmp_path / "package", TOOLS)
        instance_id, told = await a_registry(rig, **SECURE)
        (before,) = (await rig.rig.inventory())[instance_id].machines
        heal = await rig.heal(instance_id, SLOT)
        steps = (await rig.rig.slipway.lcm.preview_plan(OperationType.HEAL, instance_id, heal)).steps
    async with cluster_rig(settings, working=False) as rig:
        healing = await rig.rig.slipway.lcm.start_operation(OperationType.HEAL, instance_id, heal)

    async def live(edge: str, own: Settings) -> None:
        deadly = frozenset((edge, step.id) for step in steps)
        assert await one_life(work_on_a_cluster, own, healing.id, deadly) == deadly
        async with cluster_rig(own, working=False) as rig:
            done = await rig.rig.rest(healing.id)
            assert done.operation_state is State.COMPLETED, done.error
            assert await outputs(rig, instance_id) == told
            assert (await host_at(rig, instance_id, SLOT)).serves == 5000
            (after,) = (await rig.rig.inventory())[instance_id].machines
            assert after.id != before.id
            assert after.volumes == before.volumes

    await asyncio.gather(*(live(edge, copied(settings, tmp_path / edge)) for edge in EDGES))
