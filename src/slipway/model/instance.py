"""The VNF instance in the standard's own words (SOL003 3.3.1). Other dialects are translations of this."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from slipway.model.access import DEFAULT_PROJECT


class InstantiationState(StrEnum):
    NOT_INSTANTIATED = "NOT_INSTANTIATED"
    INSTANTIATED = "INSTANTIATED"


class Wire(msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A type of the standard: camelCase outside, absent where it says nothing."""


class ResourceHandle(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    resource_id: str
    vim_connection_id: str | None = None
    vim_level_resource_type: str | None = None


class VimConnectionInfo(Wire, frozen=True, kw_only=True):
    """How to reach a VIM. Either complete, or `vim_id` names a registered one. Secrets are references."""

    vim_type: str | None = None
    vim_id: str | None = None
    interface_info: dict[str, Any] = {}
    access_info: dict[str, Any] = {}
    extra: dict[str, Any] = {}


class ScaleInfo(Wire, frozen=True, kw_only=True):
    aspect_id: str
    scale_level: int


class IpAddresses(Wire, frozen=True, kw_only=True):
    """What was asked for. Exactly one of fixed_addresses, num_dynamic_addresses, address_range."""

    type: str
    fixed_addresses: tuple[str, ...] = ()
    num_dynamic_addresses: int | None = None
    address_range: dict[str, str] | None = None
    subnet_id: str | None = None


class IpOverEthernet(Wire, frozen=True, kw_only=True):
    mac_address: str | None = None
    ip_addresses: tuple[IpAddresses, ...] = ()


class CpProtocolData(Wire, frozen=True, kw_only=True):
    layer_protocol: str
    ip_over_ethernet: IpOverEthernet | None = None


class CpConfig(Wire, frozen=True, kw_only=True):
    parent_cp_config_id: str | None = None
    link_port_id: str | None = None
    cp_protocol_data: tuple[CpProtocolData, ...] = ()


class VnfExtCpData(Wire, frozen=True, kw_only=True):
    cpd_id: str
    cp_config: dict[str, CpConfig] = {}


class ExtVirtualLink(Wire, frozen=True, kw_only=True):
    """A network that exists already and that CPs of the VNF connect to."""

    id: str
    resource_id: str
    vim_connection_id: str | None = None
    resource_provider_id: str | None = None
    ext_cps: tuple[VnfExtCpData, ...] = ()
    ext_link_ports: tuple[dict[str, Any], ...] = ()


class ExtVirtualLinkInfo(Wire, frozen=True, kw_only=True):
    id: str
    resource_handle: ResourceHandle
    current_vnf_ext_cp_data: tuple[VnfExtCpData, ...] = ()


class CpAddress(Wire, frozen=True, kw_only=True):
    """`is_dynamic`: the VIM has chosen the addresses. It is there when they are."""

    type: str
    addresses: tuple[str, ...] = ()
    is_dynamic: bool | None = None


class CpEthernet(Wire, frozen=True, kw_only=True):
    mac_address: str | None = None
    ip_addresses: tuple[CpAddress, ...] = ()


class CpProtocolInfo(Wire, frozen=True, kw_only=True):
    layer_protocol: str
    ip_over_ethernet: CpEthernet | None = None


class VnfcCpInfo(Wire, frozen=True, kw_only=True):
    id: str
    cpd_id: str
    cp_protocol_info: tuple[CpProtocolInfo, ...] = ()
    vnf_ext_cp_id: str | None = None
    vnf_link_port_id: str | None = None
    metadata: dict[str, Any] = {}


class ExtCpInfo(Wire, frozen=True, kw_only=True):
    id: str
    cpd_id: str
    cp_config_id: str
    cp_protocol_info: tuple[CpProtocolInfo, ...] = ()
    ext_link_port_id: str | None = None
    associated_vnfc_cp_id: str | None = None


class VnfcResourceInfo(Wire, frozen=True, kw_only=True):
    """One VNFC as it stands on the VIM. `metadata.slot` is its place in its VDU, which a heal keeps."""

    id: str
    vdu_id: str
    compute_resource: ResourceHandle
    zone_id: str | None = None
    storage_resource_ids: tuple[str, ...] = ()
    vnfc_cp_info: tuple[VnfcCpInfo, ...] = ()
    metadata: dict[str, Any] = {}


class VirtualLinkResourceInfo(Wire, frozen=True, kw_only=True):
    id: str
    vnf_virtual_link_desc_id: str
    network_resource: ResourceHandle


class VirtualStorageResourceInfo(Wire, frozen=True, kw_only=True):
    id: str
    virtual_storage_desc_id: str
    storage_resource: ResourceHandle
    metadata: dict[str, Any] = {}


class VnfcInfo(Wire, frozen=True, kw_only=True):
    id: str
    vdu_id: str
    vnfc_state: str
    vnfc_resource_info_id: str | None = None
    vnfc_configurable_properties: dict[str, Any] = {}


class InstantiatedVnfInfo(Wire, frozen=True, kw_only=True):
    flavour_id: str
    vnf_state: str
    scale_status: tuple[ScaleInfo, ...] = ()
    max_scale_levels: tuple[ScaleInfo, ...] = ()
    ext_cp_info: tuple[ExtCpInfo, ...] = ()
    ext_virtual_link_info: tuple[ExtVirtualLinkInfo, ...] = ()
    vnfc_resource_info: tuple[VnfcResourceInfo, ...] = ()
    vnf_virtual_link_resource_info: tuple[VirtualLinkResourceInfo, ...] = ()
    virtual_storage_resource_info: tuple[VirtualStorageResourceInfo, ...] = ()
    vnfc_info: tuple[VnfcInfo, ...] = ()
    localization_language: str | None = None
    metadata: dict[str, Any] = {}


class VnfInstance(Wire, frozen=True, kw_only=True):
    """`details` are the attributes that the standard leaves out of lists, unless they are asked for."""

    details: ClassVar = (
        "vnfConfigurableProperties",
        "vimConnectionInfo",
        "instantiatedVnfInfo",
        "metadata",
        "extensions",
    )

    id: str
    vnfd_id: str
    vnf_provider: str
    vnf_product_name: str
    vnf_software_version: str
    vnfd_version: str
    instantiation_state: InstantiationState
    vnf_instance_name: str | None = None
    vnf_instance_description: str | None = None
    vnf_configurable_properties: dict[str, Any] = {}
    vim_connection_info: dict[str, VimConnectionInfo] = {}
    instantiated_vnf_info: InstantiatedVnfInfo | None = None
    metadata: dict[str, Any] = {}
    extensions: dict[str, Any] = {}


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """The standard's view plus what later operations need and nobody outside sees."""

    vnf: VnfInstance
    project: str = DEFAULT_PROJECT  # whose it is
    version: int = 1  # grows with every change: the ETag
    created_at: datetime
    # additionalParams of the instantiate request, so that nobody has to repeat them; secrets are references.
    parameters: dict[str, Any] = {}
