"""Each attribute of a request is used, which the table says where, or refused by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.model.instance import CpConfig, CpProtocolData, ExtVirtualLink, IpAddresses, IpOverEthernet, VnfExtCpData
from slipway.model.requests import (
    ChangeExtConnRequest,
    ChangePackageRequest,
    CreateRequest,
    HealRequest,
    InstantiateRequest,
    ModifyRequest,
    ScaleRequest,
    TerminateRequest,
    VnfcInfoModification,
)

SOURCE = Path(__file__).parents[3] / "src" / "slipway"
REQUESTS: tuple[type[Any], ...] = (
    CreateRequest,
    InstantiateRequest,
    TerminateRequest,
    ScaleRequest,
    HealRequest,
    ChangeExtConnRequest,
    ChangePackageRequest,
    ModifyRequest,
    VnfcInfoModification,
    ExtVirtualLink,
    VnfExtCpData,
    CpConfig,
    CpProtocolData,
    IpOverEthernet,
    IpAddresses,
)
REFUSED = {
    "ext_managed_virtual_links",
    "heal_script",
    "resource_provider_id",
    "ext_link_ports",
    "parent_cp_config_id",
    "link_port_id",
    "subnet_id",
    "address_range",
}
# Where others are used. Told to whoever asks: recorded in the operation (`cause`), in the instance, or given to hooks.
USED = {
    "additional_params": ("cluster/roster.py", "request.additional_params"),
    "aspect_id": ("lcm/scale.py", "request.aspect_id"),
    "cause": ("lcm/front.py", "msgspec.to_builtins(request"),
    "cp_config": ("lcm/wanted.py", "cp_config"),
    "cp_protocol_data": ("lcm/wanted.py", "cp_protocol_data"),
    "cpd_id": ("lcm/wanted.py", "cpd_id"),
    "ext_cps": ("lcm/wanted.py", "ext_cps"),
    "ext_virtual_links": ("lcm/instantiate.py", "request.ext_virtual_links"),
    "extensions": ("lcm/instantiate.py", "request.extensions"),
    "fixed_addresses": ("lcm/wanted.py", "fixed_addresses"),
    "flavour_id": ("lcm/lifecycle.py", "request.flavour_id"),
    "graceful_termination_timeout": ("lcm/terminate.py", "request.graceful_termination_timeout"),
    "id": ("model/connectivity.py", "link.id"),
    "instantiation_level_id": ("lcm/instantiate.py", "request.instantiation_level_id"),
    "ip_addresses": ("lcm/wanted.py", "ethernet.ip_addresses"),
    "ip_over_ethernet": ("lcm/wanted.py", "data.ip_over_ethernet"),
    "layer_protocol": ("lcm/unsupported.py", "data.layer_protocol"),
    "localization_language": ("lcm/instantiate.py", "request.localization_language"),
    "mac_address": ("lcm/wanted.py", "ethernet.mac_address"),
    "metadata": ("lcm/front.py", "request.metadata"),
    "num_dynamic_addresses": ("lcm/unsupported.py", "ips.num_dynamic_addresses"),
    "number_of_steps": ("lcm/scale.py", "request.number_of_steps"),
    "resource_id": ("lcm/wanted.py", "resource_id"),
    "termination_type": ("lcm/terminate.py", "request.termination_type"),
    "type": ("lcm/outside.py", "ips.type"),
    "vim_connection_id": ("model/connectivity.py", "link.vim_connection_id"),
    "vim_connection_info": ("lcm/front.py", "request.vim_connection_info"),
    "vnf_configurable_properties": ("lcm/instantiate.py", "request.vnf_configurable_properties"),
    "vnf_instance_description": ("lcm/front.py", "request.vnf_instance_description"),
    "vnf_instance_name": ("lcm/front.py", "request.vnf_instance_name"),
    "vnfc_configurable_properties": ("lcm/modify.py", "change.vnfc_configurable_properties"),
    "vnfc_info_modifications": ("lcm/modify.py", "request.vnfc_info_modifications"),
    "vnfc_instance_id": ("lcm/heal.py", "request.vnfc_instance_id"),
    "vnfd_id": ("lcm/front.py", "request.vnfd_id"),
}
ALL = sorted({(kind.__name__, field.name) for kind in REQUESTS for field in msgspec.structs.fields(kind)})


@pytest.mark.parametrize(("request_name", "name"), ALL)
def test_each_attribute_is_used_or_refused(request_name: str, name: str) -> None:
    module, words = ("lcm/unsupported.py", name) if name in REFUSED else USED[name]
    assert words in (SOURCE / module).read_text(), f"{request_name}.{name} is not found in {module}"
