"""A cluster's whole life on a VIM that changes everything in one step: drains before it, joins after it, in turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slipway.model.errors import Conflict, VimFault
from slipway.model.journal import StepRecord
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import ChangePackageRequest, HealRequest
from slipway.vim.simulated.rules import Rule, RuleKind
from tests.drivers.stack import StackDriver
from tests.functional.cluster_rig import (
    CLUSTER,
    FORCEFUL,
    ClusterRig,
    back,
    began,
    cluster_rig,
    ended,
    instantiate,
    out,
)
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import settings_in

OLD, NEW = "1.33.13", "1.34.4"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ClusterRig]:
    async with cluster_rig(settings_in(tmp_path / "data"), simulated=StackDriver) as rig:
        await onboard_next(rig.rig, CLUSTER, tmp_path, NEXT_ID, image=NEW)
        yield rig


async def journal(rig: ClusterRig, operation: Operation) -> dict[str, StepRecord]:
    return {record.id: record for record in await rig.rig.journal(operation.id)}


async def test_a_cluster_of_three_masters_lives_its_whole_life(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3, kubernetes_version=OLD)
    await rig.check(instance_id)
    await rig.completed(OperationType.SCALE, instance_id, out(2))
    await rig.check(instance_id)

    shrunk = await journal(rig, await rig.completed(OperationType.SCALE, instance_id, back(2)))
    drains = [record for name, record in shrunk.items() if name.startswith("drain ")]
    assert len(drains) == 2
    assert all(ended(drain) <= began(shrunk["change stack"]) for drain in drains)
    await rig.check(instance_id)

    two = await rig.heal(instance_id, "masterNode-0", "masterNode-2")
    healed = await journal(rig, await rig.completed(OperationType.HEAL, instance_id, two))
    first, second = healed["change stack (1/2)"], healed["change stack (2/2)"]
    assert [len(step.nodes) for step in (first, second)] == [1, 1]
    assert ended(healed[f"ready {first.nodes[0]}"]) <= began(healed[f"leave etcd {second.nodes[0]}"]) <= began(second)
    await rig.check(instance_id)

    await rig.completed(OperationType.CHANGE_VNFPKG, instance_id, ChangePackageRequest(vnfd_id=NEXT_ID))
    await rig.check(instance_id)
    await rig.completed(OperationType.HEAL, instance_id, HealRequest())
    await rig.check(instance_id)
    await rig.completed(OperationType.TERMINATE, instance_id, FORCEFUL)
    await rig.check(instance_id)


def refused(slot: str) -> Rule:
    return Rule(call="make_machine", machine=slot, kind=RuleKind.ERROR, fault=VimFault.PERMANENT)


async def test_a_failed_instantiation_is_rolled_back_and_leaves_nothing(rig: ClusterRig) -> None:
    await rig.rules(refused("workerNode-1"))
    instance_id = await rig.rig.create()
    operation, _ = await rig.failed(OperationType.INSTANTIATE, instance_id, instantiate(3))
    await rig.rules()
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    await rig.check(instance_id)


async def test_a_failed_scale_out_is_rolled_back_to_the_template_before(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(1)
    before = await rig.machines(instance_id)
    await rig.rules(refused("workerNode-3"))
    operation, _ = await rig.failed(OperationType.SCALE, instance_id, out(2))
    await rig.rules()
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    assert await rig.machines(instance_id) == before
    await rig.check(instance_id)


async def test_a_scale_in_that_took_a_machine_away_can_only_go_on(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(1)
    await rig.completed(OperationType.SCALE, instance_id, out(1))
    await rig.rules(
        Rule(kind=RuleKind.ERROR, call="remove_machine", machine="workerNode-2", fault=VimFault.PERMANENT, times=1)
    )
    operation, _ = await rig.failed(OperationType.SCALE, instance_id, back(1))
    with pytest.raises(Conflict, match="step 'change stack' began and can't be undone"):
        await rig.rig.slipway.lcm.roll_back(operation.id)
    retried = await rig.rig.slipway.lcm.retry(operation.id)
    assert (await rig.rig.rest(retried.id)).operation_state is State.COMPLETED
    await rig.check(instance_id)
