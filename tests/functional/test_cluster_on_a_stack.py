"""A cluster's whole life on a VIM that changes everything in one step: drains before it, joins after it, in turns."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from slipway.model.descriptor import Descriptor
from slipway.model.errors import Conflict, VimFault
from slipway.model.journal import StepRecord
from slipway.model.operation import Operation, OperationType, State
from slipway.model.requests import ChangePackageRequest, HealRequest
from slipway.vim.fault_rules import Rule, RuleKind
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
from tests.functional.next_package import NEXT_ID, OTHER_ID, onboard_next
from tests.functional.rig import SIMULATED_VIM, settings_in

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


def failing(asked: str, slot: str) -> Rule:
    return Rule(call="host", asked=asked, machine=slot, kind=RuleKind.ERROR, fault=VimFault.PERMANENT)


async def rolled_back(rig: ClusterRig, operation: Operation) -> None:
    await rig.rules()
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK


async def can_only_go_on(rig: ClusterRig, operation: Operation, step: str) -> None:
    """The rollback is refused and names the step that stands against it; a retry completes the operation."""
    with pytest.raises(Conflict, match=f"step {re.escape(repr(step))} began and can't be undone"):
        await rig.rig.slipway.lcm.roll_back(operation.id)
    await rig.rules()
    retried = await rig.rig.slipway.lcm.retry(operation.id)
    assert (await rig.rig.rest(retried.id)).operation_state is State.COMPLETED


async def test_a_failed_instantiation_is_rolled_back_and_leaves_nothing(rig: ClusterRig) -> None:
    await rig.rules(refused("workerNode-1"))
    instance_id = await rig.rig.create()
    operation, _ = await rig.failed(OperationType.INSTANTIATE, instance_id, instantiate(3))
    await rolled_back(rig, operation)
    await rig.check(instance_id)


async def test_a_failed_scale_out_is_rolled_back_to_the_template_before(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(1)
    before = await rig.machines(instance_id)
    await rig.rules(refused("workerNode-3"))
    operation, _ = await rig.failed(OperationType.SCALE, instance_id, out(2))
    await rolled_back(rig, operation)
    assert await rig.machines(instance_id) == before
    await rig.check(instance_id)


async def test_a_scale_in_that_took_a_machine_away_can_only_go_on(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(1)
    await rig.completed(OperationType.SCALE, instance_id, out(1))
    await rig.rules(
        Rule(kind=RuleKind.ERROR, call="remove_machine", machine="workerNode-2", fault=VimFault.PERMANENT, times=1)
    )
    operation, _ = await rig.failed(OperationType.SCALE, instance_id, back(1))
    await can_only_go_on(rig, operation, "change stack")
    await rig.check(instance_id)


async def test_a_heal_that_was_stopped_before_the_stack_changed_is_rolled_back(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3)
    before = await rig.machines(instance_id)
    await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, before["masterNode-1"])
    operation, detail = await rig.failed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "masterNode-2"))
    assert "check quorum without masterNode-2" in detail
    await rolled_back(rig, operation)
    assert await rig.machines(instance_id) == before
    await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "masterNode-1"))
    await rig.check(instance_id)


async def test_a_heal_whose_second_turn_failed_can_only_go_on(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3)
    before = await rig.machines(instance_id)
    two = await rig.heal(instance_id, "masterNode-0", "masterNode-2")
    plan = await rig.rig.slipway.lcm.preview_plan(OperationType.HEAL, instance_id, two)
    first, second = (step for step in plan.steps if step.id.startswith("change stack"))
    await rig.rules(refused(second.nodes[0]))
    operation, detail = await rig.failed(OperationType.HEAL, instance_id, two)
    assert second.id in detail
    await can_only_go_on(rig, operation, f"leave etcd {first.nodes[0]}")
    after = await rig.machines(instance_id)
    assert {slot for slot in before if before[slot] != after[slot]} == {"masterNode-0", "masterNode-2"}
    await rig.check(instance_id)


async def test_a_heal_of_a_worker_that_took_its_machine_away_can_only_go_on(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(1)
    before = await rig.machines(instance_id)
    await rig.rules(refused("workerNode-0"))
    operation, _ = await rig.failed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "workerNode-0"))
    await can_only_go_on(rig, operation, "change stack")
    after = await rig.machines(instance_id)
    assert {slot for slot in before if before[slot] != after[slot]} == {"workerNode-0"}
    await rig.check(instance_id)


def with_one_more_port(descriptor: Descriptor) -> Descriptor:
    flavour = descriptor.flavours["ha"]
    first = flavour.connection_points["workerNode_CP1"]
    points = {**flavour.connection_points, "workerNode_CP9": replace(first, name="workerNode_CP9", order=9)}
    return replace(descriptor, flavours={"ha": replace(flavour, connection_points=points)})


async def test_a_change_of_package_that_failed_in_the_stack_is_rolled_back_to_the_template_before(
    rig: ClusterRig, tmp_path: Path
) -> None:
    instance_id = await rig.cluster(3, kubernetes_version=OLD)
    before, ports = await rig.machines(instance_id), await ports_of(rig, instance_id)
    await onboard_next(rig.rig, CLUSTER, tmp_path, OTHER_ID, image=NEW, change=with_one_more_port)
    await rig.rules(refused("workerNode-1"))
    update = ChangePackageRequest(vnfd_id=OTHER_ID)
    operation, detail = await rig.failed(OperationType.CHANGE_VNFPKG, instance_id, update)
    assert "change stack" in detail
    assert await ports_of(rig, instance_id) > ports
    await rolled_back(rig, operation)
    assert (await rig.machines(instance_id), await ports_of(rig, instance_id)) == (before, ports)
    assert (await rig.rig.instance(instance_id)).vnf.vnfd_id == rig.rig.vnfd_id
    await rig.check(instance_id)

    await rig.completed(OperationType.CHANGE_VNFPKG, instance_id, update)
    assert len(await ports_of(rig, instance_id) - ports) == 2
    await rig.check(instance_id)


async def test_a_change_of_package_that_began_to_upgrade_nodes_can_only_go_on(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3, kubernetes_version=OLD)
    await rig.rules(failing("upgrade", "masterNode-1"))
    update = ChangePackageRequest(vnfd_id=NEXT_ID)
    operation, detail = await rig.failed(OperationType.CHANGE_VNFPKG, instance_id, update)
    assert "upgrade masterNode-1" in detail
    await can_only_go_on(rig, operation, "upgrade masterNode-0")
    assert (await rig.rig.instance(instance_id)).vnf.vnfd_id == NEXT_ID
    await rig.check(instance_id)


async def ports_of(rig: ClusterRig, instance_id: str) -> set[str]:
    """On the VIM, whatever the record says."""
    return {port.id for port in (await rig.rig.inventory())[instance_id].ports}
