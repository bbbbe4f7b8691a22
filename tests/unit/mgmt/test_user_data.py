"""User data in both forms, written as for OpenStack Tacker, run in the sandbox: what it is given, what it answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tacker.sol_refactored.infra_drivers.openstack import userdata_utils
from tacker.vnfm.lcm_user_data import utils

from slipway.model.grant import Grant, Granting, VimAssets, VimImage
from slipway.model.operation import OperationType
from slipway.model.secrets import reference
from slipway.model.user_data import CLASS, FILE
from tests.script_sandbox import needs_sandbox
from tests.unit.mgmt.user_data_runs import (
    INSTANCE_ID,
    INSTANTIATE,
    SCALE_OUT,
    Context,
    Records,
    asked,
    stack,
    vnf,
)

pytestmark = [needs_sandbox, pytest.mark.usefixtures("place")]

PRESENT = {"nfv": {"VDU": {"worker": {"flavor": "m1.tiny"}}, "desired_capacity": {"workers": 2}}}

FIRST_FORM = """
import logging

import tacker.vnfm.lcm_user_data.utils as utils
from oslo_log import log
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData

LOG = log.getLogger(__name__)


class Data(AbstractUserData):
    @staticmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        print("people may read this")
        LOG.debug("and this")
        read = utils.create_initial_param_server_port_dict(base_hot_dict)
        filled = utils.create_final_param_dict(
            read,
            utils.create_vdu_flavor_capability_name_dict(vnfd_dict),
            utils.create_vdu_image_dict(grant_info),
            utils.create_network_dict(inst_req_info, read),
        )
        filled["nfv"]["desired_capacity"] = utils.create_desired_capacity_dict(base_hot_dict, vnfd_dict, inst_req_info)
        return {**filled, **utils.get_diff_base_hot_param_from_api(base_hot_dict, inst_req_info)}

    def heal(base_hot_dict, vnfd_dict, heal_vnf_request, vnf_instances, inst_vnf_info, param, vnfc_resource_info):
        param["nfv"]["told"] = {
            "templates": sorted(base_hot_dict),
            "vdus": sorted(name for name in vnfd_dict["topology_template"]["node_templates"] if "_" not in name),
            "cause": heal_vnf_request.cause,
            "instance": [vnf_instances.id, vnf_instances.vnf_metadata["owner"], vnf_instances.vim_connection_info],
            "levels": [status.scale_level for status in inst_vnf_info.scale_status],
            "params": inst_vnf_info.additional_params,
            "healed": [vnfc.compute_resource.resource_id for vnfc in vnfc_resource_info],
        }
        return param

    @staticmethod
    def scale(base_hot_dict, vnfd_dict, scale_vnf_request, vnf_instances, inst_vnf_info, param, resource_number):
        now = utils.get_desired_capacity_dict(base_hot_dict, vnfd_dict, inst_vnf_info)
        param["nfv"]["desired_capacity"] = {"now": now, scale_vnf_request.aspect_id: resource_number}
        return param
"""

SECOND_FORM = """
import os

import yaml
from tacker.sol_refactored.common import common_script_utils as values
from tacker.sol_refactored.common import vnf_instance_utils
from tacker.sol_refactored.infra_drivers.openstack import userdata_utils


class Data(userdata_utils.AbstractUserData):
    @staticmethod
    def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
        vnfd = values.get_vnfd(inst["vnfdId"], tmp_csar_dir)
        hot = vnfd.get_base_hot(req["flavourId"])
        nfv = {
            "read": values.init_nfv_dict(hot["template"]),
            "workers": values.get_param_capacity("worker", inst, grant_req),
            "image": values.get_param_image("worker_disk", req["flavourId"], vnfd, grant),
            "asked": [one["id"] for one in grant_req["addResources"]],
            "granted": [one["resourceDefinitionId"] for one in grant["addResources"]],
            "files": sorted(os.listdir(tmp_csar_dir)),
        }
        return {
            "template": yaml.safe_dump(hot["template"]),
            "parameters": {"nfv": vnf_instance_utils.json_merge_patch(nfv, {"read": {"VDU": None}})},
            "files": {name: yaml.safe_dump(template) for name, template in hot["files"].items()},
        }

    @staticmethod
    def scale(req, inst, grant_req, grant, tmp_csar_dir):
        return {"parameters": {"nfv": {"got": [req, inst, grant_req, grant]}}, "existing": True}
"""


async def test_the_first_form_gives_the_parameters_of_a_stack() -> None:
    made = await stack(Records(FIRST_FORM), images={"master": "image-1", "worker_disk": "image-2"})
    assert made == {
        "parameters": {
            "nfv": {
                "VDU": {
                    "master": {"flavor": "m1.large", "image": "image-1"},
                    "worker": {"flavor": "m1.tiny", "image": None},
                    "worker_disk": {"flavor": None, "image": "image-2"},
                },
                "CP": {
                    "worker_CP1": {
                        "network": "net-1",
                        "fixed_ips": [{"subnet": "subnet-1", "ip_address": "10.0.0.5"}],
                    }
                },
                "desired_capacity": {"workers": 2},
            },
            "image_name": "from the request",
        }
    }


NAMED_IMAGES = """
from tacker.vnfm.lcm_user_data import utils
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData


class Data(AbstractUserData):
    @staticmethod
    def instantiate(base_hot_dict, vnfd_dict, inst_req_info, grant_info):
        return utils.create_sw_image_dict(vnfd_dict)
"""


async def test_an_image_that_the_package_carries_has_the_name_that_the_vim_knows_in_the_vnfd_too() -> None:
    before = (await stack(Records(NAMED_IMAGES)))["parameters"]
    after = (await stack(Records(NAMED_IMAGES), images={"worker_disk": "slipway-1"}))["parameters"]
    assert after == {**before, "worker_disk": "slipway-1"} != before


async def test_the_first_form_is_told_what_is_healed() -> None:
    records = Records(
        FIRST_FORM,
        given={"vnfcInstanceId": ["info-worker-1"], "cause": "smoke"},
        recorded=vnf(("master", 0), ("worker", 0), ("worker", 1), scale_level=1),
    )
    made = await stack(records, "heal", stack_parameters=PRESENT, additional_params={"given": "once"})
    assert made["parameters"]["nfv"].pop("told") == {
        "templates": ["heat_template", "worker.yaml"],
        "vdus": ["internal", "master", "worker"],
        "cause": "smoke",
        "instance": [INSTANCE_ID, "me", []],
        "levels": [1],
        "params": {"given": "once"},
        "healed": ["server-worker-1"],
    }
    assert made == {"parameters": PRESENT}


async def test_the_first_form_is_told_how_many_members_there_will_be() -> None:
    records = Records(
        FIRST_FORM,
        given=SCALE_OUT,
        recorded=vnf(("master", 0), ("worker", 0), ("worker", 1)),
        asked=asked(OperationType.SCALE, add=[("worker", 2), ("worker", 3)]),
    )
    made = await stack(records, "scale", stack_parameters=PRESENT)
    assert made["parameters"]["nfv"]["desired_capacity"] == {"now": {"workers": 2}, "workers": 4}


async def test_the_second_form_gives_templates_and_parameters() -> None:
    made = await stack(Records(SECOND_FORM), images={"worker_disk": "image-2"})
    nfv = made["parameters"]["nfv"]
    assert nfv["read"]["CP"] == {"worker_CP1": {"network": None, "fixed_ips": {"0": {"ip_address": None}}}}
    assert "VDU" not in nfv["read"]
    assert (nfv["workers"], nfv["image"]) == (2, "image-2")
    assert nfv["asked"] == nfv["granted"] == ["new-master-0", "new-worker-0", "new-worker-1"]
    assert nfv["files"] == ["BaseHOT", "Definitions", "TOSCA-Metadata", "UserData"]
    assert made["template"]["heat_template_version"] == "2013-05-23"
    assert made["template"]["resources"]["workers"]["properties"]["max_size"] == 8
    assert made["files"].keys() == {"worker.yaml"}
    assert "OS::Neutron::Port" in made["files"]["worker.yaml"]
    assert made.keys() == {"template", "parameters", "files"}


async def test_the_second_form_is_given_record_and_grant_in_the_words_of_the_standard() -> None:
    grant = Grant(
        id="grant-1",
        vnf_instance_id=INSTANCE_ID,
        vnf_lcm_op_occ_id="op",
        vim_assets=VimAssets(software_images=(VimImage(vnfd_software_image_id="worker", vim_software_image_id="own"),)),
    )
    request = asked(OperationType.SCALE, add=[("worker", 1)])
    records = Records(
        SECOND_FORM,
        given=SCALE_OUT,
        recorded=vnf(("worker", 0)),
        asked=request,
        granted=Granting(request=request, grant=grant),
    )
    nfv = {"VDU": {"worker-0": {"computeFlavourId": "m1.tiny", "vcImageId": "image-1", "locationConstraints": "nova"}}}
    images = {"worker": "uploaded", "worker_disk": "image-2"}
    made = await stack(records, "scale", stack_parameters={"nfv": nfv}, images=images)
    req, inst, grant_req, granted = made["parameters"]["nfv"]["got"]
    assert req == {**SCALE_OUT, "additionalParams": {FILE: "UserData/data.py", CLASS: "Data"}}
    assert inst["instantiatedVnfInfo"]["metadata"] == {"nfv": nfv}
    assert inst["instantiatedVnfInfo"]["vnfcResourceInfo"][0]["metadata"] == {
        "slot": 0, "name": "worker-0", "vdu_idx": 0, "flavor": "m1.tiny", "zone": "nova", "image-worker": "image-1",
    }  # fmt: skip
    assert grant_req["addResources"] == [{"id": "new-worker-1", "type": "COMPUTE", "resourceTemplateId": "worker"}]
    assert granted["id"] == "grant-1"
    assert granted["vimAssets"]["softwareImages"] == [
        {"vnfdSoftwareImageId": "worker", "vimSoftwareImageId": "own"},
        {"vnfdSoftwareImageId": "worker_disk", "vimSoftwareImageId": "image-2"},
    ]
    assert made["existing"] is True


@pytest.mark.parametrize("code", [FIRST_FORM, SECOND_FORM])
async def test_what_a_class_has_no_method_for_it_leaves_to_slipway(code: str) -> None:
    records = Records(code, given={"extVirtualLinks": []}, recorded=vnf(("worker", 0)))
    assert await stack(records, "change_ext_conn") == {}
    assert await stack(records, "scale_rollback") == {}


@pytest.mark.parametrize(
    ("signature", "answer"),
    [
        ("req, inst, grant_req, grant, tmp_csar_dir", '{"parameters": {"seen": type(req).__name__}}'),
        ("a, b, c, d, e", '{"parameters": {"seen": type(a).__name__}}'),
        ("base_hot_dict, vnfd_dict, inst_req_info, grant_info", '{"seen": type(base_hot_dict).__name__}'),
    ],
)
async def test_a_class_with_no_base_is_told_by_what_its_method_takes(signature: str, answer: str) -> None:
    code = f"class Data:\n    @staticmethod\n    def instantiate({signature}):\n        return {answer}\n"
    assert await stack(Records(code)) == {"parameters": {"seen": "dict"}}


async def test_user_data_imports_what_lies_beside_it_and_what_is_built_in() -> None:
    code = """
    from UserData import beside
    from tacker.sol_refactored.infra_drivers.openstack import userdata_default

    class Data(userdata_default.DefaultUserData):
        @staticmethod
        def heal(*given):
            return {"parameters": {"nfv": {"word": beside.WORD, "before": Data.scale(*given)}}}
    """

    class WithMore(Records):
        async def unpack(self, operation_id: str, vnfd_id: str, directory: Any) -> None:
            await super().unpack(operation_id, vnfd_id, directory)
            (directory / "UserData" / "beside.py").write_text("WORD = 'from beside'")
            (directory / "UserData" / "beside.py").chmod(0o644)

    records = WithMore(code, given={}, recorded=vnf(("worker", 0)), asked=asked(OperationType.HEAL))
    made = await stack(records, "heal")
    assert made == {"parameters": {"nfv": {"word": "from beside", "before": {"parameters": {"nfv": {"VDU": {}}}}}}}


async def test_a_secret_is_given_in_clear_and_comes_back_as_a_reference() -> None:
    code = """
    class Data:
        @staticmethod
        def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
            word = req["additionalParams"]["password"]
            return {"parameters": {"length": len(word), "renamed": [word], "image_name": "plain"}}
    """
    given = {**INSTANTIATE, "additionalParams": {"password": reference("secret-1")}}
    made = await stack(Records(code, given=given), context=Context(secrets={"secret-1": "canary-word"}))
    assert made == {"parameters": {"length": 11, "renamed": [reference("secret-1")], "image_name": "plain"}}
    assert "canary-word" not in json.dumps(made)


async def test_the_example_of_the_documentation_runs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "contracts" / "user-data.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    made = await stack(Records(example, given={**INSTANTIATE, "flavourId": "groups"}))
    assert made["parameters"]["nfv"]["VDU"]["master"]["name"] == "master-of-2"
    for name in re.findall(r"`((?:create|get|apply|init|json)_\w+)`", page):
        assert any(hasattr(module, name) for module in (utils, userdata_utils)), name
