"""Whether the machines of a workload cluster are what their MachineDeployment wants, whatever its counters say."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.cluster.cluster_api.machines import DEPLOYMENT_LABEL, _kept, machines_settled
from slipway.kube.interface import ObjectRef

GROUP = "cluster.x-k8s.io/v1beta2"


def template(version: str, infrastructure: str) -> dict[str, Any]:
    return {"spec": {"version": version, "infrastructureRef": {"name": infrastructure},
                     "bootstrap": {"configRef": {"name": "workers"}}}}  # fmt: skip


def deployment(version: str = "v1.34.0", infrastructure: str = "a", replicas: int = 2, **status: int) -> dict[str, Any]:
    counters = {"readyReplicas": replicas, "availableReplicas": replicas, "upToDateReplicas": replicas, **status}
    return {"kind": "MachineDeployment", "metadata": {"name": "workers", "uid": "md"}, "status": counters,
            "spec": {"replicas": replicas, "template": template(version, infrastructure)}}  # fmt: skip


def machine_set(uid: str, version: str = "v1.34.0", infrastructure: str = "a") -> dict[str, Any]:
    return {"kind": "MachineSet", "metadata": {"name": uid, "uid": uid},
            "spec": {"template": template(version, infrastructure)}}  # fmt: skip


def machine(name: str, made_by: str, **metadata: Any) -> dict[str, Any]:
    return {"kind": "Machine", "metadata": {
        "name": name, "uid": name, "labels": {DEPLOYMENT_LABEL: "workers"},
        "ownerReferences": [{"controller": True, "uid": made_by}], **metadata}}  # fmt: skip


def state(*objects: dict[str, Any]) -> str:
    found = {ObjectRef(GROUP, one["kind"], one["metadata"]["name"], "edge"): _kept(one) for one in objects}
    seen = machines_settled(found)
    return "settled" if seen.done else seen.condition


def test_a_roll_out_that_nobody_has_begun_is_not_done_though_all_counters_say_so() -> None:
    """Seen on the real thing: for about a second after a change of the template."""
    before = machine_set("old"), machine("one", "old"), machine("two", "old")
    assert state(deployment(), *before) == "settled"
    assert state(deployment("v1.34.4"), *before) == "Machine one is of a former version or template"
    assert state(deployment(infrastructure="b"), *before) == "Machine one is of a former version or template"


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ((machine_set("new"), machine("one", "new")), "MachineDeployment edge/workers has 1 of 2 machines"),
        (
            (
                machine_set("new"),
                machine("one", "new"),
                machine("two", "new", deletionTimestamp="2026-01-01T00:00:00Z"),
            ),
            "Machine two is being deleted",
        ),
        ((machine_set("new"), machine("one", "new"), machine("two", "gone")), "Machine two is of a former"),
    ],
)
def test_what_is_missing_is_named(objects: tuple[dict[str, Any], ...], why: str) -> None:
    assert why in state(deployment(), *objects)


def test_machines_that_do_not_work_yet_are_waited_for() -> None:
    there = machine_set("new"), machine("one", "new"), machine("two", "new")
    assert "readyReplicas is 1 of 2" in state(deployment(readyReplicas=1), *there)
    assert "availableReplicas is 0 of 2" in state(deployment(availableReplicas=0), *there)
