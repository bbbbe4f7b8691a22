"""HOTs that packages bring: what is read of them, what is refused, which resource makes which VDU, what Heat gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from slipway.model.descriptor import Aspect, Flavour, Level
from slipway.model.errors import PackageError
from slipway.vim.openstack.base_hot import (
    Form,
    Placement,
    has_base_hot,
    package_files,
    parse,
    placements,
    refuse_base_hot,
    rendered,
    with_members,
)
from slipway.vim.openstack.hot_template import BaseHot
from slipway.vim.openstack.stack_spec import FileRef, StackSpec
from tests.unit.vim.openstack_hots import GROUPS, INDEXED, TOP, groups_flavour, indexed_flavour
from tests.unit.vim.openstack_targets import target

NESTED = "BaseHOT/simple/nested"
SERVER = "{type: OS::Nova::Server}"


def hot(files: Mapping[str, str], flavour: Flavour | None = None) -> BaseHot:
    base = parse(target(flavour or indexed_flavour(), files))
    assert base is not None
    return base


def top(resources: str, **nested: str) -> dict[str, str]:
    """A package with these resources, and with nested templates of these."""
    version = "heat_template_version: 2013-05-23\n"
    files = {f"{NESTED}/{name}.yaml": f"{version}resources: {text}" for name, text in nested.items()}
    return {TOP: f"{version}resources: {resources}", **files}


def placed(files: Mapping[str, str], flavour: Flavour) -> dict[str, Placement]:
    return placements(hot(files, flavour), flavour)


def only(flavour: Flavour, vdu: str) -> Flavour:
    return replace(flavour, vdus={vdu: flavour.vdus[vdu]})


class TestFiles:
    def test_everything_for_the_flavour_is_asked_for(self) -> None:
        assert package_files(target(indexed_flavour())) == ("BaseHOT/simple/*",)
        assert package_files(target(replace(indexed_flavour(), id="a[b]"))) == ("BaseHOT/a[[]b]/*",)

    def test_the_names_of_files_tell_whether_there_is_a_hot(self) -> None:
        for names, there in (
            ({TOP}, True),
            ({"BaseHOT/simple/top.yml"}, True),
            ({"BaseHOT/complex/top.yaml", "Definitions/simple.yaml"}, False),
            ({f"{NESTED}/VDU1.yaml", "BaseHOT/top.yaml", "BaseHOT/simple/README"}, False),
        ):
            assert has_base_hot(target(indexed_flavour(), file_names=frozenset(names))) is there, names
        assert has_base_hot(target(indexed_flavour(), INDEXED))

    def test_a_package_without_one_has_none(self) -> None:
        assert parse(target(indexed_flavour(), {"BaseHOT/simple/README": "nothing"})) is None

    def test_what_was_not_read_yet_is_not_refused(self) -> None:
        refuse_base_hot(target(indexed_flavour(), file_names=frozenset(INDEXED)))

    def test_two_templates_are_refused_by_name_also_before_they_are_read(self) -> None:
        with pytest.raises(PackageError, match=r"BaseHOT/simple/a.yaml, BaseHOT/simple/b.yml"):
            refuse_base_hot(
                target(indexed_flavour(), file_names=frozenset({"BaseHOT/simple/a.yaml", "BaseHOT/simple/b.yml"}))
            )

    def test_only_files_that_the_templates_use_belong_to_it(self) -> None:
        base = hot(GROUPS, groups_flavour())
        assert base.files == {
            name: f"{NESTED}/{name}" for name in ("boot.sh", "master.yaml", "server.yaml", "worker.yaml")
        }
        assert base.nested.keys() == {"master.yaml", "server.yaml", "worker.yaml"}

    def test_files_may_be_called_by_their_place(self) -> None:
        files = {**INDEXED, TOP: INDEXED[TOP].replace("type: VDU1.yaml", "type: nested/VDU1.yaml")}
        assert hot(files).files["nested/VDU1.yaml"] == f"{NESTED}/VDU1.yaml"

    def test_templates_that_use_each_other_are_read_once(self) -> None:
        files = top("{VDU2: {type: a.yaml}}", a="{b: {type: b.yaml}}", b="{a: {type: a.yaml}, VDU2: " + SERVER + "}")
        assert placed(files, only(indexed_flavour(), "VDU2")) == {"VDU2": Placement(Form.SINGLE, "VDU2")}


class TestUnusable:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("heat_template_version: [", r"BaseHOT/simple/top.yaml:2: Not valid YAML"),
            ("- one", r"BaseHOT/simple/top.yaml:1: The file's root is not a mapping"),
            ("resources: {}", r"BaseHOT/simple/top.yaml:1: It has no heat_template_version"),
            ("heat_template_version: rocky\nresources: [1]", "Its resources are not a mapping of mappings"),
            ("heat_template_version: rocky\nparameters: {nfv: json}", "Its parameters are not a mapping of mappings"),
            ("heat_template_version: rocky\nresources:\n  VDU1: {}", r"top.yaml:3: The resource 'VDU1' has no type"),
            ("heat_template_version: !!python/none x", "tag"),
            (
                "heat_template_version: rocky\nresources:\n  a: {type: OS::Nova::Server, external_id: b}",
                "top.yaml:3: The server 'a' has an external_id",
            ),
        ],
    )
    def test_a_broken_template_is_named_with_the_line(self, text: str, reason: str) -> None:
        with pytest.raises(PackageError, match=reason):
            hot({TOP: text})

    def test_a_broken_nested_template_is_named(self) -> None:
        with pytest.raises(PackageError, match=r"BaseHOT/simple/nested/VDU1.yaml:1: It has no heat_template_version"):
            hot({**INDEXED, f"{NESTED}/VDU1.yaml": "resources: {}"})

    @pytest.mark.parametrize(
        "type_",
        [
            "http://192.0.2.1/evil.yaml",
            "file:///etc/heat/heat.conf",
            "../../Scripts/VDU1.yaml",
            "missing.yaml",
            "OS::Nova::Server/http://192.0.2.1/evil.yaml",
            "AWS::CloudFormation::Stack",
            "",
        ],
    )
    def test_nothing_but_heats_own_types_and_files_of_the_package_can_be_a_type(self, type_: str) -> None:
        group = "{type: OS::Heat::%s, properties: {%s: {type: '%s'}}}"
        for resource in (
            f"{{type: '{type_}'}}",
            group % ("AutoScalingGroup", "resource", type_),
            group % ("ResourceGroup", "resource_def", type_),
            f"{{type: OS::Heat::ResourceChain, properties: {{resources: ['{type_}']}}}}",
            f"{{type: OS::Heat::Stack, properties: {{template: {{get_file: '{type_}'}}}}}}",
            f"{{type: OS::Heat::Value, properties: {{value: {{get_file: '{type_}'}}}}}}",
            "{type: OS::Heat::ResourceGroup, properties: {resource_def: %s}}"
            % (group % ("ResourceGroup", "resource_def", type_)),
            "{type: OS::Heat::ResourceChain, properties: {resources: [OS::Heat::ResourceGroup], "
            f"resource_properties: {{count: 1, resource_def: {{type: '{type_}'}}}}}}}}",
            "{type: OS::Heat::ResourceChain, properties: {resources: [OS::Heat::Stack], "
            f"resource_properties: {{template: {{get_file: '{type_}'}}}}}}}}",
        ):
            with pytest.raises(
                PackageError, match=r"neither one of Heat's types .* nor a file in BaseHOT/simple/nested"
            ):
                hot(top(f"{{VDU1: {resource}}}"))
        with pytest.raises(PackageError, match=r"nested/VDU1.yaml: It uses"):
            hot(top("{VDU1: {type: VDU1.yaml}}", VDU1=f"{{VDU1: {{type: '{type_}'}}}}"))

    @pytest.mark.parametrize("type_", ["AWS::CloudFormation::Stack", "VDU1.yml", "VDU1"])
    def test_a_file_that_is_called_as_no_template_for_heat_can_not_be_a_type(self, type_: str) -> None:
        """Heat would look for a type of its own of that name: one fetches templates from wherever a URL leads."""
        with pytest.raises(PackageError, match=f"top.yaml: The file of the type '{type_}' is no template"):
            hot({**top(f"{{VDU1: {{type: '{type_}'}}}}"), f"{NESTED}/{type_}": "heat_template_version: rocky"})

    def test_a_tag_hides_no_type_from_who_reads_a_template_before_heat_does(self) -> None:
        """To Heat's reader the tag alone makes a merge of any key: `a` would be a resource of the template."""
        resources = "{!!merge VDU1: {type: OS::Nova::Server, a: {type: 'http://192.0.2.1/evil.yaml'}}}"
        with pytest.raises(PackageError, match=r"nested/VDU1.yaml:2: The tag 'tag:yaml.org,2002:merge'"):
            hot(top("{VDU1: {type: VDU1.yaml}}", VDU1=resources))

    def test_a_stacks_template_is_read_also_when_it_is_called_as_a_type(self) -> None:
        stack = "{type: OS::Heat::Stack, properties: {template: {get_file: 'OS::Heat::Value'}}}"
        inside = "{heat_template_version: rocky, resources: {a: {type: 'http://192.0.2.1/evil.yaml'}}}"
        with pytest.raises(PackageError, match=r"OS::Heat::Value: It uses .*evil\.yaml"):
            hot({**top(f"{{VDU1: {stack}}}"), f"{NESTED}/OS::Heat::Value": inside})

    def test_chains_of_chains_are_gone_through_once(self) -> None:
        chain, inner = "OS::Heat::ResourceChain", "{resources: [OS::Heat::Value]}"
        for _ in range(25):  # 10 ** 25 ways lead to the innermost
            inner = f"{{resources: [{', '.join([chain] * 10)}], resource_properties: {inner}}}"
        assert hot(top(f"{{VDU1: {{type: {chain}, properties: {inner}}}}}")).path == TOP

    @pytest.mark.parametrize(
        ("resource", "reason"),
        [
            ("{type: OS::Heat::AutoScalingGroup}", "has no resource with a type"),
            ("{type: OS::Heat::AutoScalingGroup, properties: {resource: {get_param: x}}}", "no resource with a type"),
            ("{type: OS::Heat::ResourceGroup, properties: {resource_def: {type: {get_param: x}}}}", "no resource_def"),
            ("{type: OS::Heat::ResourceChain, properties: {resources: {get_param: x}}}", "does not list its types"),
            (
                "{type: OS::Heat::ResourceChain, properties: "
                "{resources: [OS::Heat::ResourceGroup], resource_properties: {get_param: x}}}",
                "no resource_def",
            ),
            (
                "{type: OS::Heat::ResourceChain, properties: "
                "{resources: [OS::Heat::Stack], resource_properties: {template: 'heat_template_version: rocky'}}}",
                "is no file",
            ),
            ("{type: OS::Heat::ResourceGroup, properties: {resource_def: {type: a%index%}}}", "has %index% in it"),
            (
                "{type: OS::Heat::ResourceGroup, properties: {index_var: a, resource_def: {type: OS::Heat::Value}}}",
                "has a in it",
            ),
            (
                "{type: OS::Heat::ResourceGroup, properties: {index_var: {get_param: x}, resource_def: {type: b}}}",
                "index_var .* is no string",
            ),
            ("{type: OS::Heat::Stack, properties: {template: {get_param: x}}}", "is no file"),
            ("{type: OS::Heat::Stack, properties: {template: 'heat_template_version: rocky'}}", "is no file"),
            ("{type: OS::Heat::Stack, properties: {template: {str_replace: {template: {get_file: a}}}}}", "is no file"),
            (
                "{type: OS::Nova::Server, properties: {user_data: {get_file: {get_param: x}}}}",
                "not given a file's name",
            ),
        ],
    )
    def test_no_function_may_stand_for_a_type_or_a_file(self, resource: str, reason: str) -> None:
        with pytest.raises(PackageError, match=reason):
            hot(top(f"{{VDU1: {resource}}}", a="{}"))


class TestPlacements:
    def test_a_group_of_bare_servers_is_refused_for_nothing_tells_whose_server_is_whose(self) -> None:
        files = top("{VDU1: {type: OS::Heat::AutoScalingGroup, properties: {resource: " + SERVER + "}}}")
        with pytest.raises(PackageError, match=r"group 'VDU1' has bare servers.* Cure: put the server, .* nested"):
            placed(files, only(indexed_flavour(), "VDU1"))

    def test_servers_of_scaling_groups_and_one_in_the_top_template(self) -> None:
        assert placed(GROUPS, groups_flavour()) == {
            "masterNode": Placement(Form.GROUP, "master_instance"),
            "workerNode": Placement(Form.GROUP, "worker_instance"),
            "storage": Placement(Form.SINGLE, "storage"),
        }

    def test_a_resource_for_each_member_and_one_that_stays_alone(self) -> None:
        assert placed(INDEXED, indexed_flavour()) == {
            "VDU1": Placement(Form.COPIES, "VDU1"),
            "VDU2": Placement(Form.SINGLE, "VDU2"),
        }

    def test_a_single_server_may_be_in_a_template_of_any_name(self) -> None:
        files = top("{lb: {type: lb.yaml}}", lb="{VDU2: " + SERVER + "}")
        assert placed(files, only(indexed_flavour(), "VDU2")) == {"VDU2": Placement(Form.SINGLE, "lb")}

    @pytest.mark.parametrize(
        "changes",
        [
            {"levels": {"one": Level(name="one", counts={"VDU2": 2})}},
            {"levels": {"one": Level(name="one"), "none": Level(name="none", counts={"VDU2": 0})}},
            {"aspects": {"scale": Aspect(name="scale", max_level=1, deltas={"VDU2": (2,)})}},
        ],
    )
    def test_a_vdu_that_may_have_another_number_than_one_has_copies(self, changes: dict[str, Any]) -> None:
        flavour = replace(only(indexed_flavour(), "VDU2"), **changes)
        assert placed(INDEXED, flavour) == {"VDU2": Placement(Form.COPIES, "VDU2")}

    def test_a_vdu_that_no_resource_makes_is_named(self) -> None:
        files = {path: text.replace("workerNode: {type", "other: {type") for path, text in GROUPS.items()}
        with pytest.raises(PackageError, match=r"top.yaml: No resource makes the servers of VDU 'workerNode'"):
            refuse_base_hot(target(groups_flavour(), files))

    def test_a_vdu_that_several_resources_make_is_named(self) -> None:
        files = top("{VDU2: {type: a.yaml}, more: {type: a.yaml}}", a="{VDU2: " + SERVER + "}")
        with pytest.raises(PackageError, match="Several resources make servers of VDU 'VDU2': VDU2, more"):
            placed(files, only(indexed_flavour(), "VDU2"))

    def test_vdus_that_share_a_group_are_named(self) -> None:
        member = "{resource: {type: a.yaml}, desired_capacity: 1, min_size: 1, max_size: 9}"
        files = top(
            "{both: {type: OS::Heat::AutoScalingGroup, properties: " + member + "}}",
            a="{VDU1: " + SERVER + ", VDU2: " + SERVER + "}",
        )
        with pytest.raises(PackageError, match="The group 'both' makes servers of several VDUs: VDU1, VDU2"):
            placed(files, indexed_flavour())

    @pytest.mark.parametrize(
        ("resources", "reason"),
        [
            ("{lb: {type: VDU1.yaml}}", "The resource 'lb' makes one server, and VDU 'VDU1' may have several members"),
            (
                "{VDU1: {type: OS::Nova::Server, properties: {networks: [{port: {get_resource: CP1}}]}}}",
                "VDU 'VDU1' may have several members, which can't share",
            ),
            (
                "{VDU1: {type: VDU1.yaml}, ip: {type: OS::Heat::Value, properties: {value: {get_attr: [VDU1, ip]}}}}",
                "something refers to it as to one resource",
            ),
            ("{VDU1: {type: VDU1.yaml}}\noutputs: {a: {value: {get_resource: VDU1}}}", "something refers to it"),
            ("{VDU1: {type: VDU1.yaml}, VDU1-7: {type: OS::Heat::None}}", "one would be called 'VDU1-7'"),
        ],
    )
    def test_what_cannot_be_copied_for_each_member_is_named(self, resources: str, reason: str) -> None:
        with pytest.raises(PackageError, match=reason):
            placed(top(resources, VDU1="{VDU1: " + SERVER + "}"), only(indexed_flavour(), "VDU1"))


def rendered_files(files: Mapping[str, str], **parts: Any) -> tuple[dict[str, Any], dict[str, str]]:
    spec = StackSpec(vnfd_id="vnfd", top=FileRef(TOP, "digest"), **parts)
    return rendered(spec, {path: text.encode() for path, text in files.items()})


class TestRendered:
    def test_a_copy_for_each_slot_reads_what_is_its_own(self) -> None:
        template, _ = rendered_files(INDEXED, copies={"VDU1": (0, 3)})
        assert list(template["resources"]) == ["VDU1-0", "VDU1-3", "VDU2", "apart", "internalVL", "internalVL_subnet"]
        assert template["resources"]["VDU1-3"] == {
            "type": "VDU1.yaml",
            "properties": {
                "flavor": {"get_param": ["nfv", "VDU", "VDU1-3", "computeFlavourId"]},
                "image-VDU1": {"get_param": ["nfv", "VDU", "VDU1-3", "vcImageId"]},
                "zone": {"get_param": ["nfv", "VDU", "VDU1-3", "locationConstraints"]},
                "net1": {"get_param": ["nfv", "CP", "VDU1_CP1-3", "network"]},
                "addresses": [{"get_param": ["nfv", "CP", "VDU1_CP1-3", "fixed_ips", 0, "ip_address"]}],
                "net2": {"get_resource": "internalVL"},
                "affinity": {"get_resource": "apart"},
            },
        }

    def test_what_depends_on_a_copied_resource_depends_on_all_copies(self) -> None:
        template, _ = rendered_files(INDEXED, copies={"VDU1": (0, 3)})
        assert template["resources"]["VDU2"]["depends_on"] == ["VDU1-0", "VDU1-3"]
        assert template["resources"]["internalVL_subnet"]["depends_on"] == ["internalVL"]

    @pytest.mark.parametrize(
        "resources",
        [
            f"{{VDU1: {{type: VDU1.yaml, properties: {{x: [{'{a: b}, ' * 60}]}}}}}}",
            "{VDU1: {type: VDU1.yaml, depends_on: [VDU2]}, VDU2: {type: VDU1.yaml}}",
        ],
    )
    def test_copies_that_would_fill_the_memory_are_refused_before_one_is_made(self, resources: str) -> None:
        base = hot(top(resources, VDU1="{VDU1: " + SERVER + "}"))
        slots = tuple(range(10_000))
        with pytest.raises(PackageError, match=r"top.yaml: With a resource for each member .* more than 200000 values"):
            with_members(base, {"VDU1": slots, "VDU2": slots}, {})

    def test_without_members_nothing_is_left_of_the_resource(self) -> None:
        template, _ = rendered_files(INDEXED, copies={"VDU1": ()})
        assert "VDU1" not in template["resources"]
        assert template["resources"]["VDU2"]["depends_on"] == []

    def test_groups_have_as_many_members_as_there_are(self) -> None:
        template, _ = rendered_files(GROUPS, capacities={"master_instance": 1, "worker_instance": 4})
        groups = template["resources"]
        assert groups["master_instance"]["properties"]["desired_capacity"] == 1
        assert groups["worker_instance"]["properties"]["desired_capacity"] == 4
        assert groups["worker_instance"]["properties"]["max_size"] == 4
        assert groups["worker_instance"]["properties"]["resource"]["type"] == "worker.yaml"

    def test_nested_files_go_along_as_they_are_under_the_names_that_templates_use(self) -> None:
        _, files = rendered_files(GROUPS)
        names = ("boot.sh", "master.yaml", "server.yaml", "worker.yaml")
        assert files == {name: GROUPS[f"{NESTED}/{name}"] for name in names}

    def test_the_version_is_a_text_and_not_a_date(self) -> None:
        template, _ = rendered_files(INDEXED)
        assert template["heat_template_version"] == "2013-05-23"

    def test_a_file_that_is_no_text_is_named(self) -> None:
        contents = {path: text.encode() for path, text in GROUPS.items()} | {f"{NESTED}/boot.sh": b"\xff\xfe"}
        with pytest.raises(PackageError, match=r"nested/boot.sh: The file is not UTF-8 text"):
            rendered(StackSpec(top=FileRef(TOP, "digest")), contents)

    slots = st.sets(st.integers(0, 9)).map(lambda chosen: tuple(sorted(chosen)))

    @given(slots, slots)
    def test_a_scale_leaves_all_other_resources_as_they_are(
        self, before: tuple[int, ...], after: tuple[int, ...]
    ) -> None:
        base = hot(INDEXED)
        was, now = (with_members(base, {"VDU1": slots}, {})["resources"] for slots in (before, after))
        assert was.keys() - now.keys() == {f"VDU1-{slot}" for slot in before if slot not in after}
        both = (was.keys() & now.keys()) - {"VDU2"}  # which depends on all of them
        assert {name: was[name] for name in both} == {name: now[name] for name in both}
        assert was["VDU2"]["properties"] == now["VDU2"]["properties"]
