"""kill -9 at every step boundary of every operation on a cluster by kubespray: each run on the server happens once.

As in test_cluster_crash_matrix.py; what is simulated beside the machines is the Ansible server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from slipway.model.operation import OperationType, State
from slipway.model.requests import AnyRequest, HealRequest, ScaleRequest
from slipway.settings import Settings
from slipway.simulator.vim.driver import SimulatedDriver
from tests.functional.cluster_rig import FORCEFUL, ClusterRig, back, out
from tests.functional.kubespray_rig import BALANCER, instantiate, instantiate_storage, kubespray_rig
from tests.functional.rig import SIMULATED_VIM, settings_in
from tests.functional.test_cluster_crash_matrix import EDGES, LEASE, Prepared, healing, just, live

INSTANTIATE, SCALE, HEAL = OperationType.INSTANTIATE, OperationType.SCALE, OperationType.HEAL
CRASH = pytest.mark.group(name="crash")


@dataclass(frozen=True)
class Flow:
    """`masters` 0: nothing stands before. `broken`: the machine that has no power. `balanced`: by a load balancer.

    `storage`: with a storage server.
    """

    kind: OperationType
    request: Callable[[ClusterRig, str], Awaitable[AnyRequest]]
    masters: int = 0
    broken: str | None = None
    before: ScaleRequest | None = None
    balanced: bool = False
    storage: bool = False


FLOWS = {
    "instantiate": Flow(INSTANTIATE, just(instantiate())),
    "instantiate three masters": Flow(INSTANTIATE, just(instantiate(3))),
    "scale out": Flow(SCALE, just(out(2)), masters=1),
    "scale in": Flow(SCALE, just(back()), masters=1, before=out()),
    "heal a dead worker": Flow(HEAL, healing("workerNode-1"), masters=1, broken="workerNode-1"),
    "heal the first master": Flow(HEAL, healing("masterNode-0"), masters=3),
    "instantiate with a balancer": Flow(INSTANTIATE, just(instantiate(external_lb_param=BALANCER))),
    "scale out with a balancer": Flow(SCALE, just(out()), masters=1, balanced=True),
    "scale in with a balancer": Flow(SCALE, just(back()), masters=1, before=out(), balanced=True),
    "heal the first master with a balancer": Flow(HEAL, healing("masterNode-0"), masters=3, balanced=True),
    "heal all with a balancer": Flow(HEAL, just(HealRequest()), masters=1, balanced=True),
    "terminate with a balancer": Flow(OperationType.TERMINATE, just(FORCEFUL), masters=1, balanced=True),
    "heal a dead balancer": Flow(HEAL, healing("externalLB-0"), masters=1, broken="externalLB-0", balanced=True),
    "instantiate with storage": Flow(INSTANTIATE, just(instantiate_storage(external_lb_param=BALANCER))),
    "scale out beside storage": Flow(SCALE, just(out()), masters=1, storage=True),
    "heal the storage server": Flow(HEAL, healing("storageServer-0"), masters=1, storage=True),
    "heal a worker and the storage server": Flow(
        HEAL, healing("workerNode-0", "storageServer-0"), masters=1, before=out(), storage=True
    ),
    "heal all with storage": Flow(HEAL, just(HealRequest()), masters=1, storage=True),
    "heal all": Flow(HEAL, just(HealRequest()), masters=1),
    "terminate": Flow(OperationType.TERMINATE, just(FORCEFUL), masters=1),
}
IN_MAKE_TEST = ("instantiate",)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in IN_MAKE_TEST else CRASH) for name in FLOWS])
async def test_killed_at_every_step_a_cluster_by_kubespray_ends_as_it_should(name: str, tmp_path: Path) -> None:
    prepared = await prepare(FLOWS[name], settings_in(tmp_path / "prepared", lease_seconds=LEASE))
    await asyncio.gather(*(live(prepared, edge, prepared.settings, tmp_path) for edge in EDGES))


async def prepare(flow: Flow, settings: Settings) -> Prepared:
    async with kubespray_rig(settings) as rig:
        instance_id = await rig.rig.create()
        if flow.masters:
            balancer = {"external_lb_param": BALANCER} if flow.balanced else {}
            wanted = instantiate_storage(**balancer) if flow.storage else instantiate(flow.masters, **balancer)
            await rig.completed(INSTANTIATE, instance_id, wanted)
        if flow.before:
            await rig.completed(SCALE, instance_id, flow.before)
        if flow.broken:
            machine = (await rig.machines(instance_id))[flow.broken]
            await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, machine)
        request = await flow.request(rig, instance_id)
        plan = await rig.rig.slipway.lcm.preview_plan(flow.kind, instance_id, request)
    async with kubespray_rig(settings, working=False) as rig:
        accepted = await rig.rig.slipway.lcm.start_operation(flow.kind, instance_id, request)
    steps = tuple(step.id for step in plan.steps)
    return Prepared(settings, instance_id, accepted.id, steps, State.COMPLETED, SimulatedDriver)
