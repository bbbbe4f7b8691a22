"""Whatever is found and whatever is wanted: the plan is valid, and running it gets there."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.model.action import VimConnection
from slipway.model.machine import (
    Address,
    Found,
    FoundMachine,
    FoundNetwork,
    FoundPort,
    FoundVolume,
    Machine,
    Network,
    Port,
    Volume,
    Wanted,
)
from slipway.model.plan import Plan, Verb
from slipway.simulator.vim import SimulatedDriver
from slipway.simulator.vim.driver import PLANNER
from tests.contract.clusters import Cluster, differences, healed, nothing, replugged
from tests.contract.plans import Context, run_plan
from tests.examples import examples

# An id always means the same thing, as Slipway gives it: what changes gets a new id.
NETWORKS = [Network(id=f"n{number}", name="same" if number else "net", cidr="10.0.0.0/24") for number in range(3)]
PORTS = [
    Port(
        id=f"p{number}", name="CP", network=f"n{number % 3}", addresses=(Address(ip="10.0.0.5"),) if number < 6 else ()
    )
    for number in range(9)
] + [Port(id="p9", name="CP", external_network="public"), Port(id="p10", name="CP", external_network="public")]
VOLUMES = [Volume(id=f"v{number}", name="data", size_bytes=1) for number in range(4)]
MACHINES = [
    Machine(id=f"{'same-start' * (number % 2)}{number}", name=f"vdu-{number // 2}", vdu="vdu") for number in range(6)
]


@st.composite
def wanteds(draw: st.DrawFn) -> Wanted:
    """Some machines, with ports and volumes dealt out among them, and the networks they need."""
    chosen = draw(st.lists(st.sampled_from(MACHINES), unique_by=lambda machine: machine.id))
    extra = draw(st.sets(st.sampled_from([network.id for network in NETWORKS])))
    if not chosen:
        return Wanted(instance_id="i", networks=tuple(n for n in NETWORKS if n.id in extra))
    host = st.integers(0, len(chosen) - 1) | st.none()
    ports: list[list[Port]] = [[] for _ in chosen]
    volumes: list[list[Volume]] = [[] for _ in chosen]
    fixed = set[tuple[str | None, str]]()
    for port in draw(st.permutations(PORTS)):
        owner = draw(host)
        if owner is None or (port.address is not None and (port.network, port.address) in fixed):
            continue
        if port.address is not None:
            fixed.add((port.network, port.address))
        ports[owner].append(port)
    for volume in VOLUMES:
        if (owner := draw(host)) is not None:
            volumes[owner].append(volume)
    machines = tuple(
        msgspec.structs.replace(machine, ports=tuple(ports[number]), volumes=tuple(volumes[number]))
        for number, machine in enumerate(chosen)
    )
    needed = extra | {port.network for some in ports for port in some if port.network}
    return Wanted(instance_id="i", networks=tuple(n for n in NETWORKS if n.id in needed), machines=machines)


@st.composite
def founds(draw: st.DrawFn) -> Found:
    """Whatever a VIM may say, be it at odds with itself."""
    ports = draw(st.lists(st.builds(_found_port, st.sampled_from(PORTS)), max_size=6))
    volumes = [FoundVolume(id=v.id, name=v.name, resource_id="r") for v in VOLUMES]
    machines = [
        FoundMachine(
            id=machine.id,
            name=machine.name,
            vdu=machine.vdu,
            resource_id="r",
            ready=draw(st.booleans()),
            ports=tuple(draw(st.lists(st.sampled_from(ports), max_size=3)) if ports else ()),
            volumes=tuple(draw(st.lists(st.sampled_from(volumes), max_size=2))),
        )
        for machine in draw(st.lists(st.sampled_from(MACHINES), unique_by=lambda machine: machine.id))
    ]
    networks = [FoundNetwork(id=n.id, name=n.name, resource_id="r") for n in NETWORKS if draw(st.booleans())]
    return Found(
        networks=tuple(networks), machines=tuple(machines), ports=tuple(ports), volumes=tuple(volumes if ports else ())
    )


def _found_port(port: Port) -> FoundPort:
    return FoundPort(id=port.id, name=port.name, resource_id="r", addresses=port.addresses)


@given(wanteds(), founds())
def test_any_plan_is_valid_and_pure(wanted: Wanted, found: Found) -> None:
    plan = PLANNER.steps_towards(wanted, found).checked()
    assert plan == PLANNER.steps_towards(wanted, found)
    assert all(step.effects for step in plan.steps)


@settings(max_examples=examples(60))
@given(
    before=wanteds(),
    after=wanteds(),
    stop=st.none() | st.integers(0, 8),
    broken=st.sets(st.sampled_from([machine.id for machine in MACHINES])),
    lost=st.sets(st.sampled_from([machine.id for machine in MACHINES])),
    chance=st.randoms(use_true_random=False),
)
def test_running_the_plan_gets_from_any_state_to_any_other(
    before: Wanted, after: Wanted, stop: int | None, broken: set[str], lost: set[str], chance: Random
) -> None:
    async def story(driver: SimulatedDriver) -> None:
        vim = VimConnection(driver.vim_type, {"endpoint": "sim://x"}, {}, {})
        await run_plan(driver, driver.steps_towards(before, Found()), Context(vim, "i", "op-1"), stop_after=stop)
        there = [machine.id for machine in (await driver.find(vim, "i")).machines]
        for machine_id in there:
            if machine_id in lost:
                await driver.lose_machine(vim, machine_id)
            elif machine_id in broken:
                await driver.break_machine(vim, machine_id)
        plan = driver.steps_towards(after, await driver.find(vim, "i"))
        await run_plan(driver, plan, Context(vim, "i", "op-2"), twice=True, chance=chance)
        found = await driver.find(vim, "i")
        assert differences(found, after) == []
        assert driver.steps_towards(after, found) == Plan()

    with tempfile.TemporaryDirectory() as directory:
        driver = SimulatedDriver(Path(directory))
        asyncio.run(story(driver))
        driver.close()


def made(wanted: Wanted) -> Found:
    """What a VIM would say after making it all."""
    machines = tuple(
        FoundMachine(
            id=machine.id,
            name=machine.name,
            vdu=machine.vdu,
            resource_id="r",
            ready=True,
            ports=tuple(_found_port(port) for port in machine.ports),
            volumes=tuple(FoundVolume(id=v.id, name=v.name, resource_id="r") for v in machine.volumes),
        )
        for machine in wanted.machines
    )
    return Found(
        networks=tuple(FoundNetwork(id=n.id, name=n.name, resource_id="r") for n in wanted.networks),
        machines=machines,
        ports=tuple(port for machine in machines for port in machine.ports),
        volumes=tuple(volume for machine in machines for volume in machine.volumes),
    )


def test_machines_are_made_at_once_after_their_network() -> None:
    plan = PLANNER.steps_towards(Cluster().wanted("i"), Found())
    assert {step.id: step.after for step in plan.steps} == {
        "make network internalVL": (),
        "make machine masterNode-1": ("make network internalVL",),
        "make machine workerNode-1": ("make network internalVL",),
        "make machine workerNode-2": ("make network internalVL",),
    }
    assert [step.nodes for step in plan.steps] == [(), ("masterNode-1",), ("workerNode-1",), ("workerNode-2",)]


def chained(wanted: Wanted) -> Wanted:
    """web depends on app, app on database; cache depends on nothing."""
    names = ("web", "cache", "app", "database")
    machines = tuple(Machine(id=f"{vdu}{n}", name=f"{vdu}-{n}", vdu=vdu) for vdu in names for n in range(2))
    return msgspec.structs.replace(wanted, machines=machines, dependencies={"web": ("app",), "app": ("database",)})


def test_machines_are_made_after_those_that_their_vdu_depends_on() -> None:
    plan = PLANNER.steps_towards(chained(nothing("i")), Found()).checked()
    orders = {step.nodes[0]: {one.removeprefix("make machine ") for one in step.after} for step in plan.steps}
    database, app = {"database-0", "database-1"}, {"app-0", "app-1"}
    assert orders == {
        "database-0": set(), "database-1": set(), "cache-0": set(), "cache-1": set(),
        "app-0": database, "app-1": database, "web-0": app | database, "web-1": app | database,
    }  # fmt: skip


def test_a_dependency_counts_although_nothing_in_between_is_made() -> None:
    wanted = chained(nothing("i"))
    there = tuple(machine for machine in made(wanted).machines if machine.vdu in ("app", "cache"))
    plan = PLANNER.steps_towards(wanted, Found(machines=there)).checked()
    assert {step.nodes[0]: len(step.after) for step in plan.steps} == {
        "database-0": 0, "database-1": 0, "web-0": 2, "web-1": 2,
    }  # fmt: skip


def test_machines_go_for_good_before_those_that_their_vdu_depends_on() -> None:
    wanted = chained(nothing("i"))
    gone = msgspec.structs.replace(wanted, machines=())
    plan = PLANNER.steps_towards(gone, made(wanted)).checked()
    orders = {step.nodes[0]: {one.removeprefix("remove machine ") for one in step.after} for step in plan.steps}
    web, app = {"web-0", "web-1"}, {"app-0", "app-1"}
    assert orders == {
        "web-0": set(), "web-1": set(), "cache-0": set(), "cache-1": set(),
        "app-0": web, "app-1": web, "database-0": web | app, "database-1": web | app,
    }  # fmt: skip


def test_what_is_replaced_does_not_wait_for_its_dependents_to_go() -> None:
    wanted = chained(nothing("i"))
    names = {"web-0", "database-0"}
    anew = tuple(
        msgspec.structs.replace(machine, id=f"new {machine.id}") if machine.name in names else machine
        for machine in wanted.machines
    )
    plan = PLANNER.steps_towards(msgspec.structs.replace(wanted, machines=anew), made(wanted)).checked()
    assert {step.id: step.after for step in plan.steps} == {
        "remove machine web-0": (),
        "remove machine database-0": (),
        "make machine database-0": ("remove machine database-0",),
        "make machine web-0": ("remove machine web-0", "make machine database-0"),
    }


def test_a_heal_removes_before_it_makes_and_keeps_ports_and_volumes() -> None:
    wanted = Cluster().wanted("i")
    plan = PLANNER.steps_towards(healed(wanted, "workerNode-2"), made(wanted))
    assert {step.id: step.after for step in plan.steps} == {
        "remove machine workerNode-2": (),
        "make machine workerNode-2": ("remove machine workerNode-2",),
    }
    assert [effect.kind for step in plan.steps for effect in step.effects] == ["machine", "machine"]


def test_a_slot_is_free_before_it_is_filled_even_without_ports() -> None:
    old = Wanted(instance_id="i", machines=(Machine(id="old", name="vdu-1", vdu="vdu"),))
    new = Wanted(instance_id="i", machines=(Machine(id="new", name="vdu-1", vdu="vdu"),))
    orders = {step.id: step.after for step in PLANNER.steps_towards(new, made(old)).steps}
    assert orders == {"remove machine vdu-1": (), "make machine vdu-1": ("remove machine vdu-1",)}


def test_a_port_goes_before_another_takes_its_place_and_can_be_given_back_where_it_is_known_how() -> None:
    wanted = Cluster().wanted("i")
    there = made(wanted)
    for before, action in ((there, "simulated.take_ports"), (None, "simulated.unplug")):
        plan = PLANNER.steps_towards(replugged(wanted, "workerNode-1", "10.10.0.7", before), there)
        assert {step.id: (step.action, step.after) for step in plan.steps} == {
            "unplug from machine workerNode-1": (action, ()),
            "repair machine workerNode-1": ("simulated.make_machine", ("unplug from machine workerNode-1",)),
        }
        assert [(effect.verb, effect.kind) for step in plan.steps for effect in step.effects] == [
            (Verb.CHANGE, "machine"), (Verb.REMOVE, "port"), (Verb.CHANGE, "machine"), (Verb.MAKE, "port"),
        ]  # fmt: skip


def test_networks_go_after_the_machines_and_ports_and_volumes_with_them() -> None:
    plan = PLANNER.steps_towards(nothing("i"), made(Cluster().wanted("i", workers=1)))
    assert {step.id: step.after for step in plan.steps} == {
        "remove machine masterNode-1": (),
        "remove machine workerNode-1": (),
        "remove network internalVL": ("remove machine masterNode-1", "remove machine workerNode-1"),
    }
    assert {(effect.verb, effect.kind) for effect in plan.steps[0].effects} == {
        (Verb.REMOVE, "machine"),
        (Verb.REMOVE, "port"),
        (Verb.REMOVE, "volume"),
    }


def test_two_in_one_slot_are_removed_under_names_of_their_own() -> None:
    found = made(Cluster().wanted("i", workers=1))
    twin = msgspec.structs.replace(found.machines[1], id="another-id-of-that-slot", ports=(), volumes=())
    plan = PLANNER.steps_towards(nothing("i"), msgspec.structs.replace(found, machines=(*found.machines, twin)))
    assert "remove machine workerNode-1 (another-)" in [step.id for step in plan.checked().steps]


def test_a_broken_machine_is_repaired_in_its_place() -> None:
    wanted = Cluster().wanted("i")
    found = made(wanted)
    broken = msgspec.structs.replace(found.machines[1], ready=False)
    plan = PLANNER.steps_towards(
        wanted, msgspec.structs.replace(found, machines=(found.machines[0], broken, found.machines[2]))
    )
    assert [(step.id, step.action) for step in plan.steps] == [
        ("repair machine workerNode-1", "simulated.make_machine")
    ]
