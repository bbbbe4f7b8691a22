"""A HOT for packages that bring none: what it says of each machine, and that a scale leaves the others alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from slipway.model.descriptor import ConnectionPoint, Flavour, PlacementRule, Storage, VirtualLink
from slipway.model.errors import Unprocessable
from slipway.model.machine import Found, FoundMachine
from slipway.model.target import VnfTarget
from slipway.vim.openstack.base_hot import rendered
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim.openstack.generated_checks import refuse_generated
from slipway.vim.openstack.generated_hot import generated_spec
from slipway.vim.openstack.stack_spec import StackSpec
from slipway.vim.openstack.stack_steps import steps_of
from tests.unit.vim.openstack_targets import GIB, change_to, fixed, flavour, image, link, target, wanted


def spec_of(after: VnfTarget) -> StackSpec:
    return generated_spec(wanted(after), after.flavour, after.vnfd_id)


def resources(after: VnfTarget) -> dict[str, Any]:
    template = spec_of(after).template
    assert template is not None
    found: dict[str, Any] = template["resources"]
    return found


def changed(vdu: str, made_of: Flavour | None = None, **changes: Any) -> Flavour:
    made_of = made_of or flavour()
    return replace(made_of, vdus={**made_of.vdus, vdu: replace(made_of.vdus[vdu], **changes)})


def refuse(after: VnfTarget, **more: Any) -> None:
    refuse_generated(dataclasses.replace(change_to(after), **more))


def apart(*targets: str, scope: str = "nfvi_node", name: str = "apart") -> PlacementRule:
    return PlacementRule(name=name, apart=True, scope=scope, targets=targets)


def test_a_member_is_a_server_with_ports_and_volumes_named_after_it() -> None:
    found = resources(target())
    assert {name for name in found if name.startswith("work-1")} == {
        "work-1",
        "work-1:work_cp",
        "work-1:data",
        "work-1:data:attachment",
    }
    assert found["work-1"] == {
        "type": "OS::Nova::Server",
        "properties": {
            "name": "work-1",
            "tags": ["vnf-11111111-2222-4333-8444-555555555555"],
            "image": "debian",
            "image_update_policy": "REPLACE",
            "flavor": "m1.large",
            "flavor_update_policy": "REPLACE",
            "config_drive": True,
            "user_data_format": "RAW",
            "user_data_update_policy": "IGNORE",
            "networks": [{"port": {"get_resource": "work-1:work_cp"}}],
        },
    }


def test_a_volume_is_attached_by_a_resource_of_its_own_so_that_it_outlives_its_server() -> None:
    found = resources(target())
    assert found["work-0:data"] == {"type": "OS::Cinder::Volume", "properties": {"size": 2}}
    assert found["work-0:data:attachment"] == {
        "type": "OS::Cinder::VolumeAttachment",
        "properties": {"instance_uuid": {"get_resource": "work-0"}, "volume_id": {"get_resource": "work-0:data"}},
    }


def test_volumes_are_attached_one_after_the_other() -> None:
    storages = {name: Storage(name=name, size_bytes=GIB) for name in ("data", "more")}
    found = resources(target(changed("work", flavour(storages=storages), storages=("data", "more"))))
    assert "depends_on" not in found["work-0:data:attachment"]
    assert found["work-0:more:attachment"]["depends_on"] == ["work-0:data:attachment"]


def test_a_storage_with_an_image_is_a_volume_made_from_it() -> None:
    made_of = flavour(storages={"data": Storage(name="data", size_bytes=8 * GIB, image=image("content"))})
    found = resources(target(made_of))
    assert found["work-0:data"]["properties"] == {"size": 8, "image": "content"}
    assert "work-0:data:attachment" in found, "it boots from its own image"


def test_a_machine_without_an_image_boots_from_the_volume_that_has_one() -> None:
    made_of = flavour(storages={"data": Storage(name="data", size_bytes=8 * GIB, image=image("system"))})
    after = target(changed("work", made_of, image=None))
    refuse(after)
    found = resources(after)
    volume = {"volume_id": {"get_resource": "work-0:data"}, "boot_index": 0}
    assert found["work-0"]["properties"]["block_device_mapping_v2"] == [volume]
    assert "image" not in found["work-0"]["properties"]
    assert "work-0:data:attachment" not in found


def test_a_machine_boots_from_its_storages_in_the_order_of_the_vnfd() -> None:
    storages = {name: Storage(name=name, size_bytes=GIB, image=image(name)) for name in ("data", "system", "rescue")}
    made_of = changed("work", flavour(storages=storages), image=None, storages=tuple(storages))
    after = target(changed("work", made_of, boot_order=("system", "rescue")))
    refuse(after)
    found = resources(after)
    assert found["work-0"]["properties"]["block_device_mapping_v2"] == [
        {"volume_id": {"get_resource": "work-0:system"}, "boot_index": 0},
        {"volume_id": {"get_resource": "work-0:rescue"}, "boot_index": 1},
    ]
    assert [name for name in found if name.startswith("work-0") and "attachment" in name] == ["work-0:data:attachment"]


def test_key_value_pairs_of_the_boot_data_are_metadata_of_servers() -> None:
    found = resources(target(changed("work", metadata={"role": "worker"})))
    assert found["work-0"]["properties"]["metadata"] == {"role": "worker"}
    assert "metadata" not in found["base-0"]["properties"]


def test_a_port_has_the_vnic_type_of_its_connection_point() -> None:
    points = flavour().connection_points
    direct = replace(points["work_cp"], vnic_type="direct")
    found = resources(target(flavour(connection_points={**points, "work_cp": direct})))
    assert found["work-1:work_cp"]["properties"]["binding:vnic_type"] == "direct"
    assert "binding:vnic_type" not in found["base-0:base_cp"]["properties"]


def test_a_change_of_package_does_not_change_the_vnic_type_of_ports_that_are_there() -> None:
    points = flavour().connection_points
    other = flavour(connection_points={**points, "work_cp": replace(points["work_cp"], vnic_type="direct")})
    with pytest.raises(Unprocessable, match=r"work_cp has another vnic_type \(direct\) than before \(None\)"):
        refuse(target(other), before=target())
    refuse(target(other), before=target(other))


def test_rules_for_zones_are_kept_where_an_nfvo_chooses_them() -> None:
    after = target(flavour(placement=(apart("work", scope="zone"),)))
    refuse(after, grant_follows=True)
    refuse(dataclasses.replace(after, zones={"id of work-0": "az1", "id of work-1": "az2"}))
    there = FoundMachine(id="id of work-0", name="work-0", vdu="work", resource_id="s", ready=True, zone="az1")
    refuse(dataclasses.replace(after, zones={"id of work-1": "az2"}), inventory=Found(machines=(there,)))
    with pytest.raises(Unprocessable, match="no NFVO has chosen zones"):
        refuse(dataclasses.replace(after, zones={"id of work-0": "az1"}))


def test_rules_that_hold_by_themselves_are_not_refused() -> None:
    refuse(target(flavour(placement=(apart("base", scope="zone"),))))  # one VNFC
    together = PlacementRule(name="near", apart=False, scope="nfvi_pop", targets=("work",))
    refuse(target(flavour(placement=(together,))))  # one VIM


def test_a_network_of_the_vnf_has_a_subnet_which_ports_wait_for() -> None:
    found = resources(target())
    assert found["net"] == {"type": "OS::Neutron::Net"}
    assert found["net:subnet"] == {
        "type": "OS::Neutron::Subnet",
        "properties": {"network": {"get_resource": "net"}, "ip_version": 4, "cidr": "10.10.0.0/24"},
    }
    assert found["work-0:work_cp"] == {
        "type": "OS::Neutron::Port",
        "properties": {"network": {"get_resource": "net"}},
        "depends_on": ["net:subnet"],
    }


def test_a_network_outside_is_named_by_its_id_with_the_address_and_mac_that_are_asked_for() -> None:
    links = (link("base_cp", fixed("192.0.2.7"), network="0a1b", mac="fa:16:3e:00:00:07"),)
    assert resources(target(links=links))["base-0:base_cp"] == {
        "type": "OS::Neutron::Port",
        "properties": {
            "network": "0a1b",
            "fixed_ips": [{"ip_address": "192.0.2.7"}],
            "mac_address": "fa:16:3e:00:00:07",
        },
    }


def test_a_connection_point_of_an_inner_network_may_be_connected_outside() -> None:
    found = resources(target(links=(link("base_cp"), link("work_cp", network="0a1b"))))
    assert found["work-0:work_cp"] == {"type": "OS::Neutron::Port", "properties": {"network": "0a1b"}}


def test_ports_are_in_the_order_of_the_vnfd() -> None:
    points = {
        name: ConnectionPoint(name=name, vdu="work", virtual_link="net", order=order)
        for name, order in (("third", 3), ("first", 1), ("second", 2))
    }
    networks = resources(target(flavour(connection_points=points)))["work-0"]["properties"]["networks"]
    assert [one["port"]["get_resource"] for one in networks] == ["work-0:first", "work-0:second", "work-0:third"]


def test_a_machine_without_connection_points_is_on_no_network() -> None:
    found = resources(target(flavour(connection_points={}), links=()))
    assert found["base-0"]["properties"]["networks"] == [{"allocate_network": "none"}]


def test_an_address_range_that_the_vnfd_does_not_give_is_derived_and_stays() -> None:
    links = {name: VirtualLink(name=name, cidr=cidr) for name, cidr in (("a", None), ("b", None), ("c", "fd00::1/64"))}
    found = resources(target(flavour(virtual_links=links, connection_points={}), links=()))
    ranges = {name: found[f"{name}:subnet"]["properties"]["cidr"] for name in links}
    assert ranges == {"a": "172.30.28.0/22", "b": "172.28.144.0/22", "c": "fd00::/64"}
    assert found["c:subnet"]["properties"]["ip_version"] == 6


def test_derived_address_ranges_never_overlap() -> None:
    links = {f"net{number}": VirtualLink(name=f"net{number}") for number in range(254)}
    links["declared"] = VirtualLink(name="declared", cidr="172.29.0.0/23")
    found = resources(target(flavour(virtual_links=links, connection_points={}), links=()))
    ranges = {one["properties"]["cidr"] for one in found.values() if one["type"] == "OS::Neutron::Subnet"}
    assert len(ranges) == 255
    assert "172.29.0.0/22" not in ranges
    links |= {f"net{number}": VirtualLink(name=f"net{number}") for number in range(256)}
    with pytest.raises(Unprocessable, match="give it a cidr"):
        resources(target(flavour(virtual_links=links, connection_points={}), links=()))


def test_boot_data_is_a_file_and_each_stands_there_once() -> None:
    made_of = changed("base", changed("work", boot_data="#cloud-config\n{}"), boot_data="#!/bin/sh\n")
    spec = spec_of(target(made_of))
    assert sorted(spec.boot_files.values()) == ["#!/bin/sh\n", "#cloud-config\n{}"]
    template, files = rendered(spec, {})
    for name, text in (("base-0", "#!/bin/sh\n"), ("work-0", "#cloud-config\n{}"), ("work-1", "#cloud-config\n{}")):
        assert files[template["resources"][name]["properties"]["user_data"]["get_file"]] == text


def test_a_zone_is_said_only_when_one_was_granted() -> None:
    found = resources(target(zones={"id of work-1": "az2"}))
    assert found["work-1"]["properties"]["availability_zone"] == "az2"
    assert "availability_zone" not in found["work-0"]["properties"]


def test_granted_images_and_sizes_count_more_than_those_of_the_vnfd() -> None:
    found = resources(target(images={"work": "other"}, flavours={"work": "huge"}))["work-0"]["properties"]
    assert (found["image"], found["flavor"]) == ("other", "huge")


def test_rules_for_hosts_become_server_groups() -> None:
    together = PlacementRule(name="near", apart=False, scope="nfvi_node", targets=("base",))
    found = resources(target(flavour(placement=(apart("work", "net"), together))))
    assert found["apart:group"] == {"type": "OS::Nova::ServerGroup", "properties": {"policies": ["anti-affinity"]}}
    assert found["near:group"] == {"type": "OS::Nova::ServerGroup", "properties": {"policies": ["affinity"]}}
    for name, group in (("work-0", "apart:group"), ("work-1", "apart:group"), ("base-0", "near:group")):
        assert found[name]["properties"]["scheduler_hints"] == {"group": {"get_resource": group}}


def test_rules_for_zones_or_networks_are_for_the_nfvo_to_keep() -> None:
    rules = (apart("work", scope="zone"), apart("net", name="links"))
    assert resources(target(flavour(placement=rules))) == resources(target())


def test_machines_wait_for_all_machines_of_the_vdus_that_theirs_depends_on() -> None:
    found = resources(target(changed("base", depends_on=("work",))))
    assert found["base-0"]["depends_on"] == ["work:machines"]
    assert found["work:machines"] == {"type": "OS::Heat::None", "depends_on": ["work-0", "work-1"]}
    assert "depends_on" not in found["work-0"]


def test_the_template_says_what_it_is() -> None:
    template = spec_of(target()).template
    assert template is not None
    assert template["heat_template_version"] == "2021-04-16"
    assert template["description"] == (
        "VNF 11111111-2222-4333-8444-555555555555, generated by Slipway from VNFD vnfd, flavour simple."
    )


def test_it_goes_into_a_step_and_comes_out_the_same() -> None:
    spec = spec_of(target())
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(spec)), StackSpec) == spec
    assert set(msgspec.json.decode(msgspec.json.encode(spec))) == {"template", "vnfd_id"}


def test_a_template_of_300_machines_is_small() -> None:
    made_of = changed("work", boot_data="x" * 60_000)
    spec = spec_of(target(made_of, members=[f"work-{slot}" for slot in range(300)]))
    assert len(spec.boot_files) == 1
    assert len(msgspec.json.encode(spec.template)) < 400_000, "Heat takes 512 KiB"


slots = st.sets(st.integers(0, 12))


@given(slots, slots, st.booleans())
def test_a_scale_leaves_the_resources_of_all_others_as_they_are(before: set[int], after: set[int], zones: bool) -> None:
    rules = (apart("work"), PlacementRule(name="near", apart=False, scope="nfvi_node", targets=("base",)))
    made_of = changed("base", flavour(placement=rules), depends_on=("work",), boot_data="#!/bin/sh\n")
    granted = {f"id of work-{slot}": "az2" for slot in after} if zones else {}
    was, now = (
        resources(target(made_of, members=["base-0", *(f"work-{slot}" for slot in sorted(chosen))], zones=granted))
        for chosen in (before, after)
    )
    barrier = {"work:machines"}
    leaving, coming = ({f"work-{slot}" for slot in one} for one in (before - after, after - before))
    assert {name.partition(":")[0] for name in was.keys() - now.keys()} == leaving
    assert {name.partition(":")[0] for name in now.keys() - was.keys()} == coming
    both = (was.keys() & now.keys()) - barrier
    assert {name: was[name] for name in both} == {name: now[name] for name in both}


@given(st.permutations(["base-0", "work-0", "work-1", "work-2"]))
def test_the_order_of_members_changes_nothing(members: list[str]) -> None:
    assert msgspec.json.encode(spec_of(target(members=members))) == msgspec.json.encode(
        spec_of(target(members=sorted(members)))
    )


def test_what_can_be_made_is_not_refused() -> None:
    refuse(target())


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (target(changed("work", container=True)), "VDU work: it is a container"),
        (target(changed("work", flavour=None, cpus=2, memory_bytes=GIB)), "VDU work: it names no Nova flavor"),
        (target(changed("work", image=None)), "VDU work: neither it nor one of its block storages has an image"),
        (target(flavour(storages={"data": Storage(name="data", kind="object")})), "its storage data is of the kind"),
        (target(links=()), "extVirtualLinks: the connection point base_cp of VDU base has no network"),
        (target(flavour(placement=(apart("work"), apart("work", name="also")))), "VDU work: .* apart, also"),
        (
            target(changed("work", boot_order=("data",))),
            "VDU work: it boots from its own image, and boot_order",
        ),
        (target(changed("work", metadata={"key": "v" * 256})), "VDU work: kvp_data 'key' is more than the 255"),
        (target(changed("work", metadata={"": "v"})), "VDU work: kvp_data ''"),
        (target(flavour(placement=(apart("work", scope="zone"),))), "rule apart keeps VNFCs of work apart by zone"),
        (target(flavour(placement=(apart("work", scope="nfvi_pop"),))), "apart by nfvi_pop, and no NFVO"),
        (target(flavour(placement=(apart("work", name="a:b"),))), "placement rule 'a:b' has a ':' or '/'"),
        (target(flavour(virtual_links={"a/b": VirtualLink(name="a/b")})), "virtual link 'a/b' has a ':' or '/'"),
    ],
)
def test_what_no_template_can_say_is_refused_by_name(after: VnfTarget, reason: str) -> None:
    with pytest.raises(Unprocessable, match=reason):
        refuse(after)


def test_images_and_sizes_may_come_with_a_grant() -> None:
    after = target(changed("work", flavour=None, image=None))
    refuse(after, grant_follows=True)
    refuse(dataclasses.replace(after, images={"work": "granted"}, flavours={"work": "granted"}))
    with pytest.raises(Unprocessable, match="VDU work: it names no Nova flavor"):
        spec_of(after)
    asked = dataclasses.replace(change_to(after), grant_follows=True)
    OpenStackDriver().refuse(asked)
    assert [step.id for step in steps_of(asked, Found()).steps] == ["make stack"]


def test_a_connection_point_of_a_vdu_without_members_needs_no_network() -> None:
    refuse(target(members=["work-0"], links=()))


def test_two_resources_of_one_name_are_refused() -> None:
    with pytest.raises(Unprocessable, match="'work-0'"):
        resources(target(flavour(virtual_links={"work-0": VirtualLink(name="work-0")}, connection_points={})))
