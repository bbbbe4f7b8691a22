"""A VNF to plan for: one master, workers that scale, a network, a volume for each worker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from slipway.lcm import instantiate
from slipway.lcm.operations import OPERATIONS
from slipway.lcm.planning import plan_hooks_only, plan_on_vim
from slipway.lcm.record import with_outcomes
from slipway.mgmt.drivers import ManagementDrivers, Noop
from slipway.model.descriptor import Aspect, ConnectionPoint, Descriptor, Flavour, Level, Storage, Vdu, VirtualLink
from slipway.model.instance import Instance, InstantiationState, VnfInstance
from slipway.model.machine import Address, Found, FoundMachine, FoundNetwork, FoundPort, FoundVolume, Outcome
from slipway.model.operation import OperationType
from slipway.model.plan import Plan
from slipway.model.requests import AnyRequest, InstantiateRequest
from slipway.model.situation import Situation
from slipway.model.target import Change
from slipway.simulator.vim.driver import PLANNER
from slipway.vim.machine_by_machine.wanted import wanted_of

ID = "11111111-2222-4333-8444-555555555555"
FLAVOUR = Flavour(
    id="simple",
    vdus={
        "master": Vdu(name="master", initial=1, maximum=1),
        "worker": Vdu(name="worker", initial=2, maximum=5, storages=("data",)),
    },
    connection_points={
        "master_cp": ConnectionPoint(name="master_cp", vdu="master", virtual_link="net"),
        "worker_cp": ConnectionPoint(name="worker_cp", vdu="worker", virtual_link="net"),
        "worker_ext": ConnectionPoint(name="worker_ext", vdu="worker", order=1),
    },
    virtual_links={"net": VirtualLink(name="net", cidr="10.0.0.0/24")},
    storages={"data": Storage(name="data", size_bytes=1000)},
    aspects={"workers": Aspect(name="workers", max_level=4, deltas={"worker": (1,)})},
    levels={
        "small": Level(name="small", scale={"workers": 0}),
        "big": Level(name="big", scale={"workers": 2}, counts={"worker": 4}),
    },
    default_level="small",
)
DESCRIPTOR = Descriptor(
    vnfd_id="d",
    provider="p",
    product_name="n",
    software_version="1",
    vnfd_version="1",
    flavours={"simple": FLAVOUR},
)


class PlanningDriver:
    """Only what planners use of a driver: its pure part."""

    def steps(self, change: Change, found: Found) -> Plan:
        return PLANNER.steps_towards(wanted_of(change), found)


def empty_instance() -> Instance:
    vnf = VnfInstance(
        id=ID,
        vnfd_id="d",
        vnf_provider="p",
        vnf_product_name="n",
        vnf_software_version="1",
        vnfd_version="1",
        instantiation_state=InstantiationState.NOT_INSTANTIATED,
    )
    return Instance(vnf=vnf, created_at=datetime(2026, 1, 1, tzinfo=UTC))


def situation(kind: OperationType, request: AnyRequest, instance: Instance) -> Situation:
    return Situation(kind, request, instance, DESCRIPTOR, FLAVOUR)


def plan(kind: OperationType, request: AnyRequest, instance: Instance, found: Found | None = None) -> Plan:
    now = situation(kind, request, instance)
    OPERATIONS[kind].check(now, request)
    driver: Any = PlanningDriver()
    management = ManagementDrivers([Noop()])
    if OPERATIONS[kind].change is None:
        return plan_hooks_only(now, management)
    return plan_on_vim(now, found or Found(), driver, management).checked()


def found_after(made: Plan) -> Found:
    """What a VIM would report once a plan that only makes things has run."""
    networks, machines = [], []
    for step in made.steps:
        if network := step.args.get("network"):
            networks.append(FoundNetwork(id=network["id"], name=network["name"], resource_id=f"r-{network['id']}"))
        if machine := step.args.get("machine"):
            machines.append(_found(machine))
    return Found(
        networks=tuple(networks),
        machines=tuple(machines),
        ports=tuple(port for machine in machines for port in machine.ports),
        volumes=tuple(volume for machine in machines for volume in machine.volumes),
    )


def _found(machine: dict[str, Any]) -> FoundMachine:
    return FoundMachine(
        id=machine["id"],
        name=machine["name"],
        vdu=machine["vdu"],
        resource_id=f"r-{machine['id']}",
        ready=True,
        ports=tuple(
            FoundPort(
                id=port["id"], name=port["name"], resource_id=f"r-{port['id']}", addresses=(Address(ip="10.0.0.9"),)
            )
            for port in machine.get("ports", ())
        ),
        volumes=tuple(
            FoundVolume(id=volume["id"], name=volume["name"], resource_id=f"r-{volume['id']}")
            for volume in machine.get("volumes", ())
        ),
    )


def instantiated(request: InstantiateRequest | None = None) -> tuple[Instance, Found]:
    """An instance after its instantiation, and what the VIM has for it."""
    asked = request or InstantiateRequest(flavour_id="simple")
    new = empty_instance()
    found = found_after(plan(OperationType.INSTANTIATE, asked, new))
    now = situation(OperationType.INSTANTIATE, asked, new)
    vnf = OPERATIONS[OperationType.INSTANTIATE].complete(now, asked)
    assert vnf.instantiated_vnf_info is not None
    outcome = Outcome(machines=found.machines, networks=found.networks)
    members = instantiate.change(now, asked).members
    info = with_outcomes(vnf.instantiated_vnf_info, [outcome], FLAVOUR, "vim", members, new.version)
    return replace(new, vnf=replace(vnf, instantiated_vnf_info=info), version=2), found
