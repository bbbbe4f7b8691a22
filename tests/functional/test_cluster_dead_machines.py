"""Machines that lose their power while something waits for them: told quickly, by name, with what to do."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slipway.cluster.steps.liveness import LivenessLimits
from slipway.model.errors import VimFault
from slipway.model.operation import OperationType, State
from slipway.model.requests import AnyRequest, ChangePackageRequest, HealRequest
from slipway.simulator.vim import records
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.cluster_rig import CLUSTER, ClusterRig, cluster_rig, instantiate, out
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import SIMULATED_VIM, settings_in

QUICK = LivenessLimits(between=0.05, answer=2.0, confirm=0.05, unreachable=0.3, health=3.0, inside=0.5)
CHANGE = ChangePackageRequest(vnfd_id=NEXT_ID)


class Fate:
    """Takes a machine's power at the edge of a step."""

    def __init__(self) -> None:
        self.rig: ClusterRig | None = None
        self.edge: tuple[str, str] | None = None
        self.slot = ""

    def strikes(self, slot: str, edge: str, step: str) -> None:
        self.slot, self.edge = slot, (edge, step)

    def __call__(self, edge: str, step_id: str) -> None:
        if (edge, step_id) == self.edge and self.rig:
            self.edge = None
            cut_power(self.rig, self.slot)


def cut_power(rig: ClusterRig, slot: str) -> None:
    def work(db: sqlite3.Connection, _: object) -> None:
        for (machine_id,) in db.execute("SELECT id FROM machine WHERE name = ?", (slot,)).fetchall():
            records.break_machine(db, machine_id)

    rig.connector.simulation.look(SIMULATED_VIM, work)


@pytest.fixture
def fate() -> Fate:
    return Fate()


@pytest.fixture
async def rig(tmp_path: Path, fate: Fate) -> AsyncIterator[ClusterRig]:
    async with cluster_rig(settings_in(tmp_path / "data"), fault_injector=fate, liveness=QUICK) as rig:
        fate.rig = rig
        yield rig


async def failed_soon(
    rig: ClusterRig, kind: OperationType, instance_id: str, request: AnyRequest
) -> tuple[str, str, dict[str, int]]:
    """The operation, its error, and how often each step that failed was tried."""
    async with asyncio.timeout(20):
        operation, detail = await rig.failed(kind, instance_id, request)
    tried = {record.id: record.attempt for record in await rig.rig.journal(operation.id) if record.error}
    return operation.id, detail, tried


@pytest.mark.parametrize("step", ["prepare workerNode-1", "join workerNode-1", "ready workerNode-1"])
async def test_a_machine_that_dies_before_its_step_is_not_waited_for(rig: ClusterRig, fate: Fate, step: str) -> None:
    fate.strikes("workerNode-1", "before", step)
    instance_id = await rig.rig.create()
    operation_id, detail, tried = await failed_soon(rig, OperationType.INSTANTIATE, instance_id, instantiate())
    assert tried == {step: 1}
    assert "workerNode-1 has no power, says the VIM, and neither SSH nor a kubelet answers" in detail
    assert f"slipway vnf heal {instance_id} --vnfc workerNode-1" in detail
    await rig.rig.slipway.lcm.roll_back(operation_id)
    assert (await rig.rig.rest(operation_id)).operation_state is State.ROLLED_BACK
    await rig.check(instance_id)


@pytest.mark.parametrize("step", ["init masterNode-0", "set up the pods' network", "register the cluster as a VIM"])
async def test_the_only_master_is_not_waited_for_either(rig: ClusterRig, fate: Fate, step: str) -> None:
    fate.strikes("masterNode-0", "before", step)
    _, detail, tried = await failed_soon(rig, OperationType.INSTANTIATE, await rig.rig.create(), instantiate())
    assert tried[step] == 1
    assert "masterNode-0 has no power" in detail
    assert "Timed out after" not in detail


@pytest.mark.parametrize("step", ["examine", "upgrade", "restart", "uncordon"])
async def test_a_machine_that_dies_in_a_change_of_version_is_named(
    rig: ClusterRig, fate: Fate, step: str, tmp_path: Path
) -> None:
    await onboard_next(rig.rig, CLUSTER, tmp_path, NEXT_ID, image="1.34.4")
    instance_id = await rig.cluster(kubernetes_version="1.33.13")
    fate.strikes("workerNode-0", "before", f"{step} workerNode-0")
    _, detail, tried = await failed_soon(rig, OperationType.CHANGE_VNFPKG, instance_id, CHANGE)
    assert tried == {f"{step} workerNode-0": 1}
    assert "workerNode-0 has no power" in detail


async def test_a_machine_that_is_silent_though_its_vim_says_that_it_runs_is_given_up_too(rig: ClusterRig) -> None:
    instance_id = await rig.cluster()
    await rig.rules(
        # It answered once, when it had booted.
        Rule(kind=RuleKind.ERROR, call="host", machine="workerNode-2", asked="true", nth=2),
        Rule(kind=RuleKind.ERROR, call="api", asked="GET /api/v1/nodes/*/proxy/healthz"),
        Rule(kind=RuleKind.ERROR, call="api", asked="GET /api/v1/nodes/workernode-2-*", status=503),
    )
    _, detail, tried = await failed_soon(rig, OperationType.SCALE, instance_id, out())
    assert tried == {"ready workerNode-2": 1}
    assert "workerNode-2 does not answer, neither SSH nor the kubelet" in detail
    assert "--vnfc workerNode-2" in detail


async def test_a_pod_that_waits_for_a_dead_node_ends_the_wait(rig: ClusterRig, fate: Fate) -> None:
    await rig.rules(Rule(kind=RuleKind.ERROR, call="api", asked="GET */deployments/coredns", status=503))
    fate.strikes("workerNode-1", "before", "run a pod")
    _, detail, tried = await failed_soon(rig, OperationType.INSTANTIATE, await rig.rig.create(), instantiate())
    assert tried == {"run a pod": 1}
    assert "workerNode-1 has no power" in detail


async def test_a_node_that_only_takes_long_is_waited_for(rig: ClusterRig) -> None:
    instance_id = await rig.cluster()
    await rig.rules(
        Rule(kind=RuleKind.ERROR, call="api", asked="GET /api/v1/nodes/workernode-2-*", status=503, times=8)
    )
    await rig.completed(OperationType.SCALE, instance_id, out())
    await rig.check(instance_id)


async def test_a_machine_whose_vim_is_wrong_about_it_lives(rig: ClusterRig) -> None:
    """It says ERROR for some looks, and the machine answers all the while."""
    instance_id = await rig.cluster()
    await rig.rules(
        Rule(kind=RuleKind.ERROR_THEN_ACTIVE, call="make_machine", machine="workerNode-2", looks=3),
        Rule(kind=RuleKind.ERROR, call="api", asked="GET /api/v1/nodes/workernode-2-*", status=503, times=5),
    )
    await rig.completed(OperationType.SCALE, instance_id, out())


async def test_a_rollback_does_not_wait_for_a_dead_node(rig: ClusterRig, fate: Fate) -> None:
    instance_id = await rig.cluster()
    fate.strikes("workerNode-2", "before", "ready workerNode-2")
    operation_id, _, _ = await failed_soon(rig, OperationType.SCALE, instance_id, out())
    await rig.rig.slipway.lcm.roll_back(operation_id)
    assert (await rig.rig.rest(operation_id)).operation_state is State.ROLLED_BACK
    await rig.check(instance_id)


async def test_a_heal_without_a_quorum_is_refused_before_anything_is_done(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3)
    heal = await rig.heal(instance_id, "masterNode-1")
    for slot in ("masterNode-1", "masterNode-2"):
        cut_power(rig, slot)
    operation = await rig.rig.run(OperationType.HEAL, instance_id, heal)
    assert operation.operation_state is State.ROLLED_BACK
    assert operation.error is not None
    detail = operation.error.detail
    assert "etcd has lost its quorum: of 3 masters 2 are needed, and only masterNode-0 runs" in detail
    assert "masterNode-1 and masterNode-2 have no power" in detail
    assert "heal the whole VNF" in detail
    assert await rig.rig.journal(operation.id) == []


async def test_the_whole_vnf_is_healed_without_a_quorum(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3)
    for slot in ("masterNode-1", "masterNode-2"):
        cut_power(rig, slot)
    await rig.completed(OperationType.HEAL, instance_id, HealRequest())
    await rig.check(instance_id)


async def test_a_quorum_that_is_lost_on_the_way_is_told_as_such(rig: ClusterRig, fate: Fate) -> None:
    instance_id = await rig.cluster(3)
    cut_power(rig, "masterNode-2")
    fate.strikes("masterNode-1", "before", "join workerNode-2")
    _, detail, tried = await failed_soon(rig, OperationType.SCALE, instance_id, out())
    assert tried == {"join workerNode-2": 1}
    assert "etcd has lost its quorum: of 3 masters 2 are needed, and only masterNode-0 can be reached" in detail
    assert "masterNode-1 and masterNode-2 have no power" in detail
    assert "start one of the dead masters and retry" in detail


async def test_masters_that_are_silent_are_told_each_with_its_reason(rig: ClusterRig) -> None:
    """Their machines answer, their etcd does not."""
    instance_id = await rig.cluster(3)
    await rig.rules(
        Rule(kind=RuleKind.ERROR, call="host", asked="etcd", fault=VimFault.PERMANENT, message="connection refused")
    )
    heal = await rig.heal(instance_id, "masterNode-1")
    _, detail, tried = await failed_soon(rig, OperationType.HEAL, instance_id, heal)
    assert tried == {"check quorum without masterNode-1": 1}
    assert "No master answers for etcd" in detail
    assert detail.count("connection refused") == 1
    assert "masterNode-0, masterNode-2" in detail


def hanging(*slots: str) -> list[Rule]:
    """Their machines take every question and answer none."""
    return [
        Rule(kind=RuleKind.LATENCY, seconds=3600, call=call, machine=slot) for slot in slots for call in ("host", "api")
    ] + [
        Rule(kind=RuleKind.LATENCY, seconds=3600, call="api", asked=f"GET */{slot.lower()}-*/proxy/healthz")
        for slot in slots
    ]


async def test_a_cluster_with_a_dead_master_is_described_at_once(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3)
    await rig.rules(*hanging("masterNode-0"))
    async with asyncio.timeout(5):
        health = await rig.rig.slipway.clusters.health(instance_id)
    assert health.problems == ("masterNode-0 does not answer.",)
    assert {node.name: node.answers for node in health.nodes} == {
        "masterNode-0": False, "masterNode-1": True, "masterNode-2": True, "workerNode-0": True, "workerNode-1": True,
    }  # fmt: skip
    assert health.version == "v1.34.4"
    assert health.virtual_address_answers
    assert all(node.certificates_end for node in health.nodes if node.name in ("masterNode-1", "masterNode-2"))


async def test_a_cluster_of_dead_masters_is_described_at_once_too(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3)
    for slot in ("masterNode-1", "masterNode-2"):
        cut_power(rig, slot)
    await rig.rules(*hanging("masterNode-0"))
    async with asyncio.timeout(5):
        health = await rig.rig.slipway.clusters.health(instance_id)
    assert health.problems[0] == "etcd has lost its quorum: of 3 masters 2 are needed, and none answers."
    assert {"masterNode-1 has no power.", "masterNode-2 has no power."} <= set(health.problems)
    assert "masterNode-0 does not answer." in health.problems
    assert health.version is None
    assert len(health.nodes) == 5


def test_the_time_that_a_person_waits_is_bounded() -> None:
    assert LivenessLimits().health < 5
    assert LivenessLimits().inside < LivenessLimits().health / 2
