"""Plans with a package's own script, and with Helm."""

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
SCRIPT = {"script_path": "Scripts/node.sh"}
HELM = {"helm": {"path": "Files/helm.tgz", "sha256": "a" * 64}}
REGISTRY = {"connection_type": 0, "server": "10.0.0.9:5000"}


def whole_plan(name: str, now: PlanningSituation) -> Plan:
    return with_hooks(DRIVER.plan(name, frozenset(EDGES), now), vim_steps(now)).checked()


def instantiate(masters: int, **more: Any) -> Plan:
    asked = {KEY: {**parameters(masters)[KEY], **more}}
    request = InstantiateRequest(flavour_id="simple", additional_params=asked)
    return whole_plan("instantiate", situation(OperationType.INSTANTIATE, request, {}, slots(masters, 2), masters))


def heal(*healed: str, masters: int, **more: Any) -> Plan:
    before = slots(masters, 2)
    request = HealRequest(vnfc_instance_id=tuple(f"vnfc-{slot}" for slot in healed), additional_params={KEY: more})
    return whole_plan("heal", situation(OperationType.HEAL, request, before, renewed(before, *healed), masters))


def actions(plan: Plan) -> dict[str, str]:
    return {step.id: step.action for step in plan.steps}


@pytest.mark.parametrize("masters", [1, 3])
def test_a_script_is_run_where_we_would_begin_and_join(masters: int) -> None:
    plan = instantiate(masters, private_registry_connection_info=[REGISTRY], **SCRIPT)
    told = actions(plan)
    assert told["init masterNode-0"] == told["join workerNode-1"] == "kubernetes.script"
    assert told["prepare masterNode-0"] == "kubernetes.name"
    assert not {"kubernetes.balance", "kubernetes.network", "kubernetes.prepare"} & set(told.values())
    assert {"make machine workerNode-1", "init masterNode-0"} <= earlier(plan, "ready workerNode-1")
    assert "init masterNode-0" in earlier(plan, "ready masterNode-0")
    script = next(step for step in plan.steps if step.id == "join workerNode-0")
    assert script.args["setup"] == {"private_registry_connection_info": [REGISTRY]}
    assert (script.args["path"], script.args["first"], script.args["kept"]) == (
        "Scripts/node.sh",
        False,
        False,
    )


def test_masters_that_are_healed_by_a_script_still_go_and_come_one_by_one() -> None:
    plan = heal("masterNode-1", "masterNode-2", masters=3, **SCRIPT)
    assert "ready masterNode-1" in earlier(plan, "leave etcd masterNode-2")
    assert "prepare masterNode-1" in earlier(plan, "join masterNode-1")
    assert not any(step.id.startswith("balance") for step in plan.steps)


def test_helm_is_put_on_masters_that_came_and_on_no_other_node() -> None:
    new = [step for step in instantiate(3, **HELM).steps if step.action == "kubernetes.helm"]
    assert [step.id for step in new] == [f"helm masterNode-{number}" for number in range(3)]
    assert new[0].after == ("ready masterNode-0",)
    healed = [step.id for step in heal("masterNode-1", "workerNode-0", masters=3, **HELM).steps if "helm" in step.id]
    assert healed == ["helm masterNode-1"]
    assert not [step for step in instantiate(1, helm={"install": False}).steps if "helm" in step.id]


def test_a_machine_whose_programs_come_from_elsewhere_has_more_time() -> None:
    source = {"kind": "packages", "repository": "https://packages.example.com", "allow_unsigned": True}
    plan = instantiate(1, source=source, kubernetes_version="1.34.4")
    assert {step.timeout for step in plan.steps if step.action == "kubernetes.prepare"} == {3600.0}
    assert {step.timeout for step in instantiate(1).steps if step.action == "kubernetes.prepare"} == {None}
