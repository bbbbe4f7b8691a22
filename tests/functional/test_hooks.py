"""Management drivers: hooks of the VNFD as steps around the VIM's work, with machines and secrets at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from slipway.model.action import Action, StepContext
from slipway.model.errors import StepError, Unprocessable
from slipway.model.hooks import EDGES, Edges, HookPlan
from slipway.model.machine import Outcome
from slipway.model.operation import OperationType, State
from slipway.model.plan import Plan, Step
from slipway.model.requests import (
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.model.situation import PlanningSituation, Situation
from slipway.store.tables import steps
from tests.functional.rig import Rig, rig_in, settings_in

TOKEN = "canary-token-of-the-cluster"
PASSWORD = "canary-password-of-the-caller"
ALL_HOOKS = [
    f"{operation}_{edge}=probe"
    for operation in ("instantiate", "scale", "heal", "terminate")
    for edge in ("start", "end")
]


class Greet(msgspec.Struct, frozen=True):
    machine: str
    name: str
    password: Any = None


class Probe:
    """Greets machines that come and those that go, and registers what it made on the instance."""

    name = "probe"
    aliases = ()

    def check(self, situation: Situation) -> None:
        pass

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str | None, Any]] = []
        self.refuse: set[str] = set()

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return (Action("probe.greet", Greet, self.greet, self.part, attempts=1),)

    def plan(self, operation: str, edges: Edges, situation: PlanningSituation) -> HookPlan:
        start, end = (self._at(f"{operation}_{edge}", situation) if edge in edges else Plan() for edge in EDGES)
        return HookPlan(start, end)

    def _at(self, hook: str, situation: PlanningSituation) -> Plan:
        before = {machine.id: machine.name for machine in situation.found.machines}
        target = situation.change.after
        after = {member.id: member.name for member in target.members} if target else {}
        chosen = (
            {id_: name for id_, name in after.items() if id_ not in before}
            if hook.endswith("_end")
            else {id_: name for id_, name in before.items() if id_ not in after}
        )
        password = situation.instance.parameters.get("password") or getattr(
            situation.request, "additional_params", {}
        ).get("password")
        return Plan.of(
            *(
                Step(
                    id=f"{hook} {name}",
                    action="probe.greet",
                    args={"machine": id_, "name": name, "password": password},
                    nodes=(name,),
                )
                for id_, name in chosen.items()
            )
        )

    async def greet(self, args: Greet, context: StepContext) -> Outcome:
        machine = await context.machine(args.machine)
        if args.name in self.refuse:
            raise StepError(f"{args.name} does not answer.", cure="knock louder.")
        self.heard.append(("greet", args.name, machine.ports[0].address, await context.decrypt_secrets(args.password)))
        info = {"accessInfo": {"bearer_token": TOKEN}, "vimType": "ETSINFV.KUBERNETES.V_1"}
        return Outcome(instance={"vimConnectionInfo": {"cluster": info}}, data={"join_token": TOKEN})

    async def part(self, args: Greet, context: StepContext) -> Outcome:
        self.heard.append(("part", args.name, None, None))
        return Outcome()


async def instantiated(rig: Rig) -> str:
    instance_id = await rig.create()
    request = InstantiateRequest(flavour_id="simple", additional_params={"password": PASSWORD})
    operation = await rig.run(OperationType.INSTANTIATE, instance_id, request)
    assert operation.operation_state is State.COMPLETED, operation.error
    return instance_id


async def test_hooks_come_before_and_after_the_vims_work_and_meet_the_right_machines(tmp_path: Path) -> None:
    driver = Probe()
    async with rig_in(settings_in(tmp_path), management=[driver], hooks=ALL_HOOKS) as rig:
        instance_id = await instantiated(rig)
        assert {name for _, name, _, _ in driver.heard} == {"masterNode-0", "workerNode-0", "workerNode-1"}
        assert all(address for _, _, address, _ in driver.heard)
        driver.heard.clear()
        out = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers")
        await rig.run(OperationType.SCALE, instance_id, out)
        assert [name for _, name, _, _ in driver.heard] == ["workerNode-2"]
        driver.heard.clear()
        back = ScaleRequest(type=ScaleType.SCALE_IN, aspect_id="workers")
        operation = await rig.run(OperationType.SCALE, instance_id, back)
        assert [name for _, name, _, _ in driver.heard] == ["workerNode-2"]
        journal = {record.id: record for record in await rig.journal(operation.id)}
        assert journal["remove machine workerNode-2"].after == ("scale_start workerNode-2",)
        driver.heard.clear()
        await rig.run(OperationType.HEAL, instance_id, HealRequest())
        assert len(driver.heard) == 6  # three that go, three that come
        driver.heard.clear()
        request = TerminateRequest(termination_type=TerminationType.FORCEFUL)
        await rig.run(OperationType.TERMINATE, instance_id, request)
        assert len(driver.heard) == 3


async def test_steps_see_secrets_in_clear_and_nothing_stores_them_so(tmp_path: Path) -> None:
    driver = Probe()
    async with rig_in(settings_in(tmp_path), management=[driver], hooks=ALL_HOOKS) as rig:
        instance_id = await instantiated(rig)
        assert {password for _, _, _, password in driver.heard} == {PASSWORD}
        cluster = (await rig.instance(instance_id)).vnf.vim_connection_info["cluster"]
        assert "$secret" in cluster.access_info["bearer_token"]
        stored = await rig.slipway.database.read(
            lambda c: [row.outcome for row in c.execute(select(steps.c.outcome)) if row.outcome]
        )
        assert any("join_token" in outcome.data for outcome in stored)
    for name, content in contents(tmp_path).items():
        assert TOKEN.encode() not in content, name
        assert PASSWORD.encode() not in content, name


def contents(directory: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


async def test_a_hook_that_fails_names_its_node_and_a_retry_greets_only_that_one(tmp_path: Path) -> None:
    driver = Probe()
    async with rig_in(settings_in(tmp_path), management=[driver], hooks=ALL_HOOKS) as rig:
        driver.refuse = {"workerNode-1"}
        instance_id = await rig.create()
        failed = await rig.run(OperationType.INSTANTIATE, instance_id, InstantiateRequest(flavour_id="simple"))
        assert failed.operation_state is State.FAILED_TEMP
        assert failed.error is not None
        assert "on workerNode-1" in failed.error.detail
        assert "knock louder" in failed.error.detail
        driver.refuse, driver.heard = set(), []
        await rig.slipway.lcm.retry(failed.id)
        assert (await rig.rest(failed.id)).operation_state is State.COMPLETED
        assert [name for _, name, _, _ in driver.heard] == ["workerNode-1"]


async def test_a_rollback_parts_from_those_that_were_greeted_before_their_machines_go(tmp_path: Path) -> None:
    driver = Probe()
    async with rig_in(settings_in(tmp_path), management=[driver], hooks=ALL_HOOKS) as rig:
        driver.refuse = {"workerNode-1"}
        instance_id = await rig.create()
        failed = await rig.run(OperationType.INSTANTIATE, instance_id, InstantiateRequest(flavour_id="simple"))
        await rig.slipway.lcm.roll_back(failed.id)
        assert (await rig.rest(failed.id)).operation_state is State.ROLLED_BACK
        assert {name for what, name, _, _ in driver.heard if what == "part"} >= {"masterNode-0", "workerNode-0"}
        assert (await rig.instance(instance_id)).vnf.vim_connection_info == {}
        assert await rig.inventory() == {}


async def test_a_vnfd_that_names_a_driver_we_do_not_have_is_refused_before_anything_begins(tmp_path: Path) -> None:
    async with rig_in(settings_in(tmp_path), hooks=["instantiate_end=somebody-else"]) as rig:
        instance_id = await rig.create()
        with pytest.raises(Unprocessable, match="somebody-else"):
            await rig.slipway.lcm.start_operation(
                OperationType.INSTANTIATE, instance_id, InstantiateRequest(flavour_id="simple")
            )
        assert await rig.inventory() == {}
