"""Each attribute of each request is refused by its name, which is tried here, or used: the table says where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.lcm.operations import OPERATIONS
from slipway.model.errors import Unprocessable
from slipway.model.instance import (
    CpConfig,
    CpProtocolData,
    ExtManagedVirtualLink,
    ExtVirtualLink,
    IpAddresses,
    IpOverEthernet,
    VimConnectionInfo,
    VnfExtCpData,
)
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
from tests.unit.lcm.situations import empty_instance, instantiated, situation

SOURCE = Path(__file__).parents[3] / "src" / "slipway"
CONFIG = "extVirtualLinks[0].extCps[0].cpConfig.a"
WITH_LINKS: tuple[tuple[type[Any], dict[str, Any]], ...] = (
    (InstantiateRequest, {"flavourId": "simple"}),
    (ChangeExtConnRequest, {}),
    (ChangePackageRequest, {"vnfdId": "d"}),
)
PORT = {"id": "p", "resourceHandle": {"resourceId": "r"}}


def link(**more: Any) -> dict[str, Any]:
    return {"extVirtualLinks": [{"id": "l", "resourceId": "n", **more}]}


def managed(**more: Any) -> dict[str, Any]:
    return {"extManagedVirtualLinks": [{"id": "m", "vnfVirtualLinkDescId": "net", "resourceId": "n", **more}]}


def config(**given: Any) -> dict[str, Any]:
    return link(extCps=[{"cpdId": "worker_ext", "cpConfig": {"a": given}}])


def addresses(**given: Any) -> dict[str, Any]:
    ethernet = {"ipAddresses": [{"type": "IPV4", **given}]}
    return config(cpProtocolData=[{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": ethernet}])


Refused = dict[tuple[type[Any], str], tuple[dict[str, Any], str]]  # what is asked, and the path that is named

# In a request of its own.
REFUSED: Refused = {
    (ExtManagedVirtualLink, "vnf_link_port"): (
        {"flavourId": "simple", **managed(vnfLinkPort=[{"vnfLinkPortId": "p"}])},
        "extManagedVirtualLinks[0].vnfLinkPort",
    ),
    (HealRequest, "heal_script"): ({"healScript": "heal.sh"}, "healScript"),
}
# In the links of each request that has some.
REFUSED_IN_LINKS: Refused = {
    (CpConfig, "parent_cp_config_id"): (config(parentCpConfigId="a"), f"{CONFIG}.parentCpConfigId"),
    (CpProtocolData, "layer_protocol"): (
        config(cpProtocolData=[{"layerProtocol": "IP_FOR_VIRTUAL_CP"}]),
        f"{CONFIG}.layerProtocol",
    ),
    (IpAddresses, "num_dynamic_addresses"): (addresses(numDynamicAddresses=2), f"{CONFIG}.numDynamicAddresses"),
    (IpAddresses, "address_range"): (
        addresses(addressRange={"minAddress": "10.0.0.5", "maxAddress": "10.0.0.9"}),
        f"{CONFIG}.addressRange",
    ),
}
# Only another VIM than that of the VNF is refused; see the test of its own.
VIM_OF_LINK = {(ExtVirtualLink, "vim_connection_id"), (ExtManagedVirtualLink, "vim_connection_id")}

PORTS, ASKED = "vim/machine_by_machine/wanted.py", "model/connectivity.py"
USED: dict[type[Any], dict[str, tuple[str, str]]] = {
    CreateRequest: {
        "vnfd_id": ("lcm/service.py", "request.vnfd_id"),
        "vnf_instance_name": ("lcm/service.py", "request.vnf_instance_name"),
        "vnf_instance_description": ("lcm/service.py", "request.vnf_instance_description"),
        "metadata": ("lcm/service.py", "request.metadata"),
    },
    InstantiateRequest: {
        "flavour_id": ("lcm/instantiate.py", "request.flavour_id"),
        "instantiation_level_id": ("lcm/instantiate.py", "request.instantiation_level_id"),
        "ext_virtual_links": ("lcm/instantiate.py", "request.ext_virtual_links"),
        "ext_managed_virtual_links": ("lcm/instantiate.py", "request.ext_managed_virtual_links"),
        "vim_connection_info": ("lcm/instantiate.py", "request.vim_connection_info"),
        "localization_language": ("lcm/instantiate.py", "request.localization_language"),
        "additional_params": ("lcm/instantiate.py", "parameters=request.additional_params"),
        "extensions": ("lcm/instantiate.py", "request.extensions"),
        "vnf_configurable_properties": ("lcm/instantiate.py", "request.vnf_configurable_properties"),
    },
    TerminateRequest: {
        "termination_type": ("lcm/terminate.py", "request.termination_type"),
        "graceful_termination_timeout": ("lcm/terminate.py", "request.graceful_termination_timeout"),
        "additional_params": ("cluster/request.py", "request.additional_params"),
    },
    ScaleRequest: {
        "type": ("model/requests.py", "self.type"),
        "aspect_id": ("lcm/scale.py", "request.aspect_id"),
        "number_of_steps": ("lcm/scale.py", "request.number_of_steps"),
        "additional_params": ("cluster/request.py", "request.additional_params"),
    },
    HealRequest: {
        "vnfc_instance_id": ("lcm/heal.py", "request.vnfc_instance_id"),
        "cause": (
            "lcm/service.py",
            "_new(kind, instance_id, msgspec.to_builtins(request))",
        ),  # operationParams shows it
        "additional_params": ("lcm/heal.py", "request.additional_params"),
    },
    ChangeExtConnRequest: {
        "ext_virtual_links": ("lcm/change_ext_conn.py", "request.ext_virtual_links"),
        "vim_connection_info": ("lcm/change_ext_conn.py", "request.vim_connection_info"),
        "additional_params": ("cluster/request.py", "request.additional_params"),
    },
    ChangePackageRequest: {
        "vnfd_id": ("lcm/change_package.py", "request.vnfd_id"),
        "ext_virtual_links": ("lcm/change_package.py", "request.ext_virtual_links"),
        "ext_managed_virtual_links": ("lcm/change_package.py", "request.ext_managed_virtual_links"),
        "vim_connection_info": ("lcm/change_package.py", "request.vim_connection_info"),
        "additional_params": ("lcm/change_package.py", "request.additional_params"),
        "extensions": ("lcm/change_package.py", "request.extensions"),
        "vnf_configurable_properties": ("lcm/change_package.py", "request.vnf_configurable_properties"),
    },
    ModifyRequest: {
        "vnf_instance_name": ("lcm/modify.py", "request.vnf_instance_name"),
        "vnf_instance_description": ("lcm/modify.py", "request.vnf_instance_description"),
        "vnfd_id": ("lcm/modify.py", "request.vnfd_id"),
        "vnf_configurable_properties": ("lcm/modify.py", '"vnf_configurable_properties"'),
        "metadata": ("lcm/modify.py", '"metadata"'),
        "extensions": ("lcm/modify.py", '"extensions"'),
        "vim_connection_info": ("lcm/modify.py", "request.vim_connection_info"),
        "vnfc_info_modifications": ("lcm/modify.py", "request.vnfc_info_modifications"),
    },
    VnfcInfoModification: {
        "id": ("lcm/modify.py", "change.id"),
        "vnfc_configurable_properties": ("lcm/modify.py", "change.vnfc_configurable_properties"),
    },
    ExtVirtualLink: {
        "id": (ASKED, "link.id"),
        "resource_id": (PORTS, "link.resource_id"),
        "resource_provider_id": (ASKED, "link.resource_provider_id"),
        "ext_link_ports": (ASKED, "link.ext_link_ports"),
        "ext_cps": (PORTS, "link.ext_cps"),
    },
    ExtManagedVirtualLink: {
        "id": (ASKED, "link.id"),
        "vnf_virtual_link_desc_id": (ASKED, "link.vnf_virtual_link_desc_id"),
        "resource_id": (ASKED, "link.resource_id"),
        "resource_provider_id": (ASKED, "link.resource_provider_id"),
        "ext_managed_multisite_virtual_link_id": (ASKED, "link.ext_managed_multisite_virtual_link_id"),
    },
    VnfExtCpData: {
        "cpd_id": (PORTS, "data.cpd_id"),
        "cp_config": ("model/connectivity.py", "_as_asked(cp).cp_config.items()"),
    },
    CpConfig: {
        "link_port_id": (ASKED, "configs[slot][1].link_port_id"),
        "cp_protocol_data": (ASKED, "config.cp_protocol_data"),
    },
    CpProtocolData: {"ip_over_ethernet": (ASKED, "data.ip_over_ethernet")},
    IpOverEthernet: {
        "mac_address": (ASKED, "one.mac_address"),
        "ip_addresses": (ASKED, "data.ip_over_ethernet.ip_addresses"),
    },
    IpAddresses: {
        "type": ("lcm/link_checks.py", "ips.type"),
        "fixed_addresses": (ASKED, "asked.fixed_addresses"),
        "subnet_id": (ASKED, "asked.subnet_id"),
    },
}
PLACES = [(kind, name, *place) for kind, table in USED.items() for name, place in table.items()]


RULES = {rules.request: rules for rules in OPERATIONS.values()}


def refusal(refuse: Callable[[], None]) -> str:
    with pytest.raises(Unprocessable) as caught:
        refuse()
    return caught.value.detail


def check(kind: type[Any], asked: dict[str, Any]) -> None:
    rules, request = RULES[kind], msgspec.convert(asked, kind)
    instance = empty_instance() if kind is InstantiateRequest else instantiated()[0]
    rules.check(situation(rules.operation, request, instance), request)


def test_each_attribute_of_each_request_is_in_one_table() -> None:
    known = {(kind, field.name) for kind in USED for field in msgspec.structs.fields(kind)}
    used = {(kind, name) for kind, name, *_ in PLACES}
    refused = {*REFUSED, *REFUSED_IN_LINKS, *VIM_OF_LINK}
    assert used | refused == known
    assert not used & refused


@pytest.mark.parametrize(("kind", "name"), REFUSED)
def test_what_does_nothing_is_refused_by_name(kind: type[Any], name: str) -> None:
    asked, path = REFUSED[kind, name]
    request = kind if kind in RULES else InstantiateRequest
    assert refusal(lambda: check(request, asked)).startswith(f"{path}: ")


@pytest.mark.parametrize(("request_kind", "needed"), WITH_LINKS)
@pytest.mark.parametrize(("kind", "name"), REFUSED_IN_LINKS)
def test_what_does_nothing_in_a_link_is_refused_in_each_request(
    kind: type[Any], name: str, request_kind: type[Any], needed: dict[str, Any]
) -> None:
    asked, path = REFUSED_IN_LINKS[kind, name]
    assert refusal(lambda: check(request_kind, needed | asked)).startswith(f"{path}: ")


@pytest.mark.parametrize(("request_kind", "needed"), WITH_LINKS)
def test_a_link_on_another_vim_is_refused_in_each_request(request_kind: type[Any], needed: dict[str, Any]) -> None:
    vnf, vim = instantiated()[0].vnf, VimConnectionInfo(vim_id="id-of-vim")

    def refuse(links: dict[str, Any]) -> None:
        request = msgspec.convert(needed | links, request_kind)
        RULES[request_kind].check_vim(vnf, vim, request)

    kinds = [("extVirtualLinks", link), *([("extManagedVirtualLinks", managed)] if needed else [])]
    for name, given in kinds:
        for known in ("vim", "id-of-vim"):
            refuse(given(vimConnectionId=known))
        refused = refusal(lambda: refuse(given(vimConnectionId="another")))  # noqa: B023 - called at once
        assert refused.startswith(f"{name}[0].vimConnectionId: ")


@pytest.mark.parametrize(("kind", "name", "module", "words"), PLACES)
def test_what_is_used_is_used_where_the_table_says(kind: type[Any], name: str, module: str, words: str) -> None:
    assert words in (SOURCE / module).read_text(), f"{kind.__name__}.{name} is not found in {module}"
