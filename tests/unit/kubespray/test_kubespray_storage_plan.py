"""Plans of clusters by kubespray with a storage server: who waits for whom, and what Ansible has to do with it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.cluster import plans, storage_plan
from slipway.cluster.parameters import NAME
from slipway.cluster.steps.dependencies import Dependencies
from slipway.kubespray.arguments import PREFIX
from slipway.kubespray.driver import KubesprayDriver
from slipway.lcm.hook_ordering import with_hooks
from slipway.model.descriptor import Aspect, ConnectionPoint, Vdu
from slipway.model.errors import BadRequest
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import AnyRequest, HealRequest, InstantiateRequest, ScaleRequest, ScaleType
from slipway.model.situation import PlanningSituation
from tests.unit.cluster.cluster_situations import UNUSED, earlier, renewed, slots, vim_steps
from tests.unit.cluster.test_storage_plan import BOTH, SERVE, SERVER, given, stored, with_server

DRIVER = KubesprayDriver(Dependencies(UNUSED, UNUSED, UNUSED))
ANSIBLE = {"ip_address": "192.0.2.10", "username": "ansible", "password": "x", "kubespray_root_path": "/opt/kubespray"}
BALANCER = {"ssh_cp_name": "externalLB_CP1", "ssh_username": "root", "ssh_password": "x"}
LB = "externalLB-0"
CLIENTS = {f"NFS client {slot}" for slot in slots(1, 2)}


def parameters(**more: Any) -> dict[str, Any]:
    return {NAME: {**given()[NAME], "ansible": ANSIBLE, **more}}


def situation(kind: OperationType, request: AnyRequest, *machines: dict[str, str], **more: Any) -> PlanningSituation:
    now = stored(kind, request, *machines)
    points = {
        **now.flavour.connection_points,
        "externalLB_CP1": ConnectionPoint(name="externalLB_CP1", vdu="externalLB"),
    }
    vdus = {**now.flavour.vdus, "externalLB": Vdu(name="externalLB", initial=1)}
    shape = replace(now.flavour, vdus=vdus, connection_points=points)
    return dataclasses.replace(now, flavour=shape, instance=replace(now.instance, parameters=parameters(**more)))


def planned(name: str, now: PlanningSituation) -> Plan:
    DRIVER.check(now)
    return with_hooks(DRIVER.plan(name, BOTH, now), vim_steps(now)).checked()


def heal(*healed: str, workers: int = 2, **more: Any) -> Plan:
    before = {**with_server(workers), **({LB: f"old-{LB}"} if more else {})}
    request = HealRequest(vnfc_instance_id=tuple(f"vnfc-{slot}" for slot in healed))
    after = renewed(before, *(healed or before))
    return planned("heal", situation(OperationType.HEAL, request, before, after, **more))


def ansible_steps(plan: Plan) -> list[str]:
    return [step.id for step in plan.steps if step.action.startswith(PREFIX)]


def test_cluster_then_volume_exports_and_clients_then_volumes_then_the_vim() -> None:
    request = InstantiateRequest(flavour_id="simple", additional_params=parameters())
    plan = planned("instantiate", situation(OperationType.INSTANTIATE, request, {}, with_server()))
    assert f"mount volumes {SERVER}" in earlier(plan, SERVE)
    assert "cluster.yml" in earlier(plan, "NFS client workerNode-1")
    assert {SERVE, plans.SMOKE} | CLIENTS <= earlier(plan, storage_plan.REGISTER)
    assert storage_plan.REGISTER in earlier(plan, plans.REGISTER)


def test_ansible_knows_nothing_of_the_storage_server() -> None:
    request = InstantiateRequest(flavour_id="simple", additional_params=parameters())
    plan = planned("instantiate", situation(OperationType.INSTANTIATE, request, {}, with_server()))
    told = [step for step in plan.steps if step.action.startswith(PREFIX)]
    assert len(told) == 3
    assert not [step.id for step in told if SERVER in step.nodes or SERVER in str(step.args)]


def test_a_heal_of_the_server_alone_runs_nothing_by_ansible() -> None:
    plan = heal(SERVER)
    assert ansible_steps(plan) == []
    assert earlier(plan, f"remove machine {SERVER}") == {storage_plan.CHECK, storage_plan.DELETE}
    assert SERVE in earlier(plan, storage_plan.REGISTER)


def test_a_heal_of_a_worker_too_begins_when_nobody_uses_the_volumes() -> None:
    plan = heal("workerNode-1", SERVER)
    for name in ("prepare the Ansible server", "drain workerNode-1", "remove-node.yml for workerNode-1"):
        assert storage_plan.CHECK in earlier(plan, name)
    assert {"NFS client workerNode-1", SERVE} <= earlier(plan, storage_plan.REGISTER)


def test_the_next_batch_leaves_when_the_one_before_can_mount_volumes() -> None:
    """So no playbook runs while packages are installed on a node."""
    plan = heal("workerNode-1", "workerNode-2", workers=3)
    assert "NFS client workerNode-1" in earlier(plan, "drain workerNode-2")


def test_with_a_new_balancer_no_playbook_runs_while_nodes_get_their_client() -> None:
    plan = heal("workerNode-1", LB, SERVER, external_lb_param=BALANCER)
    assert "NFS client workerNode-1" in earlier(plan, "cluster.yml for the balancer's address")
    assert storage_plan.REGISTER in earlier(plan, plans.REGISTER)


def test_a_whole_heal_asks_nothing_of_the_old_cluster() -> None:
    ids = {step.id for step in heal().steps}
    assert not {storage_plan.CHECK, storage_plan.DELETE} & ids
    assert {SERVE, "cluster.yml", storage_plan.REGISTER} | CLIENTS <= ids


def test_a_scale_out_leaves_the_storage_server_alone() -> None:
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="worker_instance")
    plan = planned("scale", situation(OperationType.SCALE, request, with_server(), with_server(3)))
    assert "ready workerNode-2" in earlier(plan, "NFS client workerNode-2")
    assert not [step.id for step in plan.steps if SERVER in step.nodes]


def test_the_storage_server_is_not_scaled() -> None:
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="servers")
    now = situation(OperationType.SCALE, request, with_server(), with_server())
    aspect = Aspect(name="servers", max_level=1, deltas={"storage_server": (1,)})
    scalable = replace(now.flavour, aspects={**now.flavour.aspects, "servers": aspect})
    with pytest.raises(BadRequest, match="aspectId: 'servers' scales the storage server"):
        DRIVER.check(dataclasses.replace(now, flavour=scalable))
