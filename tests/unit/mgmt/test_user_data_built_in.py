"""DefaultUserData and StandardUserData, which packages name as their bases: what goes into a stack, by operation."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from tacker.sol_refactored.common.exceptions import SolHttpError422
from tacker.sol_refactored.infra_drivers.openstack.userdata_default import DefaultUserData
from tacker.sol_refactored.infra_drivers.openstack.userdata_standard import StandardUserData

from tests.unit.mgmt.user_data_runs import INSTANTIATE, PACKAGE

DIRECTORY = str(PACKAGE)
Given = tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any], str]
ALL = [("master", 0), ("worker", 0), ("worker", 1)]
LINK: dict[str, Any] = INSTANTIATE["extVirtualLinks"][0]
MOVED = {"extVirtualLinks": [{**LINK, "resourceId": "net-2"}]}
GRANT: dict[str, Any] = {
    "zones": [{"id": "z", "zoneId": "nova"}],
    "addResources": [{"resourceDefinitionId": "new-worker-1", "zoneId": "z"}],
    "vimAssets": {"softwareImages": [{"vnfdSoftwareImageId": "worker_disk", "vimSoftwareImageId": "granted"}]},
}


def request(flavour: str) -> dict[str, Any]:
    return {**INSTANTIATE, "flavourId": flavour, "additionalParams": {"nfv": {"VDU": {"said": {"name": "by request"}}}}}


def computes(members: list[tuple[str, int]], *, new: bool = False) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{'new' if new else 'old'}-{vdu}-{slot}",
            "type": "COMPUTE",
            "resourceTemplateId": vdu,
            **({} if new else {"resource": {"resourceId": f"server-{vdu}-{slot}"}}),
        }
        for vdu, slot in members
    ]


def instance(flavour: str, nfv: dict[str, Any] | None = None) -> dict[str, Any]:
    vnfcs = [
        {
            "id": f"vnfc-{vdu}-{slot}",
            "vduId": vdu,
            "computeResource": {"resourceId": f"server-{vdu}-{slot}"},
            "metadata": {"vdu_idx": slot, "flavor": f"size of {vdu}", f"image-{vdu}": f"image of {vdu}"},
        }
        for vdu, slot in ALL
    ]
    link = {"id": "1", "resourceHandle": {"resourceId": "net-1"}, "currentVnfExtCpData": LINK["extCps"]}
    info = {
        "flavourId": flavour,
        "vnfcResourceInfo": vnfcs,
        "extVirtualLinkInfo": [link],
        "metadata": {"nfv": nfv or {}},
    }
    return {"id": "1", "vnfdId": "vnfd-1", "instantiatedVnfInfo": info}


NOT_INSTANTIATED = {"id": "1", "vnfdId": "vnfd-1"}
ADD_ALL = {"addResources": computes(ALL, new=True)}


# --- groups


def test_default_instantiate_fills_what_the_template_reads() -> None:
    made = DefaultUserData.instantiate(request("groups"), NOT_INSTANTIATED, ADD_ALL, GRANT, DIRECTORY)
    assert made["parameters"]["nfv"] == {
        "VDU": {
            "master": {"computeFlavourId": "m1.large", "vcImageId": "master-image", "locationConstraints": None},
            "worker": {"computeFlavourId": "m1.tiny", "desired_capacity": 2},
            "worker_disk": {"vcImageId": "granted"},
            "said": {"name": "by request"},
        },
        "CP": {
            "master_CP1": {"port": None},
            "worker_CP1": {"network": "net-1", "fixed_ips": [{"ip_address": "10.0.0.5"}]},
        },
    }
    assert yaml.safe_load(made["template"]).keys() == {"heat_template_version", "parameters", "resources"}
    assert made["files"] == {}


def test_default_counts_members_when_it_scales() -> None:
    asked = {"addResources": computes([("worker", 2), ("worker", 3)], new=True)}
    given: Given = ({}, instance("groups"), asked, {}, DIRECTORY)
    assert DefaultUserData.scale(*given) == {"parameters": {"nfv": {"VDU": {"worker": {"desired_capacity": 4}}}}}
    back = {"parameters": {"nfv": {"VDU": {"worker": {"desired_capacity": 2}}}}}
    assert DefaultUserData.scale_rollback(*given) == back
    assert DefaultUserData.heal(*given) == {"parameters": {"nfv": {}}}


def test_default_changes_connection_points_that_are_named_and_no_others() -> None:
    point = {"network": "net-2", "fixed_ips": [{"ip_address": "10.0.0.5"}]}
    given: Given = (MOVED, instance("groups"), {}, {}, DIRECTORY)
    assert DefaultUserData.change_ext_conn(*given) == {"parameters": {"nfv": {"CP": {"worker_CP1": point}}}}
    back = {"parameters": {"nfv": {"CP": {"worker_CP1": {**point, "network": "net-1"}}}}}
    assert DefaultUserData.change_ext_conn_rollback(*given) == back


def test_default_changes_sizes_and_images_with_the_package() -> None:
    given: Given = (MOVED, instance("groups"), {"dstVnfdId": "vnfd-2"}, GRANT, DIRECTORY)
    made = DefaultUserData.change_vnfpkg(*given)["parameters"]["nfv"]
    assert made["VDU"] == {
        "master": {"computeFlavourId": "m1.large", "vcImageId": "master-image"},
        "worker": {"computeFlavourId": "m1.tiny"},
        "worker_disk": {"vcImageId": "granted"},
    }
    assert made["CP"]["worker_CP1"]["network"] == "net-2"
    back = DefaultUserData.change_vnfpkg_rollback(*given)["parameters"]["nfv"]
    assert back["VDU"]["master"] == {"computeFlavourId": "size of master", "vcImageId": "image of master"}
    assert back["CP"]["worker_CP1"]["network"] == "net-1"


# --- a resource for each VNFC


def instantiated() -> dict[str, Any]:
    return StandardUserData.instantiate(request("copies"), NOT_INSTANTIATED, ADD_ALL, GRANT, DIRECTORY)


def test_standard_makes_a_resource_for_each_member() -> None:
    made = instantiated()
    resources = yaml.safe_load(made["template"])["resources"]
    assert resources.keys() == {"master-0", "worker-0", "worker-1", "internal"}
    read = {
        name: value["get_param"] for name, value in resources["worker-1"]["properties"].items() if "get_param" in value
    }
    assert read["flavor"] == ["nfv", "VDU", "worker-1", "computeFlavourId"]
    assert read["image"] == ["nfv", "VDU", "worker_disk-1", "vcImageId"]
    assert read["net1"] == ["nfv", "CP", "worker_CP1-1", "network"]
    nfv = made["parameters"]["nfv"]
    assert nfv["VDU"]["worker-0"] == {"computeFlavourId": "m1.tiny", "locationConstraints": None}
    assert nfv["VDU"]["worker-1"] == {"computeFlavourId": "m1.tiny", "locationConstraints": "nova"}
    assert nfv["VDU"]["worker_disk-1"] == {"vcImageId": "granted"}
    assert nfv["VDU"]["said"] == {"name": "by request"}
    assert nfv["CP"] == {"worker_CP1-0": {"network": "net-1"}, "worker_CP1-1": {"network": "net-1"}}
    assert made["files"].keys() == {"worker.yaml"}


def test_standard_gives_who_comes_the_lowest_number_that_is_free() -> None:
    """One that was healed is the newest, and leaves first whatever its number."""
    there = instance("copies")
    info = there["instantiatedVnfInfo"]
    info["vnfcResourceInfo"] = [one for one in info["vnfcResourceInfo"] if one["id"] != "vnfc-worker-0"]
    out = {"addResources": computes([("worker", 0), ("worker", 2)], new=True)}
    made = StandardUserData.scale({"type": "SCALE_OUT"}, there, out, {}, DIRECTORY)
    assert yaml.safe_load(made["template"])["resources"].keys() == {"worker-0", "worker-2", "internal"}


def test_standard_scales_out_behind_the_last_and_takes_out_who_leaves() -> None:
    out = {"addResources": computes([("worker", 2)], new=True)}
    given: Given = ({"type": "SCALE_OUT"}, instance("copies"), out, {}, DIRECTORY)
    made = StandardUserData.scale(*given)
    assert yaml.safe_load(made["template"])["resources"].keys() == {"worker-2", "internal"}
    assert made["parameters"]["nfv"] == {
        "VDU": {"worker-2": {"computeFlavourId": "m1.tiny"}, "worker_disk-2": {"vcImageId": "disk-image"}},
        "CP": {"worker_CP1-2": {"network": "net-1"}},
    }
    assert made.keys() == {"template", "parameters"}
    back = StandardUserData.scale_rollback(*given)
    assert yaml.safe_load(back["template"]) == {"resources": {"worker-2": None}}
    leaving = {"removeResources": computes([("worker", 1)])}
    made = StandardUserData.scale({"type": "SCALE_IN"}, instance("copies"), leaving, {}, DIRECTORY)
    assert {key: yaml.safe_load(made[key]) for key in made} == {"template": {"resources": {"worker-1": None}}}


def test_standard_moves_all_members_of_a_connection_point() -> None:
    nfv = instantiated()["parameters"]["nfv"]
    given: Given = (MOVED, instance("copies", nfv), {}, {}, DIRECTORY)
    moved = {"worker_CP1-0": {"network": "net-2"}, "worker_CP1-1": {"network": "net-2"}}
    assert StandardUserData.change_ext_conn(*given) == {"parameters": {"nfv": {"CP": moved}}}
    assert StandardUserData.change_ext_conn_rollback(*given) == {"parameters": {"nfv": nfv}}


def test_standard_heals_with_a_granted_image() -> None:
    nfv = instantiated()["parameters"]["nfv"]
    grant = {"vimAssets": {"softwareImages": [{"vnfdSoftwareImageId": "worker", "vimSoftwareImageId": "newer"}]}}
    asked = {"removeResources": computes([("worker", 1)])}
    before = copy.deepcopy(nfv["VDU"])
    healed = StandardUserData.heal({}, instance("copies", nfv), asked, grant, DIRECTORY)["parameters"]["nfv"]["VDU"]
    assert healed == {**before, "worker-1": {**before["worker-1"], "vcImageId": "newer"}}


def test_standard_makes_the_stack_anew_for_another_package() -> None:
    nfv = {
        "VDU": {name: {"computeFlavourId": "old", "vcImageId": "old"} for name in ("master-0", "worker-0", "worker-1")},
        "CP": {"worker_CP1-0": {"network": "net-0"}, "worker_CP1-1": {"network": "net-0"}},
    }
    asked = {"dstVnfdId": "vnfd-2", "removeResources": computes([("worker", 1)])}
    given: Given = ({}, instance("copies", copy.deepcopy(nfv)), asked, {}, DIRECTORY)
    made = StandardUserData.change_vnfpkg(*given)
    assert made["existing"] is False
    assert made["parameters"]["nfv"]["VDU"] == {
        "master-0": {"computeFlavourId": "old", "vcImageId": "old"},
        "worker-0": {"computeFlavourId": "old", "vcImageId": "old"},
        "worker-1": {"computeFlavourId": "m1.tiny", "vcImageId": "old"},
        "worker_disk-1": {"vcImageId": "disk-image"},
    }
    assert made["parameters"]["nfv"]["CP"] == nfv["CP"]
    assert yaml.safe_load(made["template"])["resources"].keys() == {"master-0", "worker-0", "worker-1", "internal"}
    back = StandardUserData.change_vnfpkg_rollback(*given)
    assert (back["template"], back["files"], back["existing"]) == (made["template"], made["files"], False)
    assert back["parameters"] == {"nfv": nfv}


def test_standard_names_a_vdu_that_the_template_lacks() -> None:
    with pytest.raises(SolHttpError422, match="no resource 'worker', which is a VDU of the VNFD"):
        StandardUserData.instantiate(request("groups"), NOT_INSTANTIATED, ADD_ALL, {}, DIRECTORY)
