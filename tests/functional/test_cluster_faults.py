"""Clusters with bad luck, on simulated hosts: what is said, what a retry touches, what a rollback leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slipway.cluster.naming import node_name
from slipway.cluster.steps.liveness import LivenessLimits
from slipway.kube import paths
from slipway.kube.interface import Object
from slipway.model.errors import BadRequest, Unprocessable, VimFault
from slipway.model.operation import OperationType, State
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.cluster_rig import ClusterRig, back, began, cluster_rig, ended, instantiate, out
from tests.functional.rig import SIMULATED_VIM, settings_in


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[ClusterRig]:
    """Machines that boot let us in soon, or never."""
    async with cluster_rig(settings_in(tmp_path), liveness=LivenessLimits(boot=2.0, accounts=0.1)) as rig:
        yield rig


def failing(asked: str, machine: str, **more: Any) -> Rule:
    fault = more.pop("fault", VimFault.PERMANENT)
    return Rule(kind=RuleKind.ERROR, call="host", asked=asked, machine=machine, fault=fault, **more)


def labelled(kind: str, name: str, spec: Object) -> Object:
    group = "policy/v1" if kind == "PodDisruptionBudget" else "apps/v1"
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}


def deployment(name: str, replicas: int) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
    return labelled(
        "Deployment", name, {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    )


def budget(name: str, least: int) -> Object:
    return labelled("PodDisruptionBudget", name, {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}})


async def test_a_join_that_fails_names_node_step_and_stderr_and_a_retry_touches_that_node_only(rig: ClusterRig) -> None:
    instance_id = await rig.rig.create()
    await rig.rules(failing("join", "workerNode-1", times=1, message="kubeadm: the kubelet is not healthy"))
    operation, detail = await rig.failed(OperationType.INSTANTIATE, instance_id, instantiate())
    assert "join workerNode-1" in detail
    assert "on workerNode-1" in detail
    assert 'Last on stderr: "kubeadm: the kubelet is not healthy"' in detail
    before = await rig.host_calls()
    await rig.rig.slipway.lcm.retry(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.COMPLETED
    touched = {call.split()[0] for call in await rig.host_calls() - before}
    assert touched == {"workerNode-1"}
    await rig.check(instance_id)


async def test_nodes_that_fail_alike_are_told_together(rig: ClusterRig) -> None:
    await rig.rules(failing("join", "workerNode-*", message="kubeadm: the kubelet is not healthy"))
    _, detail = await rig.failed(OperationType.INSTANTIATE, await rig.rig.create(), instantiate())
    assert detail.count("the kubelet is not healthy") == 1
    assert detail.count("on workerNode-0") + detail.count("on workerNode-1") == 2
    assert "The same on workerNode-1." in detail


async def test_a_temporary_failure_is_tried_again_and_nobody_has_to_decide(rig: ClusterRig) -> None:
    await rig.rules(
        failing("join", "workerNode-0", times=1, fault=VimFault.TEMPORARY),
        Rule(kind=RuleKind.TIMEOUT_AFTER_WORK, call="host", asked="init", times=1),
        Rule(kind=RuleKind.TIMEOUT_AFTER_WORK, call="host", asked="join", machine="workerNode-1", times=1),
        Rule(kind=RuleKind.ERROR, call="api", asked="POST /api/v1/*/secrets", status=500, times=1),
        Rule(kind=RuleKind.ERROR, call="api", asked="GET /api/v1/nodes/*", status=429, times=2),
        Rule(kind=RuleKind.ERROR, call="api", asked="GET /readyz", times=1),
        Rule(kind=RuleKind.TIMEOUT_AFTER_WORK, call="api", asked="PATCH *", times=2),
    )
    await rig.check(await rig.cluster())


async def test_a_rollback_of_a_scale_out_leaves_no_node_and_no_machine(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3)
    before = await rig.machines(instance_id)
    await rig.rules(failing("join", "workerNode-3"))
    operation, _ = await rig.failed(OperationType.SCALE, instance_id, out(2))
    (seen,) = rig.seen()
    assert node_name(instance_id, "workerNode-2") in seen.nodes
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    assert await rig.machines(instance_id) == before
    await rig.check(instance_id)


async def test_a_rollback_of_an_instantiation_leaves_nothing(rig: ClusterRig) -> None:
    instance_id = await rig.rig.create()
    await rig.rules(failing("join", "masterNode-2"))
    operation, _ = await rig.failed(OperationType.INSTANTIATE, instance_id, instantiate(3))
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    await rig.check(instance_id)


async def test_a_drain_that_a_budget_blocks_names_pod_and_budget(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(drain={"timeout": 1})
    await rig.completed(OperationType.SCALE, instance_id, out())
    api = await rig.api(instance_id)
    await api.apply(deployment("web", 3))
    await api.apply(budget("web-stays", 3))
    leaving = node_name(instance_id, "workerNode-2")
    (pod,) = [
        one["metadata"]["name"]
        for one in await api.list(paths.pods("default"), fieldSelector=f"spec.nodeName={leaving}")
    ]
    operation, detail = await rig.failed(OperationType.SCALE, instance_id, back())
    assert "drain workerNode-2" in detail
    assert f"default/{pod} is held: The disruption budget web-stays needs 3 healthy pods and has 3" in detail
    await api.delete(paths.namespaced("/apis/policy/v1", "default", "poddisruptionbudgets", "web-stays"))
    await rig.rig.slipway.lcm.retry(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.COMPLETED
    assert len(await api.list(paths.pods("default"))) == 3
    await rig.check(instance_id)


async def test_a_heal_that_would_lose_the_quorum_is_refused_and_says_which_master_to_heal_first(
    rig: ClusterRig,
) -> None:
    instance_id = await rig.cluster(3)
    machines = await rig.machines(instance_id)
    await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, machines["masterNode-1"])
    heal = await rig.heal(instance_id, "masterNode-2")
    operation, detail = await rig.failed(OperationType.HEAL, instance_id, heal)
    assert "check quorum without masterNode-2" in detail
    assert "etcd would lose its quorum: 1 of 2 members answer" in detail
    assert f"Heal {node_name(instance_id, 'masterNode-1')} first" in detail
    await rig.rig.slipway.lcm.roll_back(operation.id)
    assert (await rig.rig.rest(operation.id)).operation_state is State.ROLLED_BACK
    for slot in ("masterNode-1", "masterNode-2"):
        await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, slot))
    await rig.check(instance_id)


async def test_the_only_master_is_not_healed_as_a_node(rig: ClusterRig) -> None:
    instance_id = await rig.cluster()
    heal = await rig.heal(instance_id, "masterNode-0")
    with pytest.raises(BadRequest, match="the only master holds all of the cluster's state"):
        await rig.rig.slipway.lcm.start_operation(OperationType.HEAL, instance_id, heal)


async def test_two_masters_are_healed_one_after_the_other(rig: ClusterRig) -> None:
    instance_id = await rig.cluster(3)
    heal = await rig.heal(instance_id, "masterNode-0", "masterNode-2")
    operation = await rig.completed(OperationType.HEAL, instance_id, heal)
    await rig.check(instance_id)
    journal = {record.id: record for record in await rig.rig.journal(operation.id)}
    first, second = sorted((journal[f"leave etcd {slot}"] for slot in ("masterNode-0", "masterNode-2")), key=began)
    assert began(second) >= ended(journal[f"ready {first.nodes[0]}"])


async def test_a_dead_worker_is_healed_and_its_pods_are_elsewhere_meanwhile(rig: ClusterRig) -> None:
    instance_id = await rig.cluster()
    api = await rig.api(instance_id)
    await api.apply(deployment("web", 2))
    await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, (await rig.machines(instance_id))["workerNode-1"])
    dead = await api.get(paths.node(node_name(instance_id, "workerNode-1")))
    assert dead["status"]["conditions"][0]["status"] == "Unknown"
    await rig.completed(OperationType.HEAL, instance_id, await rig.heal(instance_id, "workerNode-1"))
    await rig.check(instance_id)
    assert len(await api.list(paths.pods("default"))) == 2


async def test_scaling_in_an_idle_node_removes_its_node_object(rig: ClusterRig) -> None:
    instance_id = await rig.cluster()
    await rig.completed(OperationType.SCALE, instance_id, out())
    api = await rig.api(instance_id)
    name = node_name(instance_id, "workerNode-2")
    assert name in {node["metadata"]["name"] for node in await api.list(paths.NODES)}
    await rig.completed(OperationType.SCALE, instance_id, back())
    assert name not in {node["metadata"]["name"] for node in await api.list(paths.NODES)}
    await rig.check(instance_id)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (VimFault.AUTH, "refused the login (tried: password). Cure: give the user name and the key or password"),
        (VimFault.TEMPORARY, "can't be reached: Connection timed out"),
    ],
)
async def test_a_host_that_lets_nobody_in_is_named(rig: ClusterRig, fault: VimFault, said: str) -> None:
    await rig.rules(failing("*", "workerNode-1", fault=fault))
    operation, detail = await rig.failed(OperationType.INSTANTIATE, await rig.rig.create(), instantiate())
    assert "prepare workerNode-1" in detail
    assert ": root@10." in detail
    assert said in detail
    failed = Counter(record.nodes for record in await rig.rig.journal(operation.id) if record.error)
    assert set(failed) == {("workerNode-1",)}


async def test_a_parameter_of_another_driver_is_refused_before_anything_is_made(rig: ClusterRig) -> None:
    balancer = {"ssh_cp_name": "x", "ssh_username": "x", "ssh_password": "x", "script_path": "Scripts/x.sh"}
    with pytest.raises(
        Unprocessable, match=r"k8s_cluster_installation_param\.external_lb_param: only clusters by .* kubespray"
    ):
        await rig.rig.slipway.lcm.start_operation(
            OperationType.INSTANTIATE, await rig.rig.create(), instantiate(external_lb_param=balancer)
        )
    await rig.cluster(external_lb_param={}, storage_server=None, pv_registration_params=[])
