"""An update of a stack that stands: what happens to its servers before Heat is told, and after Heat refuses."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any, TypeVar, cast

import msgspec
import pytest
from msgspec.structs import replace

from slipway.model.errors import StepError, VimError, VimFault
from slipway.model.machine import Found, FoundObject, FoundPort, FoundVolume, Outcome
from slipway.model.target import Change, Renewal, VnfcMember
from slipway.vim.openstack import heat
from slipway.vim.openstack.cloud import Cloud, for_each
from slipway.vim.openstack.heat import Stack
from slipway.vim.openstack.hot_template import GROUP, PORT, SERVER, STACK, VOLUME
from slipway.vim.openstack.stack_change import ChangeStack, digest_of
from slipway.vim.openstack.stack_spec import FileRef, StackSpec
from slipway.vim.openstack.stack_steps import steps_of
from tests.unit.vim.openstack_targets import INSTANCE, flavour, target
from tests.unit.vim.openstack_targets import member as member_of
from tests.unit.vim.test_openstack_stack_step import ONE, REPLACE, OneStack, member, run, standing_machine

T = TypeVar("T")


async def test_a_server_that_took_the_place_of_another_is_replaced_again_on_the_way_back() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    made = await run(cloud, REPLACE)
    assert [(one.id, one.resource_id) for one in made.machines] == [("vnfc-9", "work-0 anew")]
    assert made.removed == ("vnfc-0",)
    for _ in range(2):  # the second time there is nothing to do
        back = await run(cloud, REPLACE, undo=True)
        assert [(one.id, one.resource_id) for one in back.machines] == [("vnfc-0", "work-0 anew anew")]
        assert back.removed == ("vnfc-9",)
    assert cloud.calls.count("PUT /stacks/vnf-i/1") == 2


async def test_a_replacement_that_was_killed_after_its_mark_is_taken_back() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    cloud.marked = True
    back = await run(cloud, REPLACE, undo=True)
    assert [(one.id, one.resource_id) for one in back.machines] == [("vnfc-0", "work-0 anew")]


async def test_a_mark_of_an_operation_that_was_given_up_costs_no_server_in_the_next_one() -> None:
    """Nor does a check of the stack that found a server stopped: whatever Heat has so, an update makes anew."""
    cloud = OneStack("UPDATE_COMPLETE")
    cloud.marked = True
    other = replace(REPLACE, members=(member(0, "work-0"),), renewed=())
    assert [one.resource_id for one in (await run(cloud, other)).machines] == ["work-0"]


async def test_the_way_back_from_a_heal_of_all_that_only_marked_leaves_ports_and_volumes() -> None:
    class Marked(OneStack):
        """The server's volume is marked, too."""

        def _said(self, path: str) -> dict[str, Any]:
            said = super()._said(path)
            if path.endswith("/resources"):
                volume = {"resource_name": "work-0:data", "resource_type": VOLUME, "physical_resource_id": "data"}
                said["resources"].append({**self._server(), "resource_status": "CHECK_FAILED", **volume})
            return said

        async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
            if "mark_unhealthy" in (json or {}):
                marks[path.rpartition("/")[2]] = json["mark_unhealthy"]
            await super().call(service, method, path, json=json, secrets=secrets)

    marks: dict[str, bool] = {}
    await run(Marked("UPDATE_COMPLETE"), replace(REPLACE, held=("data",)), undo=True)
    assert marks == {"work-0%3Adata": False}


async def test_after_a_call_that_failed_no_other_of_its_kind_begins() -> None:
    """Marks are taken back when one is refused: none may come after that."""
    begun: list[int] = []

    async def mark(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(0)
        if number == 3:
            raise VimError("refused", VimFault.PERMANENT)

    with pytest.raises(VimError, match="refused"):
        await for_each(range(100), mark)
    known = list(begun)
    for _ in range(100):
        await asyncio.sleep(0)
    assert begun == known


@pytest.mark.parametrize("fault", [VimFault.PERMANENT, VimFault.QUOTA, VimFault.AUTH])
async def test_a_replacement_that_heat_refuses_leaves_no_mark_for_the_next_operation(fault: VimFault) -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    cloud.refused, cloud.fault = {"/stacks/vnf-i/1"}, fault
    with pytest.raises(VimError, match="refused"):
        await run(cloud, REPLACE)
    assert [call for call in cloud.calls if call.startswith("PATCH")] == ["PATCH /stacks/vnf-i/1/resources/work-0"] * 2
    assert not cloud.marked
    back = await run(cloud, REPLACE, undo=True)
    assert [(one.id, one.resource_id) for one in back.machines] == [("vnfc-0", "work-0")]


async def test_what_heat_would_refuse_is_known_before_anything_is_stopped_marked_or_removed() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    cloud.refused = {"/stacks/vnf-i/1/preview"}
    with pytest.raises(VimError, match="preview: refused"):
        await run(cloud, replace(REPLACE, stopped=("work-0",), grace_seconds=5))
    assert [call for call in cloud.calls if not call.startswith("GET")] == ["PUT /stacks/vnf-i/1/preview"]


@pytest.mark.parametrize("fault", [VimFault.AUTH, VimFault.TEMPORARY])
async def test_a_cloud_that_shows_no_previews_is_updated_all_the_same(fault: VimFault) -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    cloud.refused, cloud.fault = {"/stacks/vnf-i/1/preview"}, fault
    assert [one.resource_id for one in (await run(cloud, REPLACE)).machines] == ["work-0 anew"]


async def test_the_cause_of_a_heal_is_heats_reason_for_the_mark() -> None:
    machine = standing_machine("base-0")
    before = target(flavour(), members=["base-0"])
    change = Change(
        instance_id=INSTANCE,
        version=1,
        inventory=Found(machines=(machine,)),
        before=before,
        after=dataclasses.replace(before, members=(VnfcMember(id="new", vdu="base", slot=0),)),
        renewal=Renewal(members=frozenset({machine.id}), cause="silent since noon"),
    )
    stack = FoundObject(id="1", kind=STACK, name="vnf-i", digest="before")
    (step,) = steps_of(change, Found(machines=(machine,), objects=(stack,))).steps
    planned = msgspec.convert(step.args, ChangeStack)
    assert planned.renewed == (machine.resource_id,)
    cloud = OneStack("UPDATE_COMPLETE")
    await run(cloud, replace(REPLACE, reason=planned.reason))
    assert cloud.reason == "silent since noon"


async def test_without_a_body_to_update_with_no_server_is_marked() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    missing = StackSpec(vnfd_id="vnfd", top=FileRef("BaseHOT/simple/top.yaml", "0"))
    with pytest.raises(StepError, match="No file BaseHOT"):
        await run(cloud, replace(REPLACE, after=missing))
    assert [call for call in cloud.calls if not call.startswith("GET")] == []


async def test_ports_of_a_server_that_is_gone_are_made_anew_with_it_if_that_is_asked() -> None:
    class Gone(OneStack):
        """Nova has no server any more, and so Neutron has its port on none."""

        def _said(self, path: str) -> dict[str, Any]:
            if path == "/ports":
                return {"ports": [{"id": "port-0", "device_id": ""}]}
            said = super()._said(path)
            if path.endswith("/resources"):
                port = {"resource_name": "work-0:cp", "resource_type": PORT, "physical_resource_id": "port-0"}
                said["resources"].append({**self._server(), **port})
            return {"servers": []} if path == "/servers/detail" else said

        async def find(self, service: str, path: str, kind: type[T]) -> T | None:
            return None

    cloud = Gone("UPDATE_COMPLETE")
    await run(cloud, replace(REPLACE, after=ONE, held=("port-0",)))
    marked = [call.rpartition("/")[2] for call in cloud.calls if call.startswith("PATCH")]
    assert marked == ["work-0", "work-0%3Acp"]


def test_a_heal_of_all_of_a_vnfc_names_its_ports_and_volumes_as_the_record_has_them() -> None:
    port, volume = FoundPort(id="p", name="base_cp", resource_id="p"), FoundVolume(id="v", name="data", resource_id="v")
    theirs = FoundPort(id="q", name="base_cp", resource_id="q", existing=True)
    machines = (standing_machine("base-0", ports=(port, theirs), volumes=(volume,)), standing_machine("work-0"))
    before = target(flavour(), members=["base-0", "work-0"])
    stack = FoundObject(id="1", kind=STACK, name="vnf-i", digest="before")
    change = Change(
        instance_id=INSTANCE,
        version=1,
        inventory=Found(machines=machines),
        before=before,
        after=dataclasses.replace(before, members=(VnfcMember(id="new", vdu="base", slot=0), member_of("work-0"))),
        renewal=Renewal(members=frozenset({"id of base-0"}), everything=True),
    )
    (step,) = steps_of(change, Found(machines=machines, objects=(stack,))).steps
    args = msgspec.convert(step.args, ChangeStack)
    assert (args.renewed, args.held) == (("server base-0",), ("p", "v"))


@pytest.mark.parametrize("everything", [True, False])
def test_a_heal_of_the_whole_makes_a_stack_again_that_somebody_deleted(everything: bool) -> None:
    machines = (standing_machine("base-0"), standing_machine("work-0"))
    before = target(flavour(), members=["base-0", "work-0"])
    new = tuple(VnfcMember(id=f"new {one.vdu}", vdu=one.vdu, slot=0) for one in machines)
    change = Change(
        instance_id=INSTANCE,
        version=1,
        inventory=Found(machines=machines),
        before=before,
        after=dataclasses.replace(before, members=new),
        renewal=Renewal(members=frozenset(one.id for one in machines), everything=everything),
    )
    (step,) = steps_of(change, Found(machines=machines)).steps
    args = msgspec.convert(step.args, ChangeStack)
    assert (args.recreated, args.renewed) == ("", ())
    stack = FoundObject(id="1", kind=STACK, name="vnf-i", digest="before")
    (step,) = steps_of(change, Found(machines=machines, objects=(stack,))).steps
    assert msgspec.convert(step.args, ChangeStack).recreated == ("1" if everything else None)


async def test_parameters_that_only_heat_has_are_kept_by_an_update_that_says_which_go() -> None:
    cloud = OneStack("UPDATE_COMPLETE")
    stack = Stack("1", "vnf-i", "UPDATE_COMPLETE", "", None)
    await heat.update(cast("Cloud", cloud), stack, {"template": {}, "clear_parameters": ["old"]}, "digest", ())
    assert cloud.calls == ["PATCH /stacks/vnf-i/1"]


GROUPED = StackSpec(
    template={"resources": {"workers": {"type": GROUP, "properties": {"resource": {"type": "work.yaml"}}}}}
)
OTHER_IMAGE = StackSpec(
    template={"resources": {"workers": {"type": GROUP, "properties": {"resource": {"type": "next.yaml"}}}}}
)


class OneGroup(OneStack):
    """Whose members failed, or did not. `told`: what each update says of a member."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.told: list[dict[str, Any]] = []

    async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
        await super().call(service, method, path, json=json, secrets=secrets)
        if method == "PUT" and path.startswith("/stacks"):
            self.told.append(json["template"]["resources"]["workers"]["properties"]["resource"])

    def _said(self, path: str) -> dict[str, Any]:
        said = super()._said(path)
        group = {"resource_name": "workers", "resource_type": GROUP, "resource_status": self.status}
        link = {"rel": "stack", "href": "http://heat/v1/p/stacks/vnf-i/1"}
        if path.endswith("/resources"):
            said["resources"].append({**group, "physical_resource_id": "g", "links": [link]})
        return said


async def test_the_way_back_is_something_new_to_a_group_whose_update_failed() -> None:
    """Else Heat, which remembers what the group was before that, leaves the member that failed as it is."""
    change = ChangeStack(
        before=GROUPED, after=OTHER_IMAGE, members=(member(0, "work-0"),), former=(member(0, "work-0"),)
    )
    cloud = OneGroup("UPDATE_FAILED")
    await run(cloud, change, undo=True)
    cloud.status, cloud.digest = "UPDATE_FAILED", digest_of(OTHER_IMAGE)
    await run(cloud, change, undo=True)
    first, second = cloud.told
    assert (first["type"], second["type"]) == ("work.yaml", "work.yaml")
    assert first["metadata"] != second["metadata"]
    cloud = OneGroup("UPDATE_COMPLETE")
    await run(cloud, change)
    assert cloud.told == [{"type": "next.yaml"}]


class FailedMembers(OneStack):
    """A group of `failed`, whose update failed, and `well`; and of `half`, which was never made and is no VNFC.

    `marks`: what each member was told last.
    """

    def __init__(self) -> None:
        super().__init__("UPDATE_FAILED")
        self.marks: dict[str, list[bool]] = {}

    async def call(self, service: str, method: str, path: str, *, json: Any = None, secrets: Any = ()) -> None:
        if "mark_unhealthy" in (json or {}):
            self.marks.setdefault(path.rpartition("/")[2], []).append(json["mark_unhealthy"])
        else:
            await super().call(service, method, path, json=json, secrets=secrets)

    def _said(self, path: str) -> dict[str, Any]:
        if not path.endswith("/resources"):
            return (
                {"servers": [{"id": one, "status": "ACTIVE"} for one in ("s-failed", "s-well")]}
                if (path == "/servers/detail")
                else super()._said(path)
            )
        of = {"failed": "UPDATE_FAILED", "well": "CREATE_COMPLETE", "half": "CREATE_FAILED"}
        listed = [("workers", GROUP, "g", "UPDATE_FAILED", "vnf-i/1")]
        listed += [(one, "work.yaml", one, status, "group/g") for one, status in of.items()]
        listed += [("work", SERVER, f"s-{one}", "CREATE_COMPLETE", f"x/{one}") for one in ("failed", "well")]
        return {
            "resources": [
                {
                    "resource_name": name, "resource_type": type_, "physical_resource_id": id_,
                    "resource_status": status, "links": [{"rel": "stack", "href": f"http://heat/v1/p/stacks/{stack}"}],
                }
                for name, type_, id_, status, stack in listed
            ]
        }  # fmt: skip


async def test_a_member_that_failed_before_does_not_go_in_the_place_of_the_one_that_was_chosen() -> None:
    """Of members that failed Heat takes the oldest: `well`, which is marked to go, would stay."""
    members = [
        replace(member(0, f"s-{one}"), id=one, name=one, top="workers", group=True) for one in ("failed", "well")
    ]
    change = ChangeStack(
        before=GROUPED, after=OTHER_IMAGE, members=(members[0],), former=tuple(members), leaving=("s-well",)
    )
    cloud = FailedMembers()
    await run(cloud, change)
    assert cloud.marks == {"failed": [True, False], "well": [True]}


async def test_a_group_whose_members_have_empty_metadata_is_touched_as_well() -> None:
    empty = {"type": "work.yaml", "metadata": None}
    group = {"workers": {"type": GROUP, "properties": {"resource": empty}}}
    change = ChangeStack(before=ONE, after=StackSpec(template={"resources": group}), members=(member(0, "work-0"),))
    cloud = OneGroup("UPDATE_FAILED")
    await run(cloud, change)
    assert "slipway_touched" in cloud.told[0]["metadata"]


async def test_a_rollback_needs_nothing_of_user_data_whose_answer_was_refused() -> None:
    """What it had set before and Heat hides stays with Heat."""
    current = {"template": ONE.template, "parameters": {"colour": "red", "secret": "******"}}
    hostile = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "http://elsewhere/x.yaml"}}}
    answer = {"template": hostile, "parameters": {"colour": "blue", "added": 1}}
    cloud, told = OneStack("UPDATE_COMPLETE"), list[dict[str, Any]]()
    cloud.digest, cloud.heard = "another", told.append
    outcomes = {"read": Outcome(data={"stack": current}), "user data": Outcome(data={"stack": answer})}
    change = replace(REPLACE, user_data=("read", "user data"), renewed=())
    await run(cloud, change, undo=True, outcomes=outcomes)
    assert "PATCH /stacks/vnf-i/1" in cloud.calls
    (body,) = told
    assert (body["parameters"], body["clear_parameters"]) == ({"colour": "red"}, ("added",))
