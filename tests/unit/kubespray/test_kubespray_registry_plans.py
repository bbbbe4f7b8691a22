"""Where the registries of nodes come in the plans of a cluster by kubespray."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.cluster.steps.dependencies import Dependencies
from slipway.kubespray.driver import KubesprayDriver
from slipway.lcm.hook_ordering import with_hooks
from slipway.model.hooks import EDGES
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import HealRequest, InstantiateRequest
from slipway.model.situation import PlanningSituation
from tests.unit.cluster.cluster_situations import UNUSED, Slots, earlier, parameters, renewed, situation, slots
from tests.unit.cluster.cluster_situations import vim_steps as steps_of_the_vim

KEY = "k8s_cluster_installation_param"
DRIVER = KubesprayDriver(Dependencies(UNUSED, UNUSED, UNUSED))
REGISTRY = {"connection_type": 0, "server": "10.0.0.9:5000"}
CONNECT = "kubernetes.connectregistries"


def asked(masters: int, *registries: dict[str, Any], **more: Any) -> dict[str, Any]:
    found = parameters(masters)[KEY]
    found["master_node"].pop("cluster_ip", None)
    server = {"ip_address": "192.0.2.10", "username": "a", "password": "b", "kubespray_root_path": "/opt/kubespray"}
    return {KEY: {**found, "ansible": server, "private_registry_connection_info": list(registries), **more}}


def planned(name: str, now: PlanningSituation) -> Plan:
    return with_hooks(DRIVER.plan(name, frozenset(EDGES), now), steps_of_the_vim(now)).checked()


def instantiate(masters: int, *registries: dict[str, Any]) -> Plan:
    request = InstantiateRequest(flavour_id="simple", additional_params=asked(masters, *registries))
    return planned("instantiate", situation(OperationType.INSTANTIATE, request, {}, slots(masters, 2), masters))


def standing(now: PlanningSituation, masters: int) -> PlanningSituation:
    """On an instance that was made with a registry."""
    return dataclasses.replace(now, instance=replace(now.instance, parameters=asked(masters, REGISTRY)))


def heal(before: Slots, *names: str, broken: tuple[str, ...] = ()) -> Plan:
    request = HealRequest(vnfc_instance_id=tuple(f"vnfc-{name}" for name in names))
    now = standing(situation(OperationType.HEAL, request, before, renewed(before, *names), 3), 3)
    return planned("heal", dataclasses.replace(now, found=replace(now.found, broken=broken)))


def connections(plan: Plan) -> set[str]:
    return {step.id.removeprefix("connect registries ") for step in plan.steps if step.action == CONNECT}


@pytest.mark.parametrize("masters", [1, 3])
def test_every_new_node_is_connected_once_it_is_ready(masters: int) -> None:
    plan = instantiate(masters, REGISTRY)
    assert connections(plan) == slots(masters, 2).keys()
    assert "ready workerNode-1" in earlier(plan, "connect registries workerNode-1")
    assert "ready workerNode-0" not in earlier(plan, "connect registries workerNode-1"), "nodes wait for each other"
    assert {f"connect registries {slot}" for slot in slots(masters, 2)} <= earlier(plan, "run a pod")


def test_without_registries_there_is_no_such_step() -> None:
    assert not connections(instantiate(1))


def test_workers_that_join_are_connected_and_no_others() -> None:
    assert connections(heal(slots(3, 2), "workerNode-1")) == {"workerNode-1"}


def test_a_master_that_is_healed_has_all_nodes_connected_again() -> None:
    again = {f"{slot} after cluster.yml for masterNode-1" for slot in slots(3, 2) if slot != "masterNode-1"}
    assert connections(heal(slots(3, 2), "masterNode-1")) == {"masterNode-1", *again}


def test_no_run_begins_while_nodes_of_the_run_before_are_being_connected() -> None:
    plan = heal(slots(3, 2), "masterNode-1", "masterNode-2", "workerNode-0")
    first, second = "cluster.yml for masterNode-1", "cluster.yml for masterNode-2"
    runs = earlier(plan, second)
    assert {f"connect registries {slot} after {first}" for slot in ("masterNode-0", "workerNode-1")} <= runs
    assert "connect registries masterNode-1" in runs
    assert f"connect registries masterNode-1 after {second}" in earlier(plan, "scale.yml for workerNode-0")
    assert f"workerNode-0 after {first}" not in connections(plan), "it is made anew itself"


def test_a_node_without_power_is_left_out_as_the_playbooks_leave_it_out() -> None:
    plan = heal(slots(3, 2), "masterNode-1", broken=("old-workerNode-0",))
    assert "workerNode-0 after cluster.yml for masterNode-1" not in connections(plan)
    assert "workerNode-1 after cluster.yml for masterNode-1" in connections(plan)
