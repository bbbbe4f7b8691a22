"""The base of user data of the second form, and its helpers: older packages call them by this module's name."""

from __future__ import annotations

import abc
from typing import Any

from tacker.sol_refactored.common.common_script_utils import (
    apply_ext_managed_vls,
    apply_ext_managed_vls_from_inst,
    get_current_capacity,
    get_param_capacity,
    get_param_fixed_ips,
    get_param_fixed_ips_from_inst,
    get_param_flavor,
    get_param_image,
    get_param_network,
    get_param_network_from_inst,
    get_param_zone,
    get_param_zone_by_vnfc,
    get_vnfd,
    init_nfv_dict,
)
from tacker.sol_refactored.common.exceptions import UserDataClassNotImplemented
from tacker.sol_refactored.common.vnf_instance_utils import json_merge_patch

__all__ = [
    "AbstractUserData",
    "apply_ext_managed_vls",
    "apply_ext_managed_vls_from_inst",
    "get_current_capacity",
    "get_param_capacity",
    "get_param_fixed_ips",
    "get_param_fixed_ips_from_inst",
    "get_param_flavor",
    "get_param_image",
    "get_param_network",
    "get_param_network_from_inst",
    "get_param_zone",
    "get_param_zone_by_vnfc",
    "get_vnfd",
    "init_nfv_dict",
    "json_merge_patch",
]


def _missing(req: Any, inst: Any, grant_req: Any, grant: Any, tmp_csar_dir: Any) -> Any:
    raise UserDataClassNotImplemented


class AbstractUserData(abc.ABC):  # noqa: B024 - they are abstract, only not by a decorator
    """Each method gets request, VNF instance, grant request, grant and the package's directory. It answers what a stack
    is created or updated with: `template`, `parameters`, `files`, `existing`."""

    instantiate = staticmethod(abc.abstractmethod(_missing))
    scale = staticmethod(abc.abstractmethod(_missing))
    scale_rollback = staticmethod(abc.abstractmethod(_missing))
    change_ext_conn = staticmethod(abc.abstractmethod(_missing))
    change_ext_conn_rollback = staticmethod(abc.abstractmethod(_missing))
    heal = staticmethod(abc.abstractmethod(_missing))
    change_vnfpkg = staticmethod(abc.abstractmethod(_missing))
    change_vnfpkg_rollback = staticmethod(abc.abstractmethod(_missing))
