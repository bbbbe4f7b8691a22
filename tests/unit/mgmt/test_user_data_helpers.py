"""The helpers that user data imports: stand-ins for the peer's modules, tried without a sandbox."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from tacker.common.utils import MemoryUnit
from tacker.sol_refactored.common import common_script_utils as values
from tacker.sol_refactored.common.exceptions import DeltaMissingInVnfd, InvalidVnfdFormat
from tacker.sol_refactored.common.vnf_instance_utils import json_merge_patch
from tacker.sol_refactored.infra_drivers.openstack import userdata_utils
from tacker.vnfm.lcm_user_data import utils
from v1_objects import V1Object

from tests.unit.mgmt.user_data_runs import INSTANTIATE, PACKAGE

VNFD = values.get_vnfd("vnfd-1", str(PACKAGE))
HOT = VNFD.get_base_hot("simple")
TEMPLATES = {**HOT["files"], "heat_template": HOT["template"]}
FLAVOUR = VNFD.get_vnfd_flavour("simple")
REQUEST = V1Object(INSTANTIATE)


# --- the first form


def test_a_request_of_the_first_form_has_attributes() -> None:
    (link,) = REQUEST.ext_virtual_links
    (address,) = link.ext_cps[0].cp_config[0].cp_protocol_data[0].ip_over_ethernet.ip_addresses
    assert (link.resource_id, address.fixed_addresses, address.subnet_id) == ("net-1", ["10.0.0.5"], "subnet-1")
    assert REQUEST.additional_params == {"image_name": "from the request", "other": 1}
    assert (REQUEST.instantiation_level_id, REQUEST.ext_managed_virtual_links) == (None, [])
    assert REQUEST["flavour_id"] == REQUEST.get("flavour_id") == REQUEST.to_dict()["flavour_id"] == "simple"
    assert REQUEST.to_dict()["ext_virtual_links"][0]["ext_cps"][0]["cpd_id"] == "worker_CP1"
    assert REQUEST.get("unheard_of", 3) == 3
    assert copy.deepcopy(REQUEST).flavour_id == "simple"
    with pytest.raises(AttributeError, match="no attribute 'unheard_of'; there is: flavour_id"):
        _ = REQUEST.unheard_of


def test_names_that_templates_read_are_found_in_servers_ports_disks_and_groups() -> None:
    vdus: dict[str, Any] = {"master": {}, "worker": {}, "worker_disk": {}}
    assert utils.create_initial_param_dict(TEMPLATES) == {"nfv": {"VDU": vdus, "CP": {"worker_CP1": {}}}}
    assert utils.create_initial_param_server_port_dict(TEMPLATES) == utils.create_initial_param_dict(TEMPLATES)
    size = {"type": "OS::Nova::Flavor", "properties": {"ram": {"get_param": ["nfv", "VDU", "sized", "flavor"]}}}
    template = {"parameters": {"nfv": {"type": "json"}}, "resources": {"size": size}}
    assert utils.create_initial_param_dict({"heat_template": template}) == {"nfv": {"VDU": {"sized": {}}, "CP": {}}}
    assert utils.create_initial_param_server_port_dict({"t": template}) == {"nfv": {"VDU": {}, "CP": {}}}
    assert utils.create_initial_param_dict({"t": {**template, "parameters": {}}}) == {"nfv": {"VDU": {}, "CP": {}}}


def test_sizes_flavors_and_images_come_from_the_vnfd() -> None:
    assert utils.create_vdu_flavor_dict(FLAVOUR) == {
        "master": {"vcpus": 2, "ram": 2048, "disk": 18},
        "worker": {"vcpus": 1, "ram": 512},
    }
    assert utils.create_vdu_flavor_capability_name_dict(FLAVOUR) == {"master": "m1.large", "worker": "m1.tiny"}
    assert utils.create_sw_image_dict(FLAVOUR) == {"master": "master-image", "worker_disk": "disk-image"}
    assert utils.create_vdu_image_dict({"master": [V1Object({"resourceIdentifier": "id-1"})]}) == {"master": "id-1"}


def test_networks_come_from_the_request() -> None:
    assert utils.create_cpd_vl_dict(TEMPLATES, REQUEST) == {"worker_CP1": "net-1"}
    addresses = [{"subnet": "subnet-1", "ip_address": "10.0.0.5"}]
    read = utils.create_initial_param_dict(TEMPLATES)
    assert utils.create_network_dict(REQUEST, read) == {"worker_CP1": {"network": "net-1", "fixed_ips": addresses}}
    assert utils.create_network_dict(REQUEST, {"nfv": {}}) == {}
    assert utils.create_network_dict(V1Object({"flavourId": "simple"}), read) == {}
    only = utils.create_final_param_dict({"nfv": {"CP": {"worker_CP1": {}}}}, {}, {}, {"worker_CP1": "net-1"})
    assert only == {"nfv": {"CP": {"worker_CP1": {"network": "net-1"}}}}


def test_parameters_that_the_template_has_are_passed_on() -> None:
    assert utils.get_diff_base_hot_param_from_api(TEMPLATES, REQUEST) == {"image_name": "from the request"}
    no = V1Object({"additionalParams": {"image_name": False}})
    assert utils.get_diff_base_hot_param_from_api(TEMPLATES, no) == {"image_name": False}


def test_members_are_counted_by_level() -> None:
    assert utils.create_desired_capacity_dict(TEMPLATES, FLAVOUR, REQUEST) == {"workers": 2}
    large = V1Object({"instantiationLevelId": "large"})
    assert utils.create_desired_capacity_dict(TEMPLATES, FLAVOUR, large) == {"workers": 6}
    now = V1Object({"scaleStatus": [{"aspectId": "workers", "scaleLevel": 3}]})
    assert utils.get_desired_capacity_dict(TEMPLATES, FLAVOUR, now) == {"workers": 8}
    assert utils.get_desired_capacity_dict(TEMPLATES, FLAVOUR, V1Object({})) == {}
    assert utils.get_desired_capacity_dict({"heat_template": {"resources": {}}}, FLAVOUR, now) == {}


@pytest.mark.parametrize(
    ("size", "unit", "number"),
    [("2 GiB", "MiB", 2048), ("1 gb", "MB", 1000), ("512 KiB", None, 524288), ("1.5 TB", "GB", 1500)],
)
def test_sizes_have_units(size: str, unit: str | None, number: int) -> None:
    assert MemoryUnit.convert_unit_size_to_num(size, unit) == number


@pytest.mark.parametrize("size", ["2GiB", "", "2 GiB more", "2 parsecs"])
def test_what_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(ValueError, match=r"is no size|is no unit"):
        MemoryUnit.convert_unit_size_to_num(size)


# --- the second form


def test_the_vnfd_is_read_by_flavour() -> None:
    assert list(VNFD.get_vdu_nodes("simple")) == ["master", "worker"]
    assert list(VNFD.get_storage_nodes("simple")) == ["worker_disk"]
    assert list(VNFD.get_virtual_link_nodes("simple")) == ["internal"]
    assert VNFD.get_vdu_cps("simple", "worker") == ["worker_CP1", "worker_CP2"]
    assert VNFD.get_vdu_storages(VNFD.get_vdu_nodes("simple")["worker"]) == ["worker_disk"]
    points = VNFD.get_vducp_nodes("simple")
    links = [VNFD.get_vl_name_from_cp("simple", points[name]) for name in ("worker_CP1", "worker_CP2")]
    assert links == [None, "internal"]
    assert VNFD.get_sw_image("simple") == {"master": "master-image", "worker_disk": "disk-image"}
    assert VNFD.get_sw_image_data("simple")["worker_disk"]["file"] == "../Files/images/disk.img"
    assert VNFD.get_compute_flavor("simple", "worker") == "m1.tiny"
    assert VNFD.tosca_meta["Entry-Definitions"] == "Definitions/top.yaml"
    assert set(VNFD.definitions) == {"simple.yaml", "top.yaml", "types.yaml"}


def test_policies_are_read_by_flavour() -> None:
    assert VNFD.get_default_instantiation_level("simple") == "small"
    assert VNFD.get_scale_info_from_inst_level("simple", "large") == {"workers": {"scale_level": 2}}
    assert [VNFD.get_vdu_num("simple", vdu, "large") for vdu in ("worker", "master")] == [6, 0]
    assert [VNFD.get_initial_delta("simple", vdu) for vdu in ("worker", "master")] == [2, None]
    assert VNFD.get_scale_vdu_and_num("simple", "workers") == {"worker": 2}
    assert VNFD.get_scale_vdu_and_num("simple", "others") == {}
    assert VNFD.get_max_scale_level("simple", "workers") == 3
    assert VNFD.get_anti_affinity_targets("simple") == [(["master", "worker"], "zone")]
    assert VNFD.get_affinity_targets("simple") == []


def test_a_flavour_that_no_file_names_is_the_only_one_with_vdus() -> None:
    assert list(VNFD.get_vdu_nodes("another")) == ["master", "worker"]


def test_what_a_package_lacks_is_named(tmp_path: Any) -> None:
    with pytest.raises(InvalidVnfdFormat, match="no VNFD"):
        values.get_vnfd("vnfd-1", str(tmp_path)).get_vdu_nodes("simple")
    broken = values.get_vnfd("vnfd-1", str(PACKAGE))
    delta = broken.get_policy_values_by_type("simple", "tosca.policies.nfv.VduScalingAspectDeltas")[0]
    delta["properties"]["deltas"] = {}
    with pytest.raises(DeltaMissingInVnfd, match="delta=two"):
        broken.get_scale_vdu_and_num("simple", "workers")


def test_a_grant_goes_before_the_vnfd() -> None:
    grant = {
        "zones": [{"id": "z", "zoneId": "nova"}],
        "addResources": [{"resourceDefinitionId": "a"}, {"resourceDefinitionId": "b", "zoneId": "z"}],
        "vimAssets": {
            "computeResourceFlavours": [{"vnfdVirtualComputeDescId": "worker", "vimFlavourId": "big"}],
            "softwareImages": [{"vnfdSoftwareImageId": "master", "vimSoftwareImageId": "id-1"}],
        },
    }
    assert [values.get_param_flavor(vdu, "simple", VNFD, grant) for vdu in ("worker", "master")] == ["big", "m1.large"]
    images = [values.get_param_image(name, "simple", VNFD, grant) for name in ("master", "worker_disk", "worker")]
    assert images == ["id-1", "disk-image", None]
    assert values.get_param_image("worker_disk", "simple", VNFD, grant, fallback_vnfd=False) is None
    assert userdata_utils.get_param_flavor("master", INSTANTIATE, VNFD, {}) == "m1.large"  # as it once was called
    asked = {"addResources": [{"id": id_, "type": "COMPUTE", "resourceTemplateId": "worker"} for id_ in "ab"]}
    assert [values.get_param_zone(vdu, asked, grant) for vdu in ("worker", "master")] == ["nova", None]
    assert [values.get_param_zone_by_vnfc(id_, grant) for id_ in "abc"] == [None, "nova", None]


def test_networks_and_addresses_are_those_asked_for_or_those_that_are_there() -> None:
    link = INSTANTIATE["extVirtualLinks"][0]
    granted = {"extVirtualLinks": [{**link, "resourceId": "net-2"}]}
    assert values.get_param_network("worker_CP1", {}, INSTANTIATE) == "net-1"
    assert values.get_param_network("worker_CP1", granted, INSTANTIATE) == "net-2"
    assert values.get_param_network("other", granted, INSTANTIATE) is None
    addresses = [{"ip_address": "10.0.0.5", "subnet": "subnet-1"}]
    assert values.get_param_fixed_ips("worker_CP1", {}, INSTANTIATE) == addresses
    assert values.get_param_fixed_ips("other", {}, INSTANTIATE) is None
    there = {"resourceHandle": {"resourceId": "net-3"}, "currentVnfExtCpData": link["extCps"]}
    inst = {"instantiatedVnfInfo": {"extVirtualLinkInfo": [there]}}
    assert values.get_param_network_from_inst("worker_CP1", inst) == "net-3"
    assert values.get_param_fixed_ips_from_inst("worker_CP1", inst) == addresses


TEMPLATE = """
resources:
  internal: { type: OS::Neutron::Net }
  internal_subnet: { type: OS::Neutron::Subnet, properties: { network: { get_resource: internal } } }
  port:
    type: OS::Neutron::Port
    properties: { network: { get_resource: internal }, tags: [ { get_resource: group } ] }
  group: { type: OS::Nova::ServerGroup }
"""


def test_a_network_that_exists_takes_the_place_of_one_in_the_template() -> None:
    port = {"type": "OS::Neutron::Port", "properties": {"network": "net-9", "tags": [{"get_resource": "group"}]}}
    expected = {"resources": {"port": port, "group": {"type": "OS::Nova::ServerGroup"}}}
    asked, present = yaml.safe_load(TEMPLATE), yaml.safe_load(TEMPLATE)
    link = {"id": "1", "vnfVirtualLinkDescId": "internal", "resourceId": "net-9"}
    values.apply_ext_managed_vls(asked, {"extManagedVirtualLinks": [{**link, "resourceId": "no"}]},
                                 {"extManagedVirtualLinks": [link]})  # fmt: skip
    info = {"vnfVirtualLinkDescId": "internal", "networkResource": {"resourceId": "net-9"}}
    values.apply_ext_managed_vls_from_inst(present, {"instantiatedVnfInfo": {"extManagedVirtualLinkInfo": [info]}})
    assert asked == present == expected


def test_a_merge_patch_changes_its_target() -> None:
    target = {"a": {"b": 1, "c": 2}, "d": 3}
    assert json_merge_patch(target, {"a": {"b": None, "e": {"f": 4}}, "d": [1]}) is target
    assert target == {"a": {"c": 2, "e": {"f": 4}}, "d": [1]}
