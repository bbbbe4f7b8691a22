"""Another package on OpenStack: which servers each update of the stack makes anew, and how an update is taken back."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
from msgspec.structs import replace

from slipway.model.descriptor import Flavour
from slipway.model.machine import Found, FoundMachine, FoundPort, FoundVolume
from slipway.model.plan import Plan, Step
from slipway.model.target import Change, Renewal, VnfcMember, VnfTarget
from slipway.vim.openstack.answers import Port, Server
from slipway.vim.openstack.heat import Stack, StackResource
from slipway.vim.openstack.hot_template import PORT, SERVER
from slipway.vim.openstack.stack_change import (
    CHANGE_STACK,
    FOLLOWING_CHANGE,
    ChangeStack,
    as_args,
    digest_of,
    whole_change,
)
from slipway.vim.openstack.stack_state import StackState, surplus
from slipway.vim.openstack.stack_steps import steps_of
from slipway.vim.openstack.stack_update import replacement_servers
from tests.unit.vim.openstack_hots import GROUPS, INDEXED, groups_flavour, indexed_flavour
from tests.unit.vim.openstack_targets import INSTANCE, fixed, flavour, image, link, target


def with_image(made_of: Flavour, vdu: str, name: str) -> Flavour:
    return replace(made_of, vdus={**made_of.vdus, vdu: replace(made_of.vdus[vdu], image=image(name))})


def standing(before: VnfTarget) -> Found:
    machines = tuple(_standing(before, one) for one in before.members)
    return Found(machines=machines, ports=tuple(port for one in machines for port in one.ports))


def _standing(before: VnfTarget, member: VnfcMember) -> FoundMachine:
    vdu = before.flavour.vdus[member.vdu]
    points = (cp.name for cp in before.flavour.connection_points.values() if cp.vdu == member.vdu)
    return FoundMachine(
        id=member.id,
        name=member.name,
        vdu=member.vdu,
        resource_id=f"server of {member.name}",
        ready=True,
        image=vdu.image.name if vdu.image else None,
        flavour=vdu.flavour,
        ports=tuple(FoundPort(id=f"port {cp} of {member.name}", name=cp, resource_id="p") for cp in points),
        volumes=tuple(FoundVolume(id=f"{name} of {member.name}", name=name, resource_id="v") for name in vdu.storages),
    )


def change(before: VnfTarget, after: VnfTarget, *vdus: str) -> Change:
    """Machines of those VDUs are made anew, one after another."""
    members = tuple(replace(one, id=f"new {one.id}") if one.vdu in vdus else one for one in after.members)
    renewed = [one for one in before.members if one.vdu in vdus]
    return Change(
        instance_id=INSTANCE,
        version=2,
        inventory=standing(before),
        before=before,
        after=dataclasses.replace(after, vnfd_id="next", members=members),
        renewal=Renewal(members=frozenset(one.id for one in renewed), reversible=True),
        batches=tuple((one.name,) for one in renewed),
    )


def steps(before: VnfTarget, after: VnfTarget, *vdus: str) -> Plan:
    return with_whole_changes(steps_of(change(before, after, *vdus), standing(before)).checked())


def with_whole_changes(plan: Plan) -> Plan:
    """Each change of the stack as its action sees it; a plan has only what differs from the one before it."""
    journal = {step.id: step.args for step in plan.steps}
    return Plan(
        tuple(
            replace(step, action=CHANGE_STACK, args=as_args(whole_change(step.args, journal.__getitem__)))
            if step.action in (CHANGE_STACK, FOLLOWING_CHANGE)
            else step
            for step in plan.steps
        )
    )


def args(step: Step) -> ChangeStack:
    return msgspec.convert(step.args, ChangeStack)


def images(step: Step) -> dict[str, str]:
    """By server, in a generated template."""
    after = args(step).after
    assert after is not None
    assert after.template is not None
    resources = after.template["resources"]
    return {name: one["properties"]["image"] for name, one in resources.items() if one["type"] == SERVER}


def told(step: Step, *names: str) -> list[Any]:
    """The images that a template of the package is told of."""
    after = args(step).after
    assert after is not None
    return [after.parameters["nfv"]["VDU"][name]["vcImageId"] for name in names]


def indexed(made_of: Flavour, files: dict[str, str] | None = None) -> VnfTarget:
    links = (
        link("VDU1_CP1", *(fixed(f"192.0.2.1{slot}") for slot in range(3)), network="net0"),
        link("VDU2_CP1", network="net1"),
    )
    return target(made_of, files=files or INDEXED, links=links)


def groups(made_of: Flavour) -> VnfTarget:
    links = (
        link("masterNode_CP1", network="net0"),
        link("workerNode_CP2", network="net0"),
        link("storage_CP", fixed("192.0.2.9"), network="net1"),
    )
    return target(made_of, files=GROUPS, links=links, parameters={"key": "mine"})


class TestGenerated:
    def test_each_update_makes_one_server_anew_and_leaves_the_others(self) -> None:
        plan = steps(target(flavour()), target(with_image(flavour(), "work", "debian-13")), "work")
        assert [(step.id, step.nodes, step.irreversible) for step in plan.steps] == [
            ("change stack (1/2)", ("work-0",), False),
            ("change stack (2/2)", ("work-1",), False),
        ]
        first, second = plan.steps
        assert images(first) == {"base-0": "debian", "work-0": "debian-13", "work-1": "debian"}
        assert images(second) == {"base-0": "debian", "work-0": "debian-13", "work-1": "debian-13"}
        assert [args(step).renewed for step in plan.steps] == [("server of work-0",), ("server of work-1",)]
        assert second.after == (first.id,)
        ids = [[one.id for one in args(step).members] for step in plan.steps]
        assert ids == [
            ["id of base-0", "new id of work-0", "id of work-1"],
            ["id of base-0", "new id of work-0", "new id of work-1"],
        ]

    def test_each_update_goes_back_to_the_one_before_it(self) -> None:
        first, second = steps(target(flavour()), target(with_image(flavour(), "work", "new")), "work").steps
        assert args(second).before == args(first).after
        assert [one.id for one in args(first).back().members] == ["id of base-0", "id of work-0", "id of work-1"]

    def test_boot_volumes_are_filled_anew_one_after_another_too(self) -> None:
        def booting(name: str) -> Flavour:
            made_of = flavour()
            storage = replace(made_of.storages["data"], image=image(name))
            work = replace(made_of.vdus["work"], image=None)
            return replace(made_of, vdus={**made_of.vdus, "work": work}, storages={"data": storage})

        first, _ = steps(target(booting("root")), target(booting("root-2")), "work").steps
        after = args(first).after
        assert after is not None
        assert after.template is not None
        volumes = {slot: after.template["resources"][f"work-{slot}:data"]["properties"]["image"] for slot in (0, 1)}
        assert volumes == {0: "root-2", 1: "root"}

    def test_volumes_of_vnfcs_that_stay_or_get_another_size_keep_what_they_were_filled_with(self) -> None:
        """An NFVO may have chosen another image than the VNFD has."""
        made_of = flavour()
        root = replace(made_of.storages["data"], image=image("root"))
        made_of = replace(made_of, storages={"data": root})
        larger = replace(made_of, vdus={**made_of.vdus, "work": replace(made_of.vdus["work"], flavour="m1.huge")})
        before = target(made_of)
        now = change(before, target(larger), "work")
        granted = tuple(
            replace(one, volumes=tuple(replace(volume, image="granted") for volume in one.volumes))
            for one in now.inventory.machines
        )
        now = dataclasses.replace(now, inventory=replace(now.inventory, machines=granted))
        for step in with_whole_changes(steps_of(now, now.inventory)).steps:
            for spec in (args(step).before, args(step).after):
                assert spec is not None
                assert spec.template is not None
                resources = spec.template["resources"]
                assert {resources[f"work-{slot}:data"]["properties"]["image"] for slot in (0, 1)} == {"granted"}
            assert {one.volume_images["data"] for one in args(step).members if one.vdu == "work"} == {"granted"}

    def test_a_network_that_is_new_is_there_from_the_first_update_on(self) -> None:
        new = with_image(flavour(), "work", "new")
        new = replace(new, virtual_links={**new.virtual_links, "more": replace(new.virtual_links["net"], name="more")})
        after = args(steps(target(flavour()), target(new), "work").steps[0]).after
        assert after is not None
        assert after.template is not None
        assert {"net", "more"} <= after.template["resources"].keys()


class TestTemplatesOfPackages:
    def test_copies_are_told_of_their_new_image_one_after_another(self) -> None:
        new = indexed(with_image(indexed_flavour(), "VDU1", "debian-13"))
        first, second = steps(indexed(indexed_flavour()), new, "VDU1").steps
        assert [first.nodes, second.nodes] == [("VDU1-0",), ("VDU1-1",)]
        assert told(first, "VDU1-0", "VDU1-1") == ["debian-13", "debian"]
        assert told(second, "VDU1-0", "VDU1-1") == ["debian-13", "debian-13"]

    def test_a_volume_is_told_of_its_new_image_with_its_server(self) -> None:
        made_of = indexed_flavour()
        root = replace(made_of.storages["VDU2-root"], image=image("root-2"))
        (step,) = steps(indexed(made_of), indexed(replace(made_of, storages={"VDU2-root": root})), "VDU2").steps
        assert step.nodes == ("VDU2-0",)
        assert told(step, "VDU2-root") == ["root-2"]

    def test_a_volume_of_a_vdu_that_is_not_named_keeps_its_image(self) -> None:
        made_of = with_image(indexed_flavour(), "VDU1", "debian-13")
        root = replace(made_of.storages["VDU2-root"], image=image("root-2"))
        now = change(indexed(indexed_flavour()), indexed(replace(made_of, storages={"VDU2-root": root})), "VDU1")
        filled = tuple(
            replace(one, volumes=tuple(replace(volume, image="root") for volume in one.volumes))
            for one in now.inventory.machines
        )
        now = dataclasses.replace(now, inventory=replace(now.inventory, machines=filled))
        plan = with_whole_changes(steps_of(now, now.inventory))
        assert [step.nodes for step in plan.steps] == [("VDU1-0",), ("VDU1-1",)]
        assert [told(step, "VDU2-root") for step in plan.steps] == [["root"], ["root"]]

    def test_a_new_template_comes_when_all_are_made_anew(self) -> None:
        files = {**INDEXED, "BaseHOT/simple/nested/VDU2.yaml": INDEXED["BaseHOT/simple/nested/VDU2.yaml"] + "# new\n"}
        new = indexed(with_image(indexed_flavour(), "VDU1", "debian-13"), files)
        plan = steps(indexed(indexed_flavour()), new, "VDU1")
        assert [step.nodes for step in plan.steps] == [("VDU1-0",), ("VDU1-1",), ("VDU1-0", "VDU1-1", "VDU2-0")]
        before, after = args(plan.steps[1]).after, args(plan.steps[2]).after
        assert before is not None
        assert after is not None
        assert (before.vnfd_id, after.vnfd_id) == ("vnfd", "next")
        assert before.nested != after.nested
        assert args(plan.steps[2]).renewed == ()
        assert {effect.verb for effect in plan.steps[2].effects} == {"change"}

    def test_a_group_is_changed_by_one_update_in_which_heat_goes_member_by_member(self) -> None:
        new = groups(with_image(groups_flavour(), "workerNode", "debian-13"))
        (step,) = steps(groups(groups_flavour()), new, "workerNode").steps
        assert step.nodes == ("workerNode-0", "workerNode-1")
        assert told(step, "workerNode", "masterNode") == ["debian-13", "debian"]
        assert args(step).renewed == ()
        assert not step.irreversible

    def test_members_of_a_group_about_whom_nothing_new_is_told_are_marked_one_after_another(self) -> None:
        made_of = groups_flavour()
        worker = replace(made_of.vdus["workerNode"], boot_data="#!/bin/sh")
        new = groups(replace(made_of, vdus={**made_of.vdus, "workerNode": worker}))
        first, second = steps(groups(made_of), new, "workerNode").steps
        assert (args(first).renewed, args(second).renewed) == (("server of workerNode-0",), ("server of workerNode-1",))


class TestUndo:
    """`replacement_servers`: whom the way back makes anew."""

    def step(self) -> ChangeStack:
        return args(steps(target(flavour()), target(with_image(flavour(), "work", "new")), "work").steps[0])

    def there(self, digest: str | None, server: str, status: str = "UPDATE_COMPLETE") -> StackState:
        stack = Stack("top", "vnf", "UPDATE_COMPLETE", "", digest)
        resource = StackResource("work-0", SERVER, server, status, "", ("s", "s"), ("work-0",))
        return StackState(stack, (resource,), {server: Server(id=server, status="ACTIVE")}, {})

    def test_a_server_that_took_the_place_of_another_goes(self) -> None:
        step = self.step()
        assert step.after is not None
        assert replacement_servers(self.there(digest_of(step.after), "another"), step) == {"another"}

    def test_what_was_not_begun_or_is_taken_back_stays(self) -> None:
        step = self.step()
        assert step.before is not None
        assert replacement_servers(self.there(digest_of(step.before), "server of work-0"), step) == set()
        assert replacement_servers(self.there(digest_of(step.before), "another"), step) == set()

    def test_one_that_was_only_marked_before_a_crash_is_made_anew(self) -> None:
        step = self.step()
        assert step.before is not None
        there = self.there(digest_of(step.before), "server of work-0", "CHECK_FAILED")
        assert replacement_servers(there, step) == {"server of work-0"}

    def test_a_member_of_a_group_that_was_made_anew_is_not_one_too_many(self) -> None:
        new = groups(with_image(groups_flavour(), "workerNode", "new"))
        (step,) = steps(groups(groups_flavour()), new, "workerNode").steps
        back = args(step).back()
        tops = {name: f"worker_instance/{slot}" for slot, name in enumerate(("workerNode-0", "workerNode-1"))}
        resources = [
            StackResource("workerNode", SERVER, f"other {name}", "C", "", ("s", "s"), (*top.split("/"), "workerNode"))
            for name, top in tops.items()
        ]
        held_by = {f"port workerNode_CP2 of {name}": f"other {name}" for name in tops}
        ports = {port: Port(id=port, device_id=server) for port, server in held_by.items()}
        held = [StackResource("workerNode_CP2", PORT, one, "C", "", ("s", "s"), ("w",)) for one in ports]
        stack = Stack("top", "vnf", "UPDATE_COMPLETE", "", None)
        assert surplus(StackState(stack, (*resources, *held), {}, ports), back.members) == set()
        assert len(surplus(StackState(stack, tuple(resources), {}, {}), back.members)) == 2
