"""A VNF changes to another package: its record and the packages follow; machines that differ are made anew in turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.model.action import Action, StepContext
from slipway.model.descriptor import Descriptor
from slipway.model.errors import BadRequest, Conflict, RequestError, StepError, Unprocessable, VimFault
from slipway.model.hooks import EDGES, Edges, HookPlan
from slipway.model.instance import VimConnectionInfo
from slipway.model.machine import FoundMachine, Outcome
from slipway.model.operation import ChangeType, Operation, OperationType, State
from slipway.model.package import OperationalState, UsageState
from slipway.model.plan import Plan, Step
from slipway.model.requests import (
    ChangePackageRequest,
    HealRequest,
    InstantiateRequest,
    ScaleRequest,
    ScaleType,
    TerminateRequest,
    TerminationType,
)
from slipway.model.situation import Situation
from slipway.store import packages
from slipway.vim.fault_rules import Rule, RuleKind
from tests.functional.agreement import assert_agreement
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import SAMPLE, SIMULATED_VIM, Rig, rig_in, settings_in

NEXT = NEXT_ID
CHANGE = ChangePackageRequest(vnfd_id=NEXT)
KIND = OperationType.CHANGE_VNFPKG


class Nothing(msgspec.Struct, frozen=True):
    pass


class AuthMiddleware:
    """A step at each hook, which does not let pass when it is shut."""

    name, aliases = "gate", ()

    def __init__(self) -> None:
        self.shut = False
        self.heard: list[str] = []

    @property
    def actions(self) -> tuple[Action[Any], ...]:
        return (Action("gate.pass", Nothing, self.run, self.undo, attempts=1),)

    def check(self, situation: Situation) -> None:
        pass

    def plan(self, operation: str, edges: Edges, situation: Situation) -> HookPlan:
        self.heard += [f"{operation}_{edge}" for edge in EDGES if edge in edges]
        start, end = (
            Plan.of(Step(id=f"{operation}_{edge}", action="gate.pass")) if edge in edges else Plan() for edge in EDGES
        )
        return HookPlan(start, end)

    async def run(self, args: Nothing, context: StepContext) -> Outcome:
        if self.shut:
            raise StepError("The gate is shut.")
        return Outcome(instance={"metadata": {"passed": True}})

    async def undo(self, args: Nothing, context: StepContext) -> Outcome:
        return Outcome()


@pytest.fixture
def gate() -> AuthMiddleware:
    return AuthMiddleware()


@pytest.fixture
async def rig(tmp_path: Path, gate: AuthMiddleware) -> AsyncIterator[Rig]:
    async with rig_in(settings_in(tmp_path / "data"), management=[gate], hooks=()) as rig:
        yield rig


async def instantiated(rig: Rig, **params: Any) -> str:
    instance_id = await rig.create()
    request = InstantiateRequest(flavour_id="simple", additional_params=params)
    assert (await rig.run(OperationType.INSTANTIATE, instance_id, request)).operation_state is State.COMPLETED
    return instance_id


async def used(rig: Rig) -> dict[str | None, bool]:
    known = await rig.slipway.database.read(packages.list_all)
    return {package.vnfd_id: package.usage_state is UsageState.IN_USE for package in known}


async def disable(rig: Rig, vnfd_id: str) -> str:
    package_id = await rig.slipway.database.read(packages.id_of, vnfd_id)
    package = await rig.slipway.database.read(packages.get, package_id)
    disabled = msgspec.structs.replace(package, operational_state=OperationalState.DISABLED)
    await rig.slipway.database.write(packages.update, disabled)
    return package.id


async def test_the_record_follows_and_the_machines_stay(rig: Rig, gate: AuthMiddleware, tmp_path: Path) -> None:
    instance_id = await instantiated(rig, keep="this", replace={"a": 1, "b": 1})
    out = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers")
    await rig.run(OperationType.SCALE, instance_id, out)
    before = (await rig.instance(instance_id)).vnf
    hooks = ["change_current_package_start=gate", "change_current_package_end=gate"]
    await onboard_next(rig, SAMPLE, tmp_path, NEXT, hooks=hooks)
    request = ChangePackageRequest(
        vnfd_id=NEXT,
        additional_params={"replace": {"a": None, "c": 2}},
        extensions={"e": 1},
        vnf_configurable_properties={"p": 2},
    )
    operation = await rig.run(KIND, instance_id, request)
    assert operation.operation_state is State.COMPLETED, operation.error
    assert gate.heard == ["change_current_package_start", "change_current_package_end"]
    instance = await rig.instance(instance_id)
    vnf, info = instance.vnf, instance.vnf.instantiated_vnf_info
    assert (vnf.vnfd_id, vnf.vnfd_version, vnf.vnf_software_version) == (NEXT, "2.0", "2.0")
    assert instance.parameters == {"keep": "this", "replace": {"b": 1, "c": 2}}
    assert (vnf.extensions, vnf.metadata) == ({"e": 1}, {"passed": True})
    assert vnf.vnf_configurable_properties["p"] == 2
    assert info == before.instantiated_vnf_info
    assert operation.resource_changes is None
    assert operation.modifications_triggered_by_vnf_pkg_change == {
        "vnfdId": NEXT,
        "vnfdVersion": "2.0",
        "vnfSoftwareVersion": "2.0",
        "extensions": {"e": 1},
        "metadata": {"passed": True},
        "vnfConfigurableProperties": vnf.vnf_configurable_properties,
    }
    assert await used(rig) == {rig.vnfd_id: False, NEXT: True}
    for kind, then in ((OperationType.SCALE, out), (OperationType.HEAL, HealRequest())):
        assert (await rig.run(kind, instance_id, then)).operation_state is State.COMPLETED
    assert_agreement((await rig.instance(instance_id)).vnf.instantiated_vnf_info, (await rig.inventory())[instance_id])


def larger_workers(descriptor: Descriptor) -> Descriptor:
    flavour = descriptor.flavours["simple"]
    worker = msgspec.structs.replace(flavour.vdus["workerNode"], flavour="m1.huge")
    vdus = {**flavour.vdus, "workerNode": worker}
    return msgspec.structs.replace(descriptor, flavours={"simple": msgspec.structs.replace(flavour, vdus=vdus)})


async def machines(rig: Rig, instance_id: str) -> dict[str, FoundMachine]:
    return {one.name: one for one in (await rig.inventory())[instance_id].machines}


async def agreed(rig: Rig, instance_id: str) -> None:
    assert_agreement((await rig.instance(instance_id)).vnf.instantiated_vnf_info, (await rig.inventory())[instance_id])


async def half_way(rig: Rig, instance_id: str, tmp_path: Path) -> Operation:
    """The first worker is made anew, the second can't be."""
    await onboard_next(rig, SAMPLE, tmp_path, NEXT, hooks=(), change=larger_workers)
    fault = Rule(call="make_machine", machine="workerNode-1", kind=RuleKind.ERROR, fault=VimFault.QUOTA)
    await rig.slipway.simulated.set_rules(SIMULATED_VIM, [fault])
    operation = await rig.run(KIND, instance_id, CHANGE)
    assert operation.operation_state is State.FAILED_TEMP
    await rig.slipway.simulated.clear(SIMULATED_VIM)
    now = await machines(rig, instance_id)
    assert now.keys() == {"masterNode-0", "workerNode-0"}
    assert now["workerNode-0"].flavour == "m1.huge"
    return operation


async def test_vnfcs_that_differ_are_made_anew_where_they_were(rig: Rig, tmp_path: Path) -> None:
    instance_id = await instantiated(rig)
    before = await machines(rig, instance_id)
    await onboard_next(rig, SAMPLE, tmp_path, NEXT, hooks=(), change=larger_workers)
    operation = await rig.run(KIND, instance_id, CHANGE)
    assert operation.operation_state is State.COMPLETED, operation.error
    journal = sorted(await rig.journal(operation.id), key=lambda step: step.ended_at or 0.0)
    assert [step.id for step in journal] == [
        "remove machine workerNode-0",
        "make machine workerNode-0",
        "remove machine workerNode-1",
        "make machine workerNode-1",
    ]
    after = await machines(rig, instance_id)
    assert after["masterNode-0"] == before["masterNode-0"]
    for slot in ("workerNode-0", "workerNode-1"):
        old, new = before[slot], after[slot]
        assert (new.id != old.id, new.flavour) == (True, "m1.huge")
        assert (new.ports, new.volumes) == (old.ports, old.volumes), "addresses and data are kept"
    assert operation.resource_changes is not None
    assert [(one.vdu_id, one.change_type) for one in operation.resource_changes.affected_vnfcs] == [
        ("workerNode", ChangeType.REMOVED),
        ("workerNode", ChangeType.REMOVED),
        ("workerNode", ChangeType.ADDED),
        ("workerNode", ChangeType.ADDED),
    ]
    await agreed(rig, instance_id)


async def test_a_rollback_makes_the_vnfcs_again_that_were_there(rig: Rig, tmp_path: Path) -> None:
    instance_id = await instantiated(rig)
    before, record = await machines(rig, instance_id), (await rig.instance(instance_id)).vnf
    operation = await half_way(rig, instance_id, tmp_path)
    await rig.slipway.lcm.roll_back(operation.id)
    ended = await rig.rest(operation.id)
    assert ended.operation_state is State.ROLLED_BACK
    after = await machines(rig, instance_id)
    assert {slot: (one.id, one.flavour, one.ports, one.volumes) for slot, one in after.items()} == {
        slot: (one.id, one.flavour, one.ports, one.volumes) for slot, one in before.items()
    }
    vnf = (await rig.instance(instance_id)).vnf
    assert vnf.vnfd_id == record.vnfd_id
    assert ended.resource_changes is not None
    assert {one.change_type for one in ended.resource_changes.affected_vnfcs} == {ChangeType.MODIFIED}
    await agreed(rig, instance_id)


async def test_a_retry_goes_on_with_the_vnfc_that_failed(rig: Rig, tmp_path: Path) -> None:
    instance_id = await instantiated(rig)
    operation = await half_way(rig, instance_id, tmp_path)
    first = (await machines(rig, instance_id))["workerNode-0"]
    await rig.slipway.lcm.retry(operation.id)
    assert (await rig.rest(operation.id)).operation_state is State.COMPLETED
    after = await machines(rig, instance_id)
    assert after["workerNode-0"] == first
    assert after["workerNode-1"].flavour == "m1.huge"
    await agreed(rig, instance_id)


async def test_after_fail_a_heal_makes_what_is_missing_and_the_change_can_be_asked_for_again(
    rig: Rig, tmp_path: Path
) -> None:
    instance_id = await instantiated(rig)
    operation = await half_way(rig, instance_id, tmp_path)
    await rig.slipway.lcm.fail(operation.id)
    assert (await rig.instance(instance_id)).vnf.vnfd_id == rig.vnfd_id
    with pytest.raises(Unprocessable, match="the VNF has 1; scale or heal it first"):
        await rig.slipway.lcm.start_operation(KIND, instance_id, CHANGE)
    for kind, request in ((OperationType.HEAL, HealRequest()), (KIND, CHANGE)):
        assert (await rig.run(kind, instance_id, request)).operation_state is State.COMPLETED
        await agreed(rig, instance_id)
    assert (await machines(rig, instance_id))["workerNode-1"].flavour == "m1.huge"


async def test_until_the_end_the_vnf_is_on_the_old_package_and_both_are_in_use(
    rig: Rig, gate: AuthMiddleware, tmp_path: Path
) -> None:
    instance_id = await instantiated(rig)
    await onboard_next(rig, SAMPLE, tmp_path, NEXT, hooks=["change_current_package_end=gate"])
    gate.shut = True
    operation = await rig.run(KIND, instance_id, ChangePackageRequest(vnfd_id=NEXT, additional_params={"a": 1}))
    assert operation.operation_state is State.FAILED_TEMP
    assert await used(rig) == {rig.vnfd_id: True, NEXT: True}
    new = await disable(rig, NEXT)
    with pytest.raises(Conflict, match=f"in use by VNF instances \\({instance_id}\\)"):
        await rig.slipway.database.write(packages.delete, new)
    gate.shut = False
    await rig.slipway.lcm.retry(operation.id)
    assert (await rig.rest(operation.id)).operation_state is State.COMPLETED
    assert (await rig.instance(instance_id)).vnf.vnfd_id == NEXT
    assert await used(rig) == {rig.vnfd_id: False, NEXT: True}
    await rig.slipway.database.write(packages.delete, await disable(rig, rig.vnfd_id))


@pytest.mark.parametrize("decision", ["roll_back", "fail"])
async def test_rolled_back_or_given_up_it_is_on_the_package_it_had(
    rig: Rig, gate: AuthMiddleware, tmp_path: Path, decision: str
) -> None:
    instance_id = await instantiated(rig, keep="this")
    before = await rig.instance(instance_id)
    await onboard_next(rig, SAMPLE, tmp_path, NEXT, hooks=["change_current_package_end=gate"])
    gate.shut = True
    operation = await rig.run(KIND, instance_id, ChangePackageRequest(vnfd_id=NEXT, additional_params={"a": 1}))
    await getattr(rig.slipway.lcm, decision)(operation.id)
    ended = await rig.rest(operation.id)
    assert ended.operation_state in (State.ROLLED_BACK, State.FAILED)
    assert ended.modifications_triggered_by_vnf_pkg_change is None
    after = await rig.instance(instance_id)
    assert (after.vnf, after.parameters) == (before.vnf, before.parameters)
    assert await used(rig) == {rig.vnfd_id: True, NEXT: False}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"provider: Slipway": "provider: Other"}, "choose a package of the same product"),
        (
            {
                "flavour_id: simple": "flavour_id: tiny",
                "[simple, ha]": "[tiny, ha]",
                "default: simple": "default: tiny",
            },
            f"the VNF has the flavour 'simple', and the VNFD '{NEXT}' only: tiny, ha",
        ),
        ({"workerNode": "minion"}, "no VDU 'workerNode', of which the VNF has machines; it has: masterNode, minion"),
        ({"max_scale_level: 10": "max_scale_level: 4"}, "levels 0 to 4 of aspect 'workers', and the VNF is at 5"),
        ({"number_of_instances: 2": "number_of_instances: 3"}, "8 members of VDU 'workerNode' .* the VNF has 7"),
    ],
)
async def test_a_package_that_cant_take_the_vnf_over_is_refused(
    rig: Rig, tmp_path: Path, words: dict[str, str], said: str
) -> None:
    instance_id = await instantiated(rig)
    out = ScaleRequest(type=ScaleType.SCALE_OUT, aspect_id="workers", number_of_steps=5)
    await rig.run(OperationType.SCALE, instance_id, out)
    await onboard_next(rig, SAMPLE, tmp_path, NEXT, words=words)
    for ask in (rig.slipway.lcm.start_operation, rig.slipway.lcm.preview_plan):
        with pytest.raises(Unprocessable, match=f"^vnfdId: .*{said}"):
            await ask(KIND, instance_id, CHANGE)
    assert await used(rig) == {rig.vnfd_id: True, NEXT: False}


async def test_what_is_asked_at_the_wrong_time_is_refused(rig: Rig, tmp_path: Path) -> None:
    instance_id = await rig.create()
    await onboard_next(rig, SAMPLE, tmp_path, NEXT)

    async def refused(request: ChangePackageRequest) -> RequestError:
        with pytest.raises(RequestError) as caught:
            await rig.slipway.lcm.start_operation(KIND, instance_id, request)
        return caught.value

    assert isinstance(await refused(CHANGE), Conflict)
    await rig.run(OperationType.INSTANTIATE, instance_id, InstantiateRequest(flavour_id="simple"))
    assert "no onboarded VNF package" in (await refused(ChangePackageRequest(vnfd_id="nobody's"))).detail
    elsewhere = {"vim": VimConnectionInfo(vim_id="another")}
    refusal = await refused(ChangePackageRequest(vnfd_id=NEXT, vim_connection_info=elsewhere))
    assert isinstance(refusal, BadRequest)
    assert "does not bring the VNF to another VIM" in refusal.detail
    await disable(rig, NEXT)
    assert "is DISABLED" in (await refused(CHANGE)).detail
    forceful = TerminateRequest(termination_type=TerminationType.FORCEFUL)
    assert (await rig.run(OperationType.TERMINATE, instance_id, forceful)).operation_state is State.COMPLETED
