"""kill -9 at every step boundary of every operation; then a restart, and nothing is lost, doubled or left behind.

The boundaries come from the plans themselves: whatever steps a flow has, before each, after its work but before that is
written down, and after; and around planning and settling.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from msgspec.structs import replace
from sqlalchemy.engine import URL

from slipway.engine import operation_control
from slipway.model.descriptor import Descriptor
from slipway.model.errors import VimFault
from slipway.model.instance import ExtVirtualLink, VnfExtCpData
from slipway.model.machine import Found
from slipway.model.operation import OperationType, State
from slipway.model.requests import (
    AnyRequest,
    ChangeExtConnRequest,
    ChangePackageRequest,
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.settings import Settings
from slipway.vim.fault_rules import Rule, RuleKind
from tests.databases import setting
from tests.functional.agreement import assert_agreement
from tests.functional.crash_child import VIMS, rig_on, work
from tests.functional.lives import Place, one_life
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import SAMPLE, SIMULATED_VIM, Rig, of_containers, settings_in

INSTANTIATE = InstantiateRequest(flavour_id="simple")
LEASE = 0.4


@dataclass(frozen=True)
class Flow:
    """An operation on an instance that was brought to `before` (a list of operations that ran whole)."""

    kind: OperationType
    request: AnyRequest
    ends: State
    before: tuple[tuple[OperationType, AnyRequest], ...] = ()
    roll_back: bool = False


def out(steps: int) -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers", number_of_steps=steps)


def back(steps: int) -> ScaleRequest:
    return ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="workers", number_of_steps=steps)


def on(network: str) -> tuple[ExtVirtualLink, ...]:
    return (ExtVirtualLink(id="outside", resource_id=network, ext_cps=(VnfExtCpData(cpd_id="workerNode_CP1"),)),)


MOVE = ChangeExtConnRequest(ext_virtual_links=on("net-2"))
UPDATE = ChangePackageRequest(vnfd_id=NEXT_ID, additional_params={"colour": "blue"})
PLUGGED = ((OperationType.INSTANTIATE, replace(INSTANTIATE, ext_virtual_links=on("net-1"))),)
MADE = ((OperationType.INSTANTIATE, INSTANTIATE),)
GROWN = (*MADE, (OperationType.SCALE, out(2)))
FORCEFUL = TerminateRequest(termination_type=TerminationType.FORCEFUL)

FLOWS = {
    "instantiate": Flow(OperationType.INSTANTIATE, INSTANTIATE, State.COMPLETED),
    "scale out": Flow(OperationType.SCALE, out(2), State.COMPLETED, MADE),
    "scale in": Flow(OperationType.SCALE, back(2), State.COMPLETED, GROWN),
    "heal": Flow(OperationType.HEAL, HealRequest(), State.COMPLETED, MADE),
    "terminate": Flow(OperationType.TERMINATE, FORCEFUL, State.COMPLETED, MADE),
    "change of package": Flow(OperationType.CHANGE_VNFPKG, UPDATE, State.COMPLETED, MADE),
    "change of external connectivity": Flow(OperationType.CHANGE_EXT_CONN, MOVE, State.COMPLETED, PLUGGED),
    "rollback of instantiate": Flow(OperationType.INSTANTIATE, INSTANTIATE, State.ROLLED_BACK, roll_back=True),
    "rollback of scale out": Flow(OperationType.SCALE, out(2), State.ROLLED_BACK, MADE, roll_back=True),
    "rollback of a change of package": Flow(
        OperationType.CHANGE_VNFPKG, UPDATE, State.ROLLED_BACK, MADE, roll_back=True
    ),
    "rollback of a change of external connectivity": Flow(
        OperationType.CHANGE_EXT_CONN, MOVE, State.ROLLED_BACK, PLUGGED, roll_back=True
    ),
}
CRASH = pytest.mark.group(name="crash")
IN_MAKE_TEST = {
    ("machines", "instantiate"),
    ("machines", "heal"),
    ("machines", "rollback of scale out"),
    ("stack", "scale in"),
    ("stack", "rollback of a change of package"),
    ("objects", "rollback of scale out"),
}
WITH_LINKS = ("change of external connectivity", "rollback of a change of external connectivity")
CASES = [
    pytest.param(vim, name, marks=[] if (vim, name) in IN_MAKE_TEST else CRASH)
    for vim in VIMS
    for name in FLOWS
    if vim != "objects" or name not in WITH_LINKS  # objects have no ports
]


@dataclass(frozen=True)
class Prepared:
    """A stopped Slipway just before a flow: its directory and database, to be copied for each boundary."""

    settings: Settings
    instance_id: str
    operation_id: str
    boundaries: tuple[Place, ...]
    vim: str
    before: list[tuple[str | None, ...]]  # what the VIM had


@pytest.mark.parametrize(("vim", "name"), CASES)
async def test_killed_at_every_boundary_one_after_another_the_operation_ends(
    vim: str, name: str, tmp_path: Path
) -> None:
    await lives(name, settings_in(tmp_path, lease_seconds=LEASE), vim)


async def test_killed_at_every_boundary_one_after_another_on_postgresql_too(
    postgresql_url: URL, tmp_path: Path
) -> None:
    await lives(
        "rollback of scale out", settings_in(tmp_path, setting(postgresql_url), lease_seconds=LEASE), "machines"
    )


async def lives(name: str, settings: Settings, vim: str) -> None:
    """All in one life. Steps that end together may be written down together, and one kill after the first of them
    passes the others by.
    """
    prepared = await prepare(FLOWS[name], settings, vim)
    deaths = await one_life(partial(work, vim=vim), settings, prepared.operation_id, prepared.boundaries)
    missed = {place for place in prepared.boundaries if place not in deaths}
    assert {edge for edge, _ in missed} <= {"after"}, f"never reached: {missed}"
    await check(FLOWS[name], settings, prepared)


@CRASH
@pytest.mark.parametrize("name", list(FLOWS))
async def test_killed_at_any_boundary_the_operation_ends_and_records_agree_with_the_vim(
    name: str, database_url: URL, copied: Callable[[Settings, Path], Settings], tmp_path: Path
) -> None:
    flow = FLOWS[name]
    prepared = await prepare(flow, settings_in(tmp_path / "prepared", setting(database_url), lease_seconds=LEASE))
    assert len(prepared.boundaries) > 6
    for number, place in enumerate(prepared.boundaries):
        settings = copied(prepared.settings, tmp_path / f"case{number}")
        assert await one_life(work, settings, prepared.operation_id, {place}) == {place}
        try:
            await check(flow, settings, prepared)
        except AssertionError as error:
            raise AssertionError(f"after a kill {place}: {error}") from error


async def prepare(flow: Flow, settings: Settings, vim: str = "machines") -> Prepared:
    async with rig_on(vim, settings) as rig:
        instance_id = await rig.create()
        for kind, request in flow.before:
            assert (await rig.run(kind, instance_id, request)).operation_state is State.COMPLETED
        if flow.request is UPDATE:
            await onboard_next(rig, SAMPLE, settings.data_dir, NEXT_ID, hooks=(), change=partial(next_version, vim))
        plan = await rig.slipway.lcm.preview_plan(flow.kind, instance_id, flow.request)
        touched = [step.id for step in plan.steps]
        before = held((await rig.inventory()).get(instance_id, Found()))
        if flow.roll_back:
            operation_id = await fail_for_good(rig, flow, instance_id, touched, vim)
            return Prepared(settings, instance_id, operation_id, boundaries(touched, planning=False), vim, before)
    async with rig_on(vim, settings, working=False) as rig:
        accepted = await rig.slipway.lcm.start_operation(flow.kind, instance_id, flow.request)
    return Prepared(settings, instance_id, accepted.id, boundaries(touched), vim, before)


async def fail_for_good(rig: Rig, flow: Flow, instance_id: str, touched: list[str], vim: str) -> str:
    """The last machine's making fails for good, and somebody decides to roll back: nothing of that has run yet."""
    if rig.objects:
        rig.objects.failing = "settings" if flow.request is UPDATE else "workerNode"
    else:
        last = "workerNode-3" if flow.kind is OperationType.SCALE else "workerNode-1"
        slot = last if vim == "stack" else touched[-1].removeprefix("make machine ").removeprefix("repair machine ")
        fault = Rule(call="make_machine", machine=slot, kind=RuleKind.ERROR, fault=VimFault.PERMANENT)
        await rig.slipway.simulated.set_rules(SIMULATED_VIM, [fault])
    failed = await rig.run(flow.kind, instance_id, flow.request)
    assert failed.operation_state is State.FAILED_TEMP
    await rig.slipway.simulated.clear(SIMULATED_VIM)
    if rig.slipway.worker:
        await rig.slipway.worker.shut_down(grace=5)
    await rig.slipway.database.write(operation_control.roll_back, failed.id)
    return failed.id


def next_version(vim: str, descriptor: Descriptor) -> Descriptor:
    """Its workers have another size and one more port; on objects the request's parameters are the change."""
    if vim == "objects":
        return of_containers(descriptor)
    flavour = descriptor.flavours["simple"]
    first = flavour.connection_points["workerNode_CP1"]
    points = {**flavour.connection_points, "workerNode_CP9": replace(first, name="workerNode_CP9", order=9)}
    vdus = {**flavour.vdus, "workerNode": replace(flavour.vdus["workerNode"], flavour="m1.huge")}
    return replace(descriptor, flavours={"simple": replace(flavour, vdus=vdus, connection_points=points)})


def boundaries(step_ids: list[str], *, planning: bool = True) -> tuple[Place, ...]:
    around = [(edge, step_id) for step_id in step_ids for edge in ("before", "worked", "after")]
    return ((("after", "plan"),) if planning else ()) + (*around, ("before", "settle"), ("after", "settle"))


async def check(flow: Flow, settings: Settings, prepared: Prepared) -> None:
    async with rig_on(prepared.vim, settings, working=False) as rig:
        operation = await rig.rest(prepared.operation_id)
        assert operation.operation_state is flow.ends, operation.error
        vnf = (await rig.instance(prepared.instance_id)).vnf
        assert (vnf.vnfd_id == NEXT_ID) is (flow.request is UPDATE and flow.ends is State.COMPLETED)
        inventory = await rig.inventory()
        assert set(inventory) <= {prepared.instance_id}
        there = inventory.get(prepared.instance_id, Found())
        assert_agreement(vnf.instantiated_vnf_info, there)
        assert not flow.roll_back or held(there) == prepared.before


def held(found: Found) -> list[tuple[str | None, ...]]:
    """What a rollback gives back; a stack's ports may have other ids then."""
    ports = [(one.name, port.name, port.network, port.address) for one in found.machines for port in one.ports]
    volumes = [(one.name, volume.id) for one in found.machines for volume in one.volumes]
    objects = [(one.id, one.digest) for one in found.objects]
    return [
        *sorted((one.id,) for one in found.machines if one.type is None),
        *sorted(ports),
        *sorted(volumes),
        *objects,
    ]


@pytest.fixture
def copied(request: pytest.FixtureRequest, database_url: URL) -> Iterator[Callable[[Settings, Path], Settings]]:
    """Copies a stopped Slipway: the data directory, and on PostgreSQL the database, too."""
    made: list[str] = []

    def copy(settings: Settings, directory: Path) -> Settings:
        shutil.copytree(settings.data_dir, directory)
        if settings.database_url is None:
            return settings_in(directory, lease_seconds=LEASE)
        made.append(f"crash_{uuid4().hex}")
        administer(database_url, f"CREATE DATABASE {made[-1]} TEMPLATE {database_url.database}")
        return settings_in(directory, setting(database_url.set(database=made[-1])), lease_seconds=LEASE)

    yield copy
    for name in made:
        administer(database_url, f"DROP DATABASE {name} WITH (FORCE)")


def administer(url: URL, statement: str) -> None:
    plain = url.set(database="postgres").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(statement.encode())
