"""Objects of Cluster API: the order in which they go, which machines are up to date, which heal is refused."""

from __future__ import annotations

from typing import Any

import pytest

from slipway.model.descriptor import Flavour, Vdu
from slipway.model.errors import Unprocessable
from slipway.model.machine import Found, FoundMachine
from slipway.model.target import Renewal, VnfTarget
from slipway.vim.kubernetes.cluster_api import is_of_former_template, removal_rounds
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from tests.unit.vim.kubernetes_targets import PATH, change, standing, target, together

DRIVER = KubernetesVimDriver()
CORE, PLANE = "cluster.x-k8s.io/v1beta2", "controlplane.cluster.x-k8s.io/v1beta2"


def named(kind: str, name: str, *owners: str, api_version: str = CORE) -> dict[str, Any]:
    references = [{"uid": uid, "controller": True} for uid in owners]
    metadata = {"name": name, "uid": name, "namespace": "edge", "ownerReferences": references}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def rounds(*objects: dict[str, Any]) -> list[list[str]]:
    return [[one["metadata"]["name"] for one in some] for some in removal_rounds(objects)]


def test_a_cluster_is_gone_before_what_belongs_to_it_is_touched() -> None:
    plane = named("KubeadmControlPlane", "plane", "edge", api_version=PLANE)
    template = named("DevMachineTemplate", "template", "edge", api_version="infrastructure.cluster.x-k8s.io/v1beta2")
    assert rounds(template, plane, named("Cluster", "edge")) == [["edge"], ["template", "plane"]]


def test_a_cluster_goes_first_even_when_it_has_adopted_nothing_yet() -> None:
    assert rounds(named("MachineDeployment", "workers"), named("Cluster", "edge")) == [["edge"], ["workers"]]


def test_objects_without_owners_go_together() -> None:
    assert rounds(
        named("Page", "a", api_version="example.com/v1"), named("Page", "b", api_version="example.com/v1")
    ) == [["a", "b"]]
    assert rounds() == []


def template(version: str, infrastructure: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {
        "version": version, "infrastructureRef": {"name": infrastructure},
        "bootstrap": {"configRef": {"name": "workers"}}}}}}  # fmt: skip


def test_a_machine_is_up_to_date_when_it_was_made_from_what_its_owner_says_now() -> None:
    """Counters of a MachineDeployment say so for about a second before its controller has begun."""
    deployment, old = named("MachineDeployment", "workers"), named("MachineSet", "old", "workers")
    sets = {"old": {**old, **template("v1.34.0", "a")}}
    machine = named("Machine", "one", "old")
    assert not is_of_former_template(machine, {**deployment, **template("v1.34.0", "a")}, sets)
    assert is_of_former_template(machine, {**deployment, **template("v1.34.4", "a")}, sets)
    assert is_of_former_template(machine, {**deployment, **template("v1.34.0", "b")}, sets)


def test_a_machine_of_a_control_plane_has_its_version() -> None:
    plane = {**named("KubeadmControlPlane", "plane", api_version=PLANE), "spec": {"version": "v1.34.4"}}
    machine = named("Machine", "one", "plane")
    assert is_of_former_template({**machine, "spec": {"version": "v1.34.0"}}, plane, {})
    assert not is_of_former_template({**machine, "spec": {"version": "v1.34.4"}}, plane, {})


def a_workload_cluster() -> VnfTarget:
    vdus = (Vdu(name="web", title="workers", container=True), Vdu(name="masters", title="plane", container=True))
    objects = (
        f"apiVersion: {PLANE}\nkind: KubeadmControlPlane\nmetadata: {{name: plane}}\n",
        f"apiVersion: {CORE}\nkind: MachineDeployment\nmetadata: {{name: workers}}\n",
    )
    flavour = Flavour(id="simple", vdus={one.name: one for one in vdus}, manifests=(PATH,))
    return target(together(*objects), of=flavour)


def machines(**number: int) -> tuple[FoundMachine, ...]:
    return tuple(
        FoundMachine(id=f"{vdu}-{at}", name=f"{vdu}-{at}", vdu=vdu, type="Machine", resource_id=vdu, ready=True)
        for vdu, count in number.items()
        for at in range(count)
    )


@pytest.mark.parametrize("masters", [1, 3])
def test_the_last_machine_of_a_control_plane_is_not_healed(masters: int) -> None:
    now = a_workload_cluster()
    inventory = Found(objects=standing(now).objects, machines=machines(masters=masters, web=1))
    every = frozenset(f"masters-{at}" for at in range(masters))
    with pytest.raises(Unprocessable, match="all machines of the control plane masters would be replaced"):
        DRIVER.refuse(change(now, now, inventory=inventory, renewal=Renewal(members=every)))
    DRIVER.refuse(change(now, now, inventory=inventory, renewal=Renewal(members=frozenset({"web-0"}))))
    DRIVER.refuse(change(now, now, inventory=inventory, renewal=Renewal(members=every, everything=True)))


def test_machines_are_healed_as_machines() -> None:
    now = a_workload_cluster()
    inventory = Found(objects=standing(now).objects, machines=machines(masters=1, web=2))
    plan = DRIVER.steps(change(now, now, inventory=inventory, renewal=Renewal(members=frozenset({"web-0"}))), inventory)
    assert [step.id for step in plan.steps] == ["delete machines", "wait until ready"]
    assert [(effect.kind, effect.name) for effect in plan.steps[0].effects] == [("Machine", "web-0")]
