"""kill -9 at every step boundary of every operation on a cluster; and in the end all is as if nothing had been.

A life is killed at one edge of all steps, one after another: before each, after its work but before that is written
down, or after. Whoever starts next goes on, to be killed at the next step.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from slipway.model.errors import VimFault
from slipway.model.journal import UNTOUCHED
from slipway.model.operation import OperationType, State
from slipway.model.requests import AnyRequest, ChangePackageRequest, HealRequest, ModifyRequest
from slipway.settings import Settings
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.vim.fault_rules import Rule, RuleKind
from tests.databases import setting
from tests.drivers.stack import StackDriver
from tests.functional.cluster_crash_child import work_on_a_cluster
from tests.functional.cluster_rig import (
    CLUSTER,
    FORCEFUL,
    ClusterRig,
    back,
    cluster_rig,
    instantiate,
    instantiate_storage,
    out,
)
from tests.functional.lives import Place, one_life
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.registry_rig import a_registry, onboard_registry, outputs
from tests.functional.rig import SIMULATED_VIM, settings_in

LEASE = 0.4
EDGES = ("before", "worked", "after")

Request = Callable[[ClusterRig, str], Awaitable[AnyRequest]]


@dataclass(frozen=True)
class Flow:
    """`masters` 0: nothing stands before. `version`: of Kubernetes, before; `source`: where it comes from.

    `fails`: the host's script that fails, so that all is rolled back. `storage`: with a storage server.
    """

    kind: OperationType
    request: Request
    masters: int = 0
    version: str | None = None
    source: dict[str, Any] | None = None
    before: tuple[AnyRequest, ...] = ()
    broken: str | None = None
    fails: tuple[str, str] | None = None
    storage: bool = False
    registry: bool = False  # one stands beside the cluster


def just(request: AnyRequest) -> Request:
    async def given(rig: ClusterRig, instance_id: str) -> AnyRequest:
        return request

    return given


def healing(*slots: str) -> Request:
    async def given(rig: ClusterRig, instance_id: str) -> AnyRequest:
        return await rig.heal(instance_id, *slots)

    return given


def upgrading(to: str) -> Request:
    async def given(rig: ClusterRig, instance_id: str) -> AnyRequest:
        settings = rig.rig.slipway.settings
        await onboard_next(rig.rig, CLUSTER, settings.data_dir / "next", NEXT_ID, image=to)
        return ChangePackageRequest(vnfd_id=NEXT_ID)

    return given


def fetching(to: str) -> Request:
    async def given(rig: ClusterRig, instance_id: str) -> AnyRequest:
        settings = rig.rig.slipway.settings
        await onboard_next(rig.rig, CLUSTER, settings.data_dir / "next", NEXT_ID)
        named = {"k8s_cluster_installation_param": {"kubernetes_version": to}}
        return ChangePackageRequest(vnfd_id=NEXT_ID, additional_params=named)

    return given


async def a_registry_beside(rig: ClusterRig) -> str:
    directory = rig.rig.slipway.settings.data_dir / "registry"
    await onboard_registry(rig, directory, {})
    instance_id, _ = await a_registry(rig, users=[{"username": "me", "password": "x y z"}])
    return instance_id


async def registries(rig: ClusterRig, instance_id: str) -> list[dict[str, Any]]:
    (beside,) = set(await rig.rig.inventory()) - {instance_id}
    server = (await outputs(rig, beside))["server"]
    return [{"connection_type": 0, "server": server, "username": "me", "password": "x y z"}]


async def connecting(rig: ClusterRig, instance_id: str) -> AnyRequest:
    return instantiate(private_registry_connection_info=await registries(rig, instance_id))


async def modifying(rig: ClusterRig, instance_id: str) -> AnyRequest:
    given = {"private_registry_connection_info": await registries(rig, instance_id)}
    return ModifyRequest(vnf_configurable_properties=given)


PACKAGES = {"kind": "packages", "repository": "https://packages.example.com", "allow_unsigned": True}
INSTANTIATE, SCALE, HEAL = OperationType.INSTANTIATE, OperationType.SCALE, OperationType.HEAL
FLOWS = {
    "instantiate": Flow(INSTANTIATE, just(instantiate())),
    "instantiate three masters": Flow(INSTANTIATE, just(instantiate(3))),
    "scale out": Flow(SCALE, just(out(2)), masters=1),
    "scale in": Flow(SCALE, just(back(2)), masters=1, before=(out(2),)),
    "heal a worker": Flow(HEAL, healing("workerNode-1"), masters=1),
    "heal a dead worker": Flow(HEAL, healing("workerNode-1"), masters=1, broken="workerNode-1"),
    "heal a master": Flow(HEAL, healing("masterNode-0"), masters=3),
    "heal a dead master": Flow(HEAL, healing("masterNode-1"), masters=3, broken="masterNode-1"),
    "heal two masters": Flow(HEAL, healing("masterNode-0", "masterNode-2"), masters=3),
    "heal all": Flow(HEAL, just(HealRequest()), masters=1),
    "upgrade": Flow(OperationType.CHANGE_VNFPKG, upgrading("1.34.4"), masters=3, version="1.33.13"),
    "upgrade from packages": Flow(
        OperationType.CHANGE_VNFPKG, fetching("1.34.9"), masters=1, version="1.33.13", source=PACKAGES
    ),
    "connect registries": Flow(INSTANTIATE, connecting, registry=True),
    "modify registries": Flow(OperationType.MODIFY_INFO, modifying, masters=1, registry=True),
    "rollback of modified registries": Flow(
        OperationType.MODIFY_INFO, modifying, masters=1, registry=True, fails=("pull", "workerNode-1")
    ),
    "terminate": Flow(OperationType.TERMINATE, just(FORCEFUL), masters=1),
    "instantiate with storage": Flow(INSTANTIATE, just(instantiate_storage())),
    "heal the storage server": Flow(HEAL, healing("storageServer-0"), masters=1, storage=True),
    "scale out beside storage": Flow(SCALE, just(out(1)), masters=1, storage=True),
    "rollback of storage": Flow(INSTANTIATE, just(instantiate_storage()), fails=("nfs_server", "storageServer-0")),
    "rollback of instantiate": Flow(INSTANTIATE, just(instantiate(3)), fails=("join", "masterNode-2")),
    "rollback of scale out": Flow(SCALE, just(out(2)), masters=1, fails=("join", "workerNode-3")),
}
CRASH = pytest.mark.group(name="crash")
IN_MAKE_TEST = ("instantiate", "heal a master")
# Each kind of change of a stack. What the other flows do is done on nodes, by steps that are the same on every VIM.
ON_A_STACK = [
    "instantiate three masters",
    "scale in",
    "heal two masters",
    "upgrade",
    "terminate",
    "heal the storage server",
    "rollback of instantiate",
    "rollback of scale out",
]


@dataclass(frozen=True)
class Prepared:
    """A stopped Slipway just before a flow, to be copied for each life."""

    settings: Settings
    instance_id: str
    operation_id: str
    steps: tuple[str, ...]
    ends: State
    simulated: type[SimulatedDriver]
    beside: frozenset[str] = frozenset()


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in IN_MAKE_TEST else CRASH) for name in FLOWS])
async def test_killed_at_every_step_a_cluster_ends_as_it_should(name: str, tmp_path: Path) -> None:
    prepared = await prepare(FLOWS[name], settings_in(tmp_path / "prepared", lease_seconds=LEASE))
    await asyncio.gather(*(live(prepared, edge, prepared.settings, tmp_path) for edge in EDGES))


@CRASH
@pytest.mark.parametrize("name", ON_A_STACK)
async def test_killed_at_every_step_a_cluster_on_a_stack_ends_as_it_should(name: str, tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "prepared", lease_seconds=LEASE)
    prepared = await prepare(FLOWS[name], settings, StackDriver)
    await asyncio.gather(*(live(prepared, edge, prepared.settings, tmp_path) for edge in EDGES))


@CRASH
@pytest.mark.parametrize("name", FLOWS)
async def test_killed_after_every_work_on_postgresql_too(name: str, postgresql_url: URL, tmp_path: Path) -> None:
    url = setting(postgresql_url)
    prepared = await prepare(FLOWS[name], settings_in(tmp_path, url, lease_seconds=LEASE))
    deadly = frozenset(paths(prepared, "worked"))
    assert await one_life(work_on_a_cluster, prepared.settings, prepared.operation_id, deadly) == deadly
    await check(prepared.settings, prepared)


async def live(prepared: Prepared, edge: str, settings: Settings, spare: Path) -> None:
    """Lives until each place was deadly once: steps that end together may be written down together, and one kill after
    the first of them passes the others by.
    """
    left = frozenset(paths(prepared, edge))
    for number in itertools.count():
        own = copied(settings, spare / f"{edge}-{number}")
        working = partial(work_on_a_cluster, simulated=prepared.simulated)
        deaths = await one_life(working, own, prepared.operation_id, left)
        try:
            await check(own, prepared)
        except AssertionError as error:
            raise AssertionError(f"after kills {edge} {deaths}: {error}") from error
        if not (left := left - deaths):
            return
        assert deaths, f"never reached: {edge} {sorted(left)}"


def paths(prepared: Prepared, edge: str) -> list[Place]:
    more = {"before": [("before", "settle")], "worked": [], "after": [("after", "settle")]}[edge]
    if edge == "after" and prepared.ends is State.COMPLETED:
        more.append(("after", "plan"))
    return [*((edge, step) for step in prepared.steps), *more]


async def prepare(flow: Flow, settings: Settings, simulated: type[SimulatedDriver] = SimulatedDriver) -> Prepared:
    async with cluster_rig(settings, simulated=simulated) as rig:
        asked = {"kubernetes_version": flow.version, "source": flow.source}
        chosen = {name: value for name, value in asked.items() if value is not None}
        beside = frozenset({await a_registry_beside(rig)} if flow.registry else ())
        instance_id = await rig.rig.create()
        if flow.masters:
            wanted = instantiate_storage(**chosen) if flow.storage else instantiate(flow.masters, **chosen)
            await rig.completed(INSTANTIATE, instance_id, wanted)
        for request in flow.before:
            await rig.completed(SCALE, instance_id, request)
        if flow.broken:
            machine = (await rig.machines(instance_id))[flow.broken]
            await rig.rig.slipway.simulated.break_machine(SIMULATED_VIM, machine)
        request = await flow.request(rig, instance_id)
        if flow.fails:
            operation_id, steps = await fail(rig, flow, instance_id, request)
        else:
            steps = [
                step.id for step in (await rig.rig.slipway.lcm.preview_plan(flow.kind, instance_id, request)).steps
            ]
    async with cluster_rig(settings, working=False, simulated=simulated) as rig:
        if flow.fails:
            await rig.rig.slipway.lcm.roll_back(operation_id)
            return Prepared(settings, instance_id, operation_id, tuple(steps), State.ROLLED_BACK, simulated, beside)
        accepted = await rig.rig.slipway.lcm.start_operation(flow.kind, instance_id, request)
        return Prepared(settings, instance_id, accepted.id, tuple(steps), State.COMPLETED, simulated, beside)


async def fail(rig: ClusterRig, flow: Flow, instance_id: str, request: AnyRequest) -> tuple[str, list[str]]:
    """A host's script fails for good. The operation, and the steps that a rollback will undo."""
    script, slot = flow.fails or ("", "")
    await rig.rules(Rule(kind=RuleKind.ERROR, call="host", asked=script, machine=slot, fault=VimFault.PERMANENT))
    failed, _ = await rig.failed(flow.kind, instance_id, request)
    await rig.rules()
    return failed.id, [record.id for record in await rig.rig.journal(failed.id) if record.state not in UNTOUCHED]


async def check(settings: Settings, prepared: Prepared) -> None:
    async with cluster_rig(settings, working=False, simulated=prepared.simulated) as rig:
        operation = await rig.rig.rest(prepared.operation_id)
        assert operation.operation_state is prepared.ends, operation.error
        await rig.check(prepared.instance_id, prepared.beside)


def copied(settings: Settings, directory: Path) -> Settings:
    shutil.copytree(settings.data_dir, directory)
    return settings_in(directory, lease_seconds=LEASE)
