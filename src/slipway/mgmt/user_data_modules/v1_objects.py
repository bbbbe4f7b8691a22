"""Requests and records as user data of the first form gets them: objects with the attributes of SOL003 2.6.1.

An attribute that is absent is there all the same: empty where it could have been a list or a mapping, otherwise None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

LISTS = frozenset({
    "addresses", "cp_config", "cp_protocol_data", "cp_protocol_info", "ext_cp_info", "ext_cps", "ext_link_ports",
    "ext_managed_virtual_link_info", "ext_managed_virtual_links", "ext_virtual_link_info", "ext_virtual_links",
    "fixed_addresses", "ip_addresses", "scale_status", "storage_resource_ids", "vim_connection_info",
    "virtual_storage_resource_info", "vnf_link_ports", "vnf_virtual_link_resource_info", "vnfc_cp_info", "vnfc_info",
    "vnfc_instance_id", "vnfc_resource_info",
})  # fmt: skip
MAPPINGS = frozenset({"access_info", "additional_params", "interface_info", "metadata", "vnf_metadata"})
OPTIONAL = frozenset({
    "associated_vnfc_cp_id", "cause", "cp_instance_id", "ext_link_port_id", "instance_id", "instantiated_vnf_info",
    "instantiation_level_id", "ip_over_ethernet", "is_dynamic", "link_port_id", "mac_address", "num_dynamic_addresses",
    "subnet_id", "vim_connection_id", "vim_id", "vim_level_resource_type", "vnf_ext_cp_id", "vnf_instance_description",
    "vnf_instance_name", "vnf_link_port_id",
})  # fmt: skip


class V1Object:
    """From a document of the API's second version, whose keys are camelCase. Read by attributes, or as a mapping."""

    def __init__(self, document: Mapping[str, Any], **more: Any) -> None:
        snake_case = {re.sub("(?<!^)([A-Z])", r"_\1", key).lower(): value for key, value in document.items()}
        vars(self).update({name: _inside(name, value) for name, value in snake_case.items()}, **more)

    def __getattr__(self, name: str) -> Any:
        """Of what is absent. It is kept: what a script adds to it stays."""
        if name not in LISTS | MAPPINGS | OPTIONAL:
            raise AttributeError(f"there is no attribute {name!r}; there is: {', '.join(vars(self))}")
        value: Any = [] if name in LISTS else {} if name in MAPPINGS else None
        vars(self)[name] = value
        return value

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)

    def to_dict(self) -> dict[str, Any]:
        return {name: _outside(value) for name, value in vars(self).items()}


def _inside(name: str, value: Any) -> Any:
    """Some lists of the first version are mappings in the second."""
    if name in MAPPINGS:
        return value
    if name in LISTS and isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [V1Object(item) if isinstance(item, dict) else item for item in value]
    return V1Object(value) if isinstance(value, dict) else value


def _outside(value: Any) -> Any:
    if isinstance(value, list):
        return [_outside(item) for item in value]
    return value.to_dict() if isinstance(value, V1Object) else value
