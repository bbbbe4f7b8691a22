"""Where the registries of nodes come in the plans of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.lcm.hook_ordering import with_hooks
from slipway.model.hooks import EDGES
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import HealRequest, InstantiateRequest
from slipway.model.situation import PlanningSituation
from tests.unit.cluster.cluster_situations import DRIVER, earlier, parameters, renewed, situation, slots, vim_steps

KEY = "k8s_cluster_installation_param"
REGISTRY = {"connection_type": 0, "server": "10.0.0.9:5000"}


def whole_plan(name: str, now: PlanningSituation) -> Plan:
    return with_hooks(DRIVER.plan(name, frozenset(EDGES), now), vim_steps(now)).checked()


def instantiate(masters: int, **more: Any) -> Plan:
    asked = {KEY: {**parameters(masters)[KEY], "private_registry_connection_info": [REGISTRY], **more}}
    request = InstantiateRequest(flavour_id="simple", additional_params=asked)
    return whole_plan("instantiate", situation(OperationType.INSTANTIATE, request, {}, slots(masters, 2), masters))


def connections(plan: Plan) -> set[str]:
    return {step.nodes[0] for step in plan.steps if step.action == "kubernetes.connectregistries"}


@pytest.mark.parametrize("masters", [1, 3])
def test_a_node_knows_its_registries_before_it_joins(masters: int) -> None:
    plan = instantiate(masters)
    assert connections(plan) == slots(masters, 2).keys()
    assert {"prepare masterNode-0", "connect registries masterNode-0"} <= earlier(plan, "init masterNode-0")
    assert {"prepare workerNode-1", "connect registries workerNode-1"} <= earlier(plan, "join workerNode-1")
    assert "connect registries workerNode-0" not in earlier(plan, "join workerNode-1"), "nodes wait for each other"


def test_where_a_script_makes_the_node_they_come_after_it() -> None:
    plan = instantiate(1, script_path="Scripts/node.sh")
    assert connections(plan) == slots(1, 2).keys()
    assert "join workerNode-0" in earlier(plan, "connect registries workerNode-0")
    assert "connect registries workerNode-0" in earlier(plan, "ready workerNode-0")


def test_a_heal_connects_those_that_are_made_anew() -> None:
    before = slots(3, 2)
    asked = {KEY: {"private_registry_connection_info": [REGISTRY]}}
    request = HealRequest(vnfc_instance_id=("vnfc-workerNode-1",), additional_params=asked)
    now = situation(OperationType.HEAL, request, before, renewed(before, "workerNode-1"), 3)
    assert connections(whole_plan("heal", now)) == {"workerNode-1"}


def test_without_registries_there_is_no_such_step() -> None:
    assert not connections(instantiate(1, private_registry_connection_info=[]))
