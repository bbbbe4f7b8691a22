"""Situations of a cluster's VNF: machines by slot, before and after an operation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from slipway.cluster.driver import KubernetesDriver
from slipway.cluster.steps.dependencies import Dependencies
from slipway.model.descriptor import Descriptor, Flavour
from slipway.model.instance import (
    Instance,
    InstantiatedVnfInfo,
    InstantiationState,
    ResourceHandle,
    ScaleInfo,
    VnfcInfo,
    VnfcResourceInfo,
    VnfInstance,
)
from slipway.model.machine import Found, FoundMachine, Machine, Wanted
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import AnyRequest
from slipway.model.situation import PlanningSituation
from slipway.model.target import Change, VnfcMember, VnfTarget
from slipway.simulator.vim.driver import PLANNER
from tests.unit.cluster.flavours import flavour

ID = "11111111-2222-4333-8444-555555555555"
UNUSED: Any = None
DRIVER = KubernetesDriver(Dependencies(UNUSED, UNUSED, UNUSED))
Slots = Mapping[str, str]  # machine ids by slot


def parameters(masters: int) -> dict[str, Any]:
    login = {"username": "root", "password": "x"}
    master = {"aspect_id": "master_instance", "ssh_cp_name": "masterNode_CP1", **login}
    worker = {"aspect_id": "worker_instance", "ssh_cp_name": "workerNode_CP2", **login}
    return {
        "k8s_cluster_installation_param": {
            "master_node": master | ({"cluster_ip": "10.10.0.100"} if masters > 1 else {}),
            "worker_node": worker,
        }
    }


def slots(masters: int, workers: int, made: str = "old") -> dict[str, str]:
    named = [f"masterNode-{n}" for n in range(masters)] + [f"workerNode-{n}" for n in range(workers)]
    return {slot: f"{made}-{slot}" for slot in named}


def renewed(before: Slots, *names: str) -> dict[str, str]:
    return {slot: f"new-{slot}" if slot in names else id_ for slot, id_ in before.items()}


def situation(kind: OperationType, request: AnyRequest, before: Slots, after: Slots, masters: int) -> PlanningSituation:
    shape = flavour(masters=masters, workers=len([slot for slot in before or after if "worker" in slot]))
    return PlanningSituation(
        kind, request, instance(before, masters), descriptor(shape), shape,
        found=Found(machines=tuple(
            FoundMachine(id=id_, name=slot, vdu=slot.split("-")[0], resource_id=id_, ready=True)
            for slot, id_ in before.items()
        )),
        change=Change(
            instance_id=ID, version=1, inventory=Found(), before=target(shape, before) if before else None,
            after=target(shape, after) if after else None,
        ),
    )  # fmt: skip


def target(shape: Flavour, named: Slots) -> VnfTarget:
    members = ((id_, *slot.split("-")) for slot, id_ in named.items())
    return VnfTarget(vnfd_id="vnfd", flavour=shape, scale={}, counts={},
                  members=tuple(VnfcMember(id=id_, vdu=vdu, slot=int(at)) for id_, vdu, at in members))  # fmt: skip


def descriptor(shape: Flavour) -> Descriptor:
    return Descriptor(vnfd_id="d", provider="p", product_name="n", software_version="1", vnfd_version="1",
                      flavours={shape.id: shape})  # fmt: skip


def instance(before: Slots, masters: int) -> Instance:
    info = InstantiatedVnfInfo(
        flavour_id="simple",
        vnf_state="STARTED",
        scale_status=(ScaleInfo(aspect_id="worker_instance", scale_level=0),),
        vnfc_resource_info=tuple(
            VnfcResourceInfo(id=id_, vdu_id=slot.split("-")[0], compute_resource=ResourceHandle(resource_id=id_),
                             metadata={"name": slot, "slot": 0})
            for slot, id_ in before.items()
        ),
        vnfc_info=tuple(VnfcInfo(id=f"vnfc-{slot}", vdu_id=slot.split("-")[0], vnfc_state="STARTED",
                                 vnfc_resource_info_id=id_) for slot, id_ in before.items()),
    )  # fmt: skip
    vnf = VnfInstance(
        id=ID, vnfd_id="d", vnf_provider="p", vnf_product_name="n", vnf_software_version="1", vnfd_version="1",
        instantiation_state=InstantiationState.INSTANTIATED if before else InstantiationState.NOT_INSTANTIATED,
        instantiated_vnf_info=info if before else None,
    )  # fmt: skip
    return Instance(vnf=vnf, created_at=datetime(2026, 1, 1, tzinfo=UTC), parameters=parameters(masters))


def vim_steps(now: PlanningSituation) -> Plan:
    """What a VIM does for members that hold nothing."""
    after = now.change.after
    machines = (Machine(id=one.id, name=one.name, vdu=one.vdu) for one in (after.members if after else ()))
    return PLANNER.steps_towards(Wanted(instance_id=ID, machines=tuple(machines)), now.found)


def earlier(plan: Plan, step: str) -> set[str]:
    """All that has ended when it begins."""
    after = {one.id: set(one.after) for one in plan.steps}
    found: set[str] = set()
    waiting = set(after[step])
    while waiting:
        found |= waiting
        waiting = {before for one in waiting for before in after[one]} - found
    return found
