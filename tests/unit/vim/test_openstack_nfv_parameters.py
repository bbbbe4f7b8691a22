"""What the HOT of a package is told of VDUs and connection points, and what the stack is made of then."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from slipway.model.errors import Unprocessable
from slipway.model.instance import IpAddresses
from slipway.model.machine import FoundMachine
from slipway.model.target import Renewal, VnfTarget
from slipway.vim.openstack.base_hot import rendered
from slipway.vim.openstack.desired_stack import desired_stack
from slipway.vim.openstack.stack_spec import FileRef, StackSpec
from tests.unit.vim.openstack_hots import GROUPS, INDEXED, TOP, groups_flavour, indexed_flavour
from tests.unit.vim.openstack_targets import change_to, fixed, link, package_file, target

NESTED = "BaseHOT/simple/nested"


def groups(**changes: Any) -> VnfTarget:
    links = (
        link("masterNode_CP1", network="net0"),
        link("workerNode_CP2", network="net0"),
        link("storage_CP", fixed("192.0.2.9"), network="net1"),
    )
    return target(groups_flavour(), **{"files": GROUPS, "links": links, "parameters": {"key": "mine"}, **changes})


def indexed(**changes: Any) -> VnfTarget:
    links = (
        link("VDU1_CP1", *(fixed(f"192.0.2.1{slot}") for slot in range(3)), network="net0"),
        link("VDU2_CP1", network="net1"),
    )
    return target(indexed_flavour(), **{"files": INDEXED, "links": links, **changes})


def spec_of(after: VnfTarget, *standing: FoundMachine) -> StackSpec:
    return desired_stack(change_to(after, *standing), after).spec


def nfv(after: VnfTarget, *standing: FoundMachine) -> dict[str, Any]:
    found: dict[str, Any] = spec_of(after, *standing).parameters["nfv"]
    return found


def found(name: str, image: str, flavour: str, zone: str | None = None) -> FoundMachine:
    vdu = name.rpartition("-")[0]
    return FoundMachine(
        id=f"id of {name}", name=name, vdu=vdu, resource_id=name, ready=True, image=image, flavour=flavour, zone=zone
    )


class TestGroups:
    def test_the_stack_is_made_of_files_by_digest_capacities_and_parameters(self) -> None:
        spec = spec_of(groups())
        names = ("boot.sh", "master.yaml", "server.yaml", "worker.yaml")
        paths = [f"{NESTED}/{name}" for name in names]
        assert spec == StackSpec(
            vnfd_id="vnfd",
            top=FileRef(TOP, package_file(GROUPS[TOP]).digest),
            nested=tuple(FileRef(path, package_file(GROUPS[path]).digest) for path in paths),
            capacities={"master_instance": 1, "worker_instance": 2},
            parameters=spec.parameters,
        )
        assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(spec)), StackSpec) == spec

    def test_names_of_both_versions_stand_there_at_once(self) -> None:
        assert nfv(groups()) == {
            "VDU": {
                "masterNode": {
                    "flavor": "m1.small",
                    "image": "debian",
                    "computeFlavourId": "m1.small",
                    "vcImageId": "debian",
                    "desired_capacity": 1,
                },
                "workerNode": {
                    "flavor": "m1.large",
                    "image": "debian",
                    "computeFlavourId": "m1.large",
                    "vcImageId": "debian",
                    "desired_capacity": 2,
                },
                "storage": {
                    "flavor": "m1.small",
                    "image": "debian",
                    "computeFlavourId": "m1.small",
                    "vcImageId": "debian",
                    "desired_capacity": 1,
                },
            },
            "CP": {
                "masterNode_CP1": {"network": "net0"},
                "workerNode_CP2": {"network": "net0"},
                "storage_CP": {"network": "net1", "fixed_ips": [{"ip_address": "192.0.2.9"}]},
            },
        }

    def test_other_parameters_that_the_template_declares_come_from_the_request(self) -> None:
        parameters = spec_of(groups(parameters={"key": "mine", "colour": "blue", "other": 1})).parameters
        assert {name: value for name, value in parameters.items() if name != "nfv"} == {
            "key": "mine",
            "colour": "blue",
            "worker_instance_desired_capacity": 2,
        }

    def test_the_parameter_for_a_capacity_follows_the_number_of_members(self) -> None:
        members = ["masterNode-0", "storage-0", *(f"workerNode-{slot}" for slot in range(4))]
        spec = spec_of(groups(members=members, parameters={"key": "k", "worker_instance_desired_capacity": 2}))
        assert spec.parameters["worker_instance_desired_capacity"] == 4
        assert spec.parameters["nfv"]["VDU"]["workerNode"]["desired_capacity"] == 4
        assert spec.capacities == {"master_instance": 1, "worker_instance": 4}

    def test_a_capacity_that_the_template_does_not_allow_is_named(self) -> None:
        members = ["masterNode-0", "storage-0", *(f"workerNode-{slot}" for slot in range(5))]
        with pytest.raises(Unprocessable, match=r"group worker_instance is to have 5 members, .* max_size of 4"):
            spec_of(groups(members=members))

    def test_all_members_are_told_what_those_that_stand_have(self) -> None:
        """Whoever is granted another image for a new member does not get all others made anew."""
        after = groups(images={"workerNode": "new"}, flavours={"workerNode": "huge"})
        assert nfv(after)["VDU"]["workerNode"]["vcImageId"] == "new"
        standing = found("workerNode-1", "old", "m1.old", "az1")
        told = nfv(after, standing)["VDU"]["workerNode"]
        assert (told["image"], told["flavor"], told["locationConstraints"]) == ("old", "m1.old", "az1")

    def test_what_a_member_is_made_from_is_recorded_as_the_group_was_told(self) -> None:
        after = groups(images={"workerNode": "new"})
        drawn = desired_stack(change_to(after, found("workerNode-1", "old", "m1.old", "az1")), after)
        workers = [one for one in drawn.members if one.vdu == "workerNode"]
        assert {(one.image, one.flavour, one.zone) for one in workers} == {("old", "m1.old", "az1")}

    def test_members_are_not_told_apart_by_zones_or_addresses(self) -> None:
        zones = {"id of workerNode-0": "az1", "id of workerNode-1": "az2"}
        with pytest.raises(Unprocessable, match=r"VDU workerNode: .* one zone for all, and the grant has az1, az2"):
            spec_of(groups(zones=zones))
        links = (*groups().links[:1], link("workerNode_CP2", fixed("192.0.2.1"), network="net0"), groups().links[2])
        with pytest.raises(Unprocessable, match="workerNode_CP2 is to have a fixed address, and the 2 members"):
            spec_of(groups(links=links))

    def test_a_scale_touches_nobody_else_although_all_share_the_parameter_of_the_capacity(self) -> None:
        before, after = groups(), groups(members=["masterNode-0", "storage-0", *(f"workerNode-{n}" for n in range(3))])
        was, will = (desired_stack(change_to(one), one) for one in (before, after))
        assert was.definition_of("workerNode-0") == will.definition_of("workerNode-0")
        assert was.definition_of("storage-0") == will.definition_of("storage-0")

    def test_when_nobody_stays_all_are_told_what_is_new(self) -> None:
        after = groups(images={"workerNode": "new"})
        gone = dataclasses.replace(
            change_to(after, msgspec.structs.replace(found("workerNode-0", "old", "m1.old"), id="former")),
            renewal=Renewal(members=frozenset({"former"})),
        )
        assert desired_stack(gone, after).spec.parameters["nfv"]["VDU"]["workerNode"]["image"] == "new"

    def test_a_group_without_members_is_told_what_its_first_one_would_get(self) -> None:
        files = {**GROUPS, TOP: GROUPS[TOP].replace("min_size: 2", "min_size: 0")}
        after = groups(members=["masterNode-0", "storage-0"], files=files, flavours={"workerNode": "huge"})
        assert nfv(after)["VDU"]["workerNode"] == {
            "flavor": "huge",
            "image": "debian",
            "computeFlavourId": "huge",
            "vcImageId": "debian",
            "desired_capacity": 0,
        }


class TestCopies:
    def test_each_member_has_an_entry_of_its_own(self) -> None:
        after = indexed(zones={"id of VDU1-1": "az2"})
        spec = spec_of(after, found("VDU1-0", "old", "m1.old"))
        assert spec.copies == {"VDU1": (0, 1)}
        assert spec.capacities == {}
        told = spec.parameters["nfv"]
        assert told["VDU"]["VDU1-0"] == {
            "flavor": "m1.old", "image": "old", "computeFlavourId": "m1.old", "vcImageId": "old",
        }  # fmt: skip
        assert told["VDU"]["VDU1-1"] == {
            "flavor": "m1.large",
            "image": "debian",
            "computeFlavourId": "m1.large",
            "vcImageId": "debian",
            "locationConstraints": "az2",
        }
        assert told["CP"]["VDU1_CP1-0"] == {"network": "net0", "fixed_ips": [{"ip_address": "192.0.2.10"}]}
        assert told["CP"]["VDU1_CP1-1"] == {"network": "net0", "fixed_ips": [{"ip_address": "192.0.2.11"}]}

    def test_a_vdu_that_stays_alone_has_one_under_its_name_and_its_storage_has_one(self) -> None:
        told = nfv(indexed())
        assert told["VDU"]["VDU2"] == {"flavor": "m1.small", "computeFlavourId": "m1.small", "desired_capacity": 1}
        assert told["VDU"]["VDU2-root"] == {"image": "root", "vcImageId": "root"}
        assert told["CP"]["VDU2_CP1"] == {"network": "net1"}
        assert "VDU2-0" not in told["VDU"]

    def test_a_copy_that_reads_what_is_not_its_own_is_told_the_same_as_all(self) -> None:
        """The name in its template gets the suffix, whoever it is of."""
        text = INDEXED[TOP].replace(
            "net2: {get_resource: internalVL}", "net2: {get_param: [nfv, CP, VDU2_CP1, network]}"
        )
        spec = spec_of(indexed(files={**INDEXED, TOP: text}))
        assert spec.parameters["nfv"]["CP"]["VDU2_CP1-1"] == {"network": "net1"}

    def test_every_read_of_the_rendered_template_has_an_answer(self) -> None:
        spec = spec_of(indexed(members=["VDU1-0", "VDU1-2", "VDU2-0"]))
        template, files = rendered(spec, {path: text.encode() for path, text in INDEXED.items()})
        assert [name for name in template["resources"] if name.startswith("VDU")] == ["VDU1-0", "VDU1-2", "VDU2"]
        assert {"VDU1-0", "VDU1-2"} <= spec.parameters["nfv"]["VDU"].keys()
        assert files.keys() == {"VDU1.yaml", "VDU2.yaml"}

    def test_a_scale_leaves_what_others_are_told_as_it_is(self) -> None:
        two, three = (nfv(indexed(members=[*members, "VDU2-0"])) for members in (
            ["VDU1-0", "VDU1-1"], ["VDU1-0", "VDU1-1", "VDU1-2"]
        ))  # fmt: skip
        for kind, name in (("VDU", "VDU1-0"), ("VDU", "VDU1-1"), ("VDU", "VDU2"), ("CP", "VDU1_CP1-0")):
            assert two[kind][name] == three[kind][name]

    def test_a_subnet_that_is_asked_for_holds_for_members_that_ask_for_nothing(self) -> None:
        text = INDEXED[TOP].replace("0, ip_address]", "0, subnet]")
        dynamic = IpAddresses(type="IPV4", num_dynamic_addresses=1, subnet_id="sub")
        links = (link("VDU1_CP1", dynamic, network="net0"), link("VDU2_CP1", fixed("192.0.2.9", "sub"), network="net1"))
        told = nfv(indexed(files={**INDEXED, TOP: text}, links=links))["CP"]
        assert told["VDU1_CP1-0"] == told["VDU1_CP1-1"] == {"network": "net0", "fixed_ips": [{"subnet": "sub"}]}
        assert told["VDU2_CP1"]["fixed_ips"] == [{"ip_address": "192.0.2.9", "subnet": "sub"}]

    def test_what_the_request_says_of_a_vdu_is_for_each_of_its_copies(self) -> None:
        given = {"VDU": {"VDU1": {"vcImageId": "mine"}, "VDU1-1": {"vcImageId": "his"}}}
        told = nfv(indexed(parameters={"nfv": given}))["VDU"]
        assert (told["VDU1-0"]["vcImageId"], told["VDU1-1"]["vcImageId"]) == ("mine", "his")
        assert told["VDU1-0"]["computeFlavourId"] == "m1.large"

    def test_the_request_may_say_more_and_say_it_otherwise(self) -> None:
        given = {"VDU": {"VDU1-0": {"name": "first", "vcImageId": "mine"}}, "more": {"x": 1}}
        told = nfv(indexed(parameters={"nfv": given}))
        assert told["VDU"]["VDU1-0"]["name"] == "first"
        assert told["VDU"]["VDU1-0"]["vcImageId"] == "mine"
        assert told["VDU"]["VDU1-0"]["computeFlavourId"] == "m1.large"
        assert told["more"] == {"x": 1}
        with pytest.raises(Unprocessable, match=r"additionalParams.nfv: .* give an object"):
            nfv(indexed(parameters={"nfv": "text"}))


class TestUnset:
    def test_a_parameter_without_a_value_is_named(self) -> None:
        with pytest.raises(Unprocessable, match=r"top.yaml: nothing sets its parameter key; .*additionalParams.key"):
            spec_of(groups(parameters={}))

    @pytest.mark.parametrize(
        ("after", "reason"),
        [
            (indexed(links=()), r"it reads nfv.CP.VDU\d_CP1.*; connect the connection point by extVirtualLinks"),
            (indexed(members=["VDU2-0", "VDU1-3"]), r"nfv.CP.VDU1_CP1-3.fixed_ips.0.ip_address, .* ask for an address"),
            (
                indexed(files={**INDEXED, TOP: INDEXED[TOP].replace("VDU2-root, vcImageId", "VDU2, vcImageId")}),
                "nfv.VDU.VDU2.vcImageId, .* sw_image_data",
            ),
            (
                indexed(files={**INDEXED, TOP: INDEXED[TOP].replace("VDU, VDU2, computeFlavourId", "VDU, VDU2, name")}),
                "nfv.VDU.VDU2.name, .* give it by additionalParams.nfv",
            ),
        ],
    )
    def test_what_the_template_reads_and_nobody_says_is_named(self, after: VnfTarget, reason: str) -> None:
        with pytest.raises(Unprocessable, match=reason):
            spec_of(after)

    def test_user_data_of_the_package_may_yet_say_it(self) -> None:
        spec_of(groups(parameters={"lcm-operation-user-data": "./UserData/own.py"}, links=()))

    def test_a_template_without_nfv_is_told_nothing_of_it(self) -> None:
        text = "heat_template_version: rocky\nresources: {VDU2: {type: OS::Nova::Server}}"
        flavour = indexed_flavour()
        after = target(replace(flavour, vdus={"VDU2": flavour.vdus["VDU2"]}), {TOP: text})
        assert spec_of(after).parameters == {}
