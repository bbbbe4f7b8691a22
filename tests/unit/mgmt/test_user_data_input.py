"""What user data is given where the peer's records and grants look different from Slipway's."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slipway.mgmt.user_data_input import user_data_input
from slipway.model.instance import ResourceHandle, VimConnectionInfo, VirtualStorageResourceInfo, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.secrets import reference
from slipway.model.user_data import UserDataArgs
from tests.unit.mgmt.user_data_runs import INSTANTIATE, OPERATION_ID, asked, vnf

ARGS = UserDataArgs(vnfd_id="vnfd-1", path="UserData/data.py", class_name="Data", operation="instantiate")
NEW = asked(OperationType.INSTANTIATE, add=[("worker", 0)])


def test_without_an_nfvo_all_is_granted_as_it_was_asked_for() -> None:
    given = user_data_input(ARGS, INSTANTIATE, vnf(), NEW, None, {"worker": "image-1"})
    assert given["grant"] == {
        "id": OPERATION_ID,
        "vnfInstanceId": vnf().id,
        "vnfLcmOpOccId": OPERATION_ID,
        "addResources": [{"resourceDefinitionId": "new-worker-0"}],
        "vimAssets": {"softwareImages": [{"vnfdSoftwareImageId": "worker", "vimSoftwareImageId": "image-1"}]},
    }
    assert "vimAssets" not in user_data_input(ARGS, INSTANTIATE, vnf(), NEW, None, {})["grant"]
    assert given["vnfInstance"]["instantiationState"] == "NOT_INSTANTIATED"


def test_a_change_of_package_removes_and_adds_those_vdus_that_the_request_names() -> None:
    change = asked(OperationType.CHANGE_VNFPKG, update=[("master", 0), ("worker", 0)], dst_vnfd_id="vnfd-2")
    args, there = replace(ARGS, operation="change_vnfpkg"), vnf(("master", 0), ("worker", 0))
    given = user_data_input(args, {"vnfdId": "vnfd-2"}, there, change, None, {})["grantRequest"]
    assert [one["resourceTemplateId"] for one in given["removeResources"]] == ["master", "worker"]
    assert given["removeResources"][1]["resource"] == {"resourceId": "server-worker-0"}
    assert given["addResources"] == [
        {"id": f"vnfc-{vdu}-0", "type": "COMPUTE", "resourceTemplateId": vdu} for vdu in ("master", "worker")
    ]
    assert given["dstVnfdId"] == "vnfd-2"
    named = {"vnfdId": "vnfd-2", "additionalParams": {"vdu_params": [{"vdu_id": "worker"}]}}
    given = user_data_input(args, named, there, change, None, {})["grantRequest"]
    assert [one["resourceTemplateId"] for one in given["addResources"]] == ["worker"]


def with_storage(there: VnfInstance) -> VnfInstance:
    info = there.instantiated_vnf_info
    assert info is not None
    storage = VirtualStorageResourceInfo(
        id="disk-1", virtual_storage_desc_id="worker_disk", storage_resource=ResourceHandle(resource_id="volume-1")
    )
    vnfc = replace(info.vnfc_resource_info[0], storage_resource_ids=("disk-1",))
    return replace(
        there,
        instantiated_vnf_info=replace(info, vnfc_resource_info=(vnfc,), virtual_storage_resource_info=(storage,)),
    )


def test_a_vnfc_has_its_number_its_size_and_its_images() -> None:
    nfv = {"VDU": {"worker": {"computeFlavourId": "m1.tiny"}, "worker_disk-3": {"vcImageId": "image-2"}}}
    args = replace(ARGS, operation="heal", stack_parameters={"nfv": nfv})
    given = user_data_input(args, {}, with_storage(vnf(("worker", 3))), asked(OperationType.HEAL), None, {})
    info = given["vnfInstance"]["instantiatedVnfInfo"]
    metadata = info["vnfcResourceInfo"][0]["metadata"]
    assert metadata.items() >= {"vdu_idx": 3, "flavor": "m1.tiny", "image-worker_disk": "image-2"}.items()
    assert info["metadata"] == {"nfv": nfv}


@pytest.mark.parametrize("nfv", ["******", ["worker"], {"VDU": "******"}, {"VDU": {"worker": "small"}}])
def test_an_nfv_that_heat_hides_or_that_has_another_form_is_no_error(nfv: Any) -> None:
    args = replace(ARGS, operation="heal", stack_parameters={"nfv": nfv})
    given = user_data_input(args, {}, vnf(("worker", 3), ("master", 0)), asked(OperationType.HEAL), None, {})
    vnfcs = given["vnfInstance"]["instantiatedVnfInfo"]["vnfcResourceInfo"]
    assert [one["metadata"]["vdu_idx"] for one in vnfcs] == [3, 0]
    assert given["stackParameters"] == {"nfv": nfv}


def test_keys_to_vims_are_not_given() -> None:
    key = VimConnectionInfo(vim_type="openstack", access_info={"user": "me", "password": reference("secret-1")})
    there = replace(vnf(), vim_connection_info={"vim": key})
    request = {**INSTANTIATE, "vimConnectionInfo": {"vim": {"accessInfo": {"password": reference("secret-1")}}}}
    given = user_data_input(ARGS, request, there, NEW, None, {})
    assert "secret-1" not in str(given)
    assert given["vnfInstance"]["vimConnectionInfo"]["vim"]["accessInfo"] == {"user": "me"}
