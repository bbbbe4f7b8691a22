"""Servers with a motto, in both of the forms that user data has."""

from typing import Any

from tacker.sol_refactored.infra_drivers.openstack.userdata_standard import StandardUserData
from tacker.vnfm.lcm_user_data import utils
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData


class ByServer(StandardUserData):
    """The second form: a resource for each server, and the motto beside what is usual."""

    @staticmethod
    def instantiate(req: Any, inst: Any, grant_req: Any, grant: Any, tmp_csar_dir: str) -> Any:
        stack = StandardUserData.instantiate(req, inst, grant_req, grant, tmp_csar_dir)
        stack["parameters"]["motto"] = req["additionalParams"]["motto"]
        return stack


class ByDict(AbstractUserData):
    """The first form, whose answer is all the parameters there are."""

    @staticmethod
    def instantiate(base_hot_dict: Any, vnfd_dict: Any, inst_req_info: Any, grant_info: Any) -> Any:
        sizes = utils.create_vdu_flavor_capability_name_dict(vnfd_dict)
        images = utils.create_sw_image_dict(vnfd_dict)
        networks = utils.create_cpd_vl_dict(base_hot_dict, inst_req_info)
        own = {"computeFlavourId": sizes["server"], "vcImageId": images["server"]}
        points = {"server_CP1-0": {"network": networks["server_CP1"]}}
        return {"nfv": {"VDU": {"server-0": own}, "CP": points}, "motto": inst_req_info.additional_params["motto"]}
