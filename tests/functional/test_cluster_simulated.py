"""A cluster's whole life on simulated hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from slipway.model.operation import OperationType
from slipway.model.requests import HealRequest
from tests.functional.cluster_rig import FORCEFUL, back, cluster_rig, out
from tests.functional.rig import settings_in


@pytest.mark.parametrize("masters", [1, 3])
async def test_a_cluster_grows_shrinks_is_healed_and_goes(masters: int, tmp_path: Path) -> None:
    async with cluster_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.cluster(masters)
        await rig.check(instance_id)
        await rig.completed(OperationType.SCALE, instance_id, out(2))
        await rig.check(instance_id)
        await rig.completed(OperationType.SCALE, instance_id, back(1))
        await rig.check(instance_id)
        await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "workerNode-1"))
        await rig.check(instance_id)
        await rig.completed(OperationType.HEAL, instance_id, HealRequest())
        await rig.check(instance_id)
        await rig.completed(OperationType.TERMINATE, instance_id, FORCEFUL)
        await rig.check(instance_id)
