"""A VNF changes to another package: its record and the packages follow, its machines stay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.model.action import Action, StepContext
from slipway.model.errors import BadRequest, Conflict, RequestError, StepError, Unprocessable
from slipway.model.hooks import EDGES, Edges, HookPlan
from slipway.model.instance import VimConnectionInfo
from slipway.model.machine import Outcome
from slipway.model.operation import OperationType, State
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
from tests.functional.agreement import assert_agreement
from tests.functional.next_package import NEXT_ID, onboard_next
from tests.functional.rig import SAMPLE, Rig, rig_in, settings_in

NEXT = NEXT_ID
CHANGE = ChangePackageRequest(vnfd_id=NEXT)
KIND = OperationType.CHANGE_VNFPKG


class Nothing(msgspec.Struct, frozen=True):
    pass


class Gate:
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
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def rig(tmp_path: Path, gate: Gate) -> AsyncIterator[Rig]:
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


async def test_the_record_follows_and_the_machines_stay(rig: Rig, gate: Gate, tmp_path: Path) -> None:
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


async def test_until_the_end_the_vnf_is_on_the_old_package_and_both_are_in_use(
    rig: Rig, gate: Gate, tmp_path: Path
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
    rig: Rig, gate: Gate, tmp_path: Path, decision: str
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
    for ask in (rig.slipway.lcm.begin, rig.slipway.lcm.preview):
        with pytest.raises(Unprocessable, match=f"^vnfdId: .*{said}"):
            await ask(KIND, instance_id, CHANGE)
    assert await used(rig) == {rig.vnfd_id: True, NEXT: False}


async def test_what_is_asked_at_the_wrong_time_is_refused(rig: Rig, tmp_path: Path) -> None:
    instance_id = await rig.create()
    await onboard_next(rig, SAMPLE, tmp_path, NEXT)

    async def refused(request: ChangePackageRequest) -> RequestError:
        with pytest.raises(RequestError) as caught:
            await rig.slipway.lcm.begin(KIND, instance_id, request)
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
