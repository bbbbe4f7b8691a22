"""A cluster's plans: who waits for whom, and what is refused before anything happens."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from slipway.cluster import plans
from slipway.lcm.hook_ordering import with_hooks
from slipway.mgmt.drivers import ManagementDrivers
from slipway.model.descriptor import Flavour, Hook
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.hooks import Edges
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import (
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.model.situation import PlanningSituation
from tests.unit.cluster.cluster_situations import (
    DRIVER,
    Slots,
    earlier,
    parameters,
    renewed,
    situation,
    slots,
    vim_steps,
)

BOTH: Edges = frozenset({"start", "end"})


def whole_plan(name: str, now: PlanningSituation) -> Plan:
    return with_hooks(DRIVER.plan(name, BOTH, now), vim_steps(now)).checked()


def instantiate(masters: int, workers: int = 2) -> Plan:
    request = InstantiateRequest(flavour_id="simple", additional_params=parameters(masters))
    now = situation(OperationType.INSTANTIATE, request, {}, slots(masters, workers), masters)
    DRIVER.check(now)
    return whole_plan("instantiate", now)


def heal(before: Slots, *healed: str, masters: int, broken: tuple[str, ...] = ()) -> Plan:
    request = HealRequest(vnfc_instance_id=tuple(f"vnfc-{slot}" for slot in healed))
    now = situation(OperationType.HEAL, request, before, renewed(before, *(healed or before)), masters)
    now = dataclasses.replace(now, found=replace(now.found, broken=tuple(before[slot] for slot in broken)))
    DRIVER.check(now)
    return whole_plan("heal", now)


def test_a_node_is_prepared_as_soon_as_its_own_machine_stands() -> None:
    plan = instantiate(masters=1)
    assert earlier(plan, "prepare workerNode-1") == {"make machine workerNode-1"}
    assert earlier(plan, "join workerNode-1") == {
        "make machine workerNode-1", "prepare workerNode-1", "make machine masterNode-0", "prepare masterNode-0",
        "init masterNode-0",
    }  # fmt: skip


def test_the_cluster_is_a_vim_only_after_every_node_is_ready_and_a_pod_has_run() -> None:
    plan = instantiate(masters=3)
    ready = {f"ready {slot}" for slot in slots(3, 2)}
    assert ready <= earlier(plan, plans.SMOKE)
    assert plans.SMOKE in earlier(plan, plans.REGISTER)


def test_masters_join_one_after_another_and_behind_their_balancers() -> None:
    plan = instantiate(masters=3)
    assert {"balance masterNode-0", "balance masterNode-1", "balance masterNode-2"} <= earlier(
        plan, "init masterNode-0"
    )
    assert "join masterNode-1" in earlier(plan, "join masterNode-2")
    assert "join masterNode-1" not in earlier(plan, "join workerNode-0")
    assert not [step for step in instantiate(masters=1).steps if step.id.startswith("balance")]


def test_a_scale_out_concerns_the_new_nodes_only() -> None:
    before, after = slots(3, 2), slots(3, 4)
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="worker_instance", number_of_steps=2)
    plan = whole_plan("scale", situation(OperationType.SCALE, request, before, after, 3))
    assert {step.nodes for step in plan.steps} == {("workerNode-2",), ("workerNode-3",)}
    assert earlier(plan, "ready workerNode-3") == {
        "make machine workerNode-3", "prepare workerNode-3", "join workerNode-3",
    }  # fmt: skip


def test_a_scale_in_moves_the_pods_first_and_forgets_the_node_last() -> None:
    before, after = slots(1, 3), slots(1, 2)
    request = ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="worker_instance")
    plan = whole_plan("scale", situation(OperationType.SCALE, request, before, after, 1))
    assert [step.id for step in plan.steps] == [
        "drain workerNode-2", "remove machine workerNode-2", "delete node workerNode-2",
    ]  # fmt: skip
    assert earlier(plan, "delete node workerNode-2") == {"drain workerNode-2", "remove machine workerNode-2"}


@pytest.mark.parametrize("operation", [OperationType.SCALE, OperationType.HEAL])
def test_with_a_hook_at_the_start_only_the_node_is_forgotten_once_its_machine_is_gone(operation: OperationType) -> None:
    before = slots(1, 3)
    after = slots(1, 2) if operation is OperationType.SCALE else renewed(before, "workerNode-2")
    request: ScaleRequest | HealRequest = HealRequest(vnfc_instance_id=("vnfc-workerNode-2",))
    if operation is OperationType.SCALE:
        request = ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="worker_instance")
    now = situation(operation, request, before, after, 1)
    only_start = DRIVER.plan(operation.value.lower(), frozenset({"start"}), now)
    plan = with_hooks(only_start, vim_steps(now)).checked()
    assert {"drain workerNode-2", "remove machine workerNode-2"} <= earlier(plan, "delete node workerNode-2")
    assert "join workerNode-2" not in {step.id for step in plan.steps}


def test_with_a_hook_at_the_end_only_masters_are_still_healed_one_by_one() -> None:
    before = slots(5, 1)
    healed = ("masterNode-0", "masterNode-1")
    request = HealRequest(vnfc_instance_id=tuple(f"vnfc-{slot}" for slot in healed))
    now = situation(OperationType.HEAL, request, before, renewed(before, *healed), 5)
    plan = with_hooks(DRIVER.plan("heal", frozenset({"end"}), now), vim_steps(now)).checked()
    assert "ready masterNode-0" in earlier(plan, "remove machine masterNode-1")
    assert {"remove machine masterNode-0", "leave etcd masterNode-0"} <= earlier(plan, "join masterNode-0")


def test_with_a_hook_at_the_end_only_masters_leave_etcd_when_their_machines_are_gone() -> None:
    request = ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="master_instance", number_of_steps=2)
    now = situation(OperationType.SCALE, request, slots(5, 1), slots(3, 1), 5)
    plan = with_hooks(DRIVER.plan("scale", frozenset({"end"}), now), vim_steps(now)).checked()
    assert "remove machine masterNode-3" in earlier(plan, "leave etcd masterNode-3")
    assert {"remove machine masterNode-4", "leave etcd masterNode-3"} <= earlier(plan, "leave etcd masterNode-4")


def test_masters_that_are_scaled_in_leave_etcd_one_after_another() -> None:
    before, after = slots(5, 1), slots(3, 1)
    request = ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="master_instance", number_of_steps=2)
    plan = whole_plan("scale", situation(OperationType.SCALE, request, before, after, 5))
    assert "leave etcd masterNode-3" in earlier(plan, "check quorum without masterNode-4")
    assert "leave etcd masterNode-4" in earlier(plan, "remove machine masterNode-4")
    assert "delete node masterNode-4" in earlier(plan, "balance masterNode-0")


def test_a_healed_worker_is_drained_replaced_forgotten_and_joins_again() -> None:
    plan = heal(slots(1, 2), "workerNode-0", masters=1)
    assert earlier(plan, "ready workerNode-0") == {
        "drain workerNode-0", "remove machine workerNode-0", "make machine workerNode-0", "delete node workerNode-0",
        "prepare workerNode-0", "join workerNode-0",
    }  # fmt: skip


def test_workers_are_healed_a_third_at_a_time() -> None:
    before = slots(1, 6)
    plan = heal(before, *(slot for slot in before if "worker" in slot), masters=1)
    assert not earlier(plan, "drain workerNode-1")
    assert {"ready workerNode-0", "ready workerNode-1"} <= earlier(plan, "drain workerNode-2")
    assert {"ready workerNode-2", "ready workerNode-3"} <= earlier(plan, "drain workerNode-5")


def test_a_master_leaves_only_when_the_one_before_is_back() -> None:
    plan = heal(slots(5, 1), "masterNode-1", "masterNode-0", "masterNode-4", masters=5)
    assert "ready masterNode-0" in earlier(plan, "check quorum without masterNode-1")
    assert "ready masterNode-1" in earlier(plan, "drain masterNode-4")
    assert "check quorum without masterNode-0" in earlier(plan, "drain masterNode-0")
    assert {f"balance masterNode-{n} for masterNode-0" for n in (2, 3)} <= earlier(plan, "join masterNode-0")
    last = {f"balance masterNode-{n} for masterNode-4" for n in (0, 1, 2, 3)}
    assert last <= earlier(plan, "join masterNode-4")


def test_a_machine_that_is_yet_to_be_healed_is_left_alone_until_then() -> None:
    plan = heal(slots(5, 1), "masterNode-0", "masterNode-1", masters=5)
    assert "balance masterNode-1 for masterNode-0" not in {one.id for one in plan.steps}


def test_dead_masters_are_healed_first() -> None:
    before = slots(3, 1)
    plan = heal(before, "masterNode-0", "masterNode-2", masters=3, broken=("masterNode-2",))
    assert "ready masterNode-2" in earlier(plan, "check quorum without masterNode-0")


def test_steps_work_through_masters_that_stay() -> None:
    plan = heal(slots(3, 1), "masterNode-0", masters=3)
    for step in plan.steps:
        if step.action in ("kubernetes.leave", "kubernetes.join", "kubernetes.forget", "kubernetes.drain"):
            assert [node["slot"] for node in step.args["site"]["masters"]] == ["masterNode-1", "masterNode-2"]


def test_a_whole_heal_builds_the_cluster_anew() -> None:
    plan = heal(slots(1, 2), masters=1)
    names = {step.id for step in plan.steps}
    assert {"init masterNode-0", plans.REGISTER} <= names
    assert not [name for name in names if name.startswith(("drain", "leave", "forget"))]
    assert "remove machine masterNode-0" in earlier(plan, "init masterNode-0")


@pytest.mark.parametrize(
    ("masters", "healed", "told"),
    [
        (1, ["masterNode-0"], "it can't be healed as a node"),
        (1, ["masterNode-0", "workerNode-0"], "it can't be healed as a node"),
        (3, ["masterNode-0", "masterNode-1", "masterNode-2"], "heal fewer masters at once"),
    ],
)
def test_a_heal_that_would_lose_the_cluster_is_refused(masters: int, healed: list[str], told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        heal(slots(masters, 2), *healed, masters=masters)


def test_all_nodes_named_one_by_one_are_a_whole_heal() -> None:
    before = slots(1, 1)
    assert "init masterNode-0" in {step.id for step in heal(before, *before, masters=1).steps}


@pytest.mark.parametrize(
    ("masters", "way", "steps", "told"),
    [
        (1, ScaleType.SCALE_OUT, 1, "2 masters"),
        (1, ScaleType.SCALE_OUT, 2, "can't change between the two"),
        (3, ScaleType.SCALE_IN, 1, "2 masters"),
    ],
)
def test_numbers_of_masters_that_can_not_work_are_refused(masters: int, way: ScaleType, steps: int, told: str) -> None:
    request = ScaleRequest(type=way, aspect_id="master_instance", number_of_steps=steps)
    before = slots(masters, 2)
    with pytest.raises(BadRequest, match=told):
        DRIVER.check(situation(OperationType.SCALE, request, before, before, masters))


def test_another_version_is_no_matter_of_scale_or_heal() -> None:
    before = slots(1, 2)
    other = {"k8s_cluster_installation_param": {"kubernetes_version": "1.34.4"}}
    request = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="worker_instance", additional_params=other)
    now = situation(OperationType.SCALE, request, before, slots(1, 3), 1)
    vnf = now.instance.vnf
    assert vnf.instantiated_vnf_info
    info = replace(vnf.instantiated_vnf_info, metadata={"kubernetesVersion": "1.33.13"})
    there = dataclasses.replace(now, instance=replace(now.instance, vnf=replace(vnf, instantiated_vnf_info=info)))
    with pytest.raises(BadRequest, match=r"the cluster has Kubernetes 1\.33\.13; leave it out, or change it"):
        DRIVER.check(there)


def test_the_vim_is_unregistered_before_the_machines_go_and_once() -> None:
    before = slots(1, 1)
    request = TerminateRequest(termination_type=TerminationType.FORCEFUL)
    now = situation(OperationType.TERMINATE, request, before, {}, 1)
    late = DRIVER.plan("terminate", frozenset({"end"}), now)
    assert ([step.id for step in late.end.steps], late.start.steps) == ([plans.UNREGISTER], ())
    early = DRIVER.plan("terminate", BOTH, now)
    assert ([step.id for step in early.start.steps], early.end.steps) == ([plans.UNREGISTER], ())


def test_no_secret_and_no_address_is_in_a_plan() -> None:
    request = InstantiateRequest(
        flavour_id="simple",
        additional_params={
            "k8s_cluster_installation_param": {
                role: {**given, "password": {"$secret": "an-id"}}
                for role, given in parameters(1)["k8s_cluster_installation_param"].items()
            }
        },
    )
    now = situation(OperationType.INSTANTIATE, request, {}, slots(1, 1), 1)
    joins = [step for step in whole_plan("instantiate", now).steps if step.action == "kubernetes.join"]
    assert joins[0].args["node"]["login"] == {"username": "root", "password": {"$secret": "an-id"}}


@pytest.mark.parametrize("name", ["kubernetes", "mgmt-drivers-kubernetes"])
def test_packages_written_for_others_find_the_driver_by_its_alias(name: str) -> None:
    management = ManagementDrivers([DRIVER])
    before = slots(1, 1)
    request = TerminateRequest(termination_type=TerminationType.FORCEFUL)
    now = situation(OperationType.TERMINATE, request, before, {}, 1)
    hook = {"terminate_end": Hook(operation="terminate_end", implementation=name, file="Scripts/kubernetes_mgmt.py")}
    shape = Flavour(id="simple", vdus=now.flavour.vdus, hooks=hook)
    there = dataclasses.replace(now, flavour=shape)
    management.check(there)
    assert management.plan("terminate", there).end.steps


def test_an_unknown_driver_is_refused_with_those_there_are() -> None:
    before = slots(1, 1)
    request = TerminateRequest(termination_type=TerminationType.FORCEFUL)
    now = situation(OperationType.TERMINATE, request, before, {}, 1)
    shape = Flavour(id="simple", vdus=now.flavour.vdus, hooks={"x": Hook(operation="x", implementation="stranger")})
    there = dataclasses.replace(now, flavour=shape)
    with pytest.raises(Unprocessable, match="it has: kubernetes"):
        ManagementDrivers([DRIVER]).check(there)
