"""A cluster by kubespray whose load balancer is dead: the cluster changes all the same, and its heal catches up."""

from __future__ import annotations

from pathlib import Path

from slipway.cluster.steps.liveness import LivenessLimits
from slipway.load_balancer.records import BalancerRecords
from slipway.model.errors import VimFault
from slipway.model.operation import OperationType, State
from slipway.model.requests import TerminateRequest, TerminationType
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.cluster_rig import ClusterRig, back, cluster_rig, out
from tests.functional.kubespray_rig import BALANCER, KUBESPRAY, instantiate, kubespray_rig
from tests.functional.rig import SIMULATED_VIM, settings_in

INSTANTIATE, SCALE, HEAL = OperationType.INSTANTIATE, OperationType.SCALE, OperationType.HEAL


async def with_dead_balancer(rig: ClusterRig) -> str:
    instance_id = await rig.rig.create()
    await rig.completed(INSTANTIATE, instance_id, instantiate(external_lb_param=BALANCER))
    machines = await rig.machines(instance_id)
    await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, machines["externalLB-0"])
    return instance_id


async def routed(rig: ClusterRig, instance_id: str) -> int:
    """To how many workers, as the record has it."""
    record = await BalancerRecords(rig.rig.slipway.database).get(instance_id)
    assert record
    return sum(not server.master for server in record.routes.servers)


async def heal_balancer(rig: ClusterRig, instance_id: str) -> None:
    """Afterwards what is live is what is recorded."""
    await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "externalLB-0"))
    await rig.check(instance_id)


async def test_workers_come_and_go_and_the_heal_catches_up(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await with_dead_balancer(rig)
        await rig.completed(SCALE, instance_id, out())
        await rig.completed(SCALE, instance_id, out())
        await rig.completed(SCALE, instance_id, back())
        assert await routed(rig, instance_id) == 3
        await heal_balancer(rig, instance_id)
        assert await routed(rig, instance_id) == 3


async def test_a_worker_is_healed_beside_it(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await with_dead_balancer(rig)
        await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "workerNode-1"))
        assert await routed(rig, instance_id) == 2
        await heal_balancer(rig, instance_id)


async def test_it_is_healed_beside_a_dead_master(tmp_path: Path) -> None:
    """cluster.yml, which gives certificates its address, waited for the master and failed."""
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await rig.rig.create()
        await rig.completed(INSTANTIATE, instance_id, instantiate(3, external_lb_param=BALANCER))
        machines = await rig.machines(instance_id)
        for slot in ("masterNode-2", "externalLB-0"):
            await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, machines[slot])
        await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "externalLB-0"))
        await rig.completed(HEAL, instance_id, await rig.heal(instance_id, "masterNode-2"))
        await rig.check(instance_id)


async def test_a_rollback_needs_no_balancer(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await with_dead_balancer(rig)
        await rig.completed(SCALE, instance_id, out())
        await rig.rules(Rule(kind=RuleKind.ERROR, call="api", asked="PATCH /api/v1/nodes/*", status=403))
        failed, _ = await rig.failed(SCALE, instance_id, back())
        await rig.rules()
        await rig.rig.slipway.lcm.roll_back(failed.id)
        rolled = await rig.rig.rest(failed.id)
        assert rolled.operation_state is State.ROLLED_BACK, rolled.error
        assert await routed(rig, instance_id) == 3
        await heal_balancer(rig, instance_id)


async def test_it_is_terminated(tmp_path: Path) -> None:
    async with kubespray_rig(settings_in(tmp_path)) as rig:
        instance_id = await with_dead_balancer(rig)
        await rig.completed(
            OperationType.TERMINATE, instance_id, TerminateRequest(termination_type=TerminationType.FORCEFUL)
        )
        assert await BalancerRecords(rig.rig.slipway.database).get(instance_id) is None


async def test_one_that_is_silent_is_dead_too_whatever_its_vim_says(tmp_path: Path) -> None:
    """As a machine whose system hangs: it is refused at once, again and again, and says nothing for a while."""
    silent = Rule(kind=RuleKind.ERROR, call="host", machine="externalLB-0", fault=VimFault.TEMPORARY)
    limits = LivenessLimits(between=0.5, answer=1.0, confirm=0.5, unreachable=6.0)
    async with cluster_rig(settings_in(tmp_path), sample=KUBESPRAY, liveness=limits) as rig:
        instance_id = await rig.rig.create()
        await rig.completed(INSTANTIATE, instance_id, instantiate(external_lb_param=BALANCER))
        await rig.rules(silent)
        await rig.completed(SCALE, instance_id, out())
        assert await routed(rig, instance_id) == 3
        await rig.rules()
        await rig.completed(SCALE, instance_id, out())
        await rig.check(instance_id)
