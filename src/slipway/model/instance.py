"""The VNF instance in the standard's own words (SOL003 3.3.1). Other dialects are translations of this."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from slipway.model.access import DEFAULT_PROJECT

INSTANTIATION_LEVEL = "instantiationLevelId"  # in instantiatedVnfInfo.metadata: v2 has no attribute for it


# Identifiers that others chose: nothing that a log, a database or a VIM chokes on.
Term = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]


class InstantiationState(StrEnum):
    NOT_INSTANTIATED = "NOT_INSTANTIATED"
    INSTANTIATED = "INSTANTIATED"


class SolStruct(
    msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True, frozen=True, kw_only=True
):
    """A type of the standard: camelCase outside, absent where it says nothing."""


class ResourceHandle(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    resource_id: str
    vim_connection_id: str | None = None
    resource_provider_id: str | None = None
    vim_level_resource_type: str | None = None


class VimConnectionInfo(SolStruct, frozen=True, kw_only=True):
    """How to reach a VIM. Either complete, or `vim_id` names a registered one. Secrets are references."""

    vim_type: str | None = None
    vim_id: str | None = None
    interface_info: dict[str, Any] = {}
    access_info: dict[str, Any] = {}
    extra: dict[str, Any] = {}


class ScaleInfo(SolStruct, frozen=True, kw_only=True):
    aspect_id: str
    scale_level: int


class IpAddresses(SolStruct, frozen=True, kw_only=True):
    """What was asked for. Exactly one of fixed_addresses, num_dynamic_addresses, address_range."""

    type: str
    fixed_addresses: tuple[str, ...] = ()
    num_dynamic_addresses: Annotated[int, Meta(ge=1)] | None = None
    address_range: dict[str, str] | None = None
    subnet_id: Term | None = None


class IpOverEthernet(SolStruct, frozen=True, kw_only=True):
    mac_address: str | None = None
    ip_addresses: tuple[IpAddresses, ...] = ()


class CpProtocolData(SolStruct, frozen=True, kw_only=True):
    layer_protocol: str
    ip_over_ethernet: IpOverEthernet | None = None


class CpConfig(SolStruct, frozen=True, kw_only=True):
    parent_cp_config_id: str | None = None
    link_port_id: str | None = None
    cp_protocol_data: tuple[CpProtocolData, ...] = ()


class VnfExtCpData(SolStruct, frozen=True, kw_only=True):
    cpd_id: str
    cp_config: dict[str, CpConfig] = {}


class ExtLinkPort(SolStruct, frozen=True, kw_only=True):
    """A port of that network, which exists already."""

    id: Term
    resource_handle: ResourceHandle


class ExtLinkPortInfo(ExtLinkPort, frozen=True, kw_only=True):
    """`cp_instance_id`: the external connection point (`ExtCpInfo`) that it is, if one is."""

    cp_instance_id: str | None = None


class ExtVirtualLink(SolStruct, frozen=True, kw_only=True):
    """A network that exists already and that CPs of the VNF connect to."""

    id: str
    resource_id: str
    vim_connection_id: str | None = None
    resource_provider_id: Term | None = None
    ext_cps: tuple[VnfExtCpData, ...] = ()
    ext_link_ports: tuple[ExtLinkPort, ...] = ()


class ExtVirtualLinkInfo(SolStruct, frozen=True, kw_only=True):
    id: str
    resource_handle: ResourceHandle
    ext_link_ports: tuple[ExtLinkPortInfo, ...] = ()
    current_vnf_ext_cp_data: tuple[VnfExtCpData, ...] = ()


class ExtManagedVirtualLink(SolStruct, frozen=True, kw_only=True):
    """A network that exists already and that an internal link of the VNF is, so that none is made for it."""

    id: Term
    vnf_virtual_link_desc_id: Term
    resource_id: Term
    vim_connection_id: Term | None = None
    resource_provider_id: Term | None = None
    vnf_link_port: tuple[dict[str, Any], ...] = ()
    ext_managed_multisite_virtual_link_id: Term | None = None


class ExtManagedVirtualLinkInfo(SolStruct, frozen=True, kw_only=True):
    id: str
    vnf_virtual_link_desc_id: str
    network_resource: ResourceHandle
    ext_managed_multisite_virtual_link_id: str | None = None


class CpAddress(SolStruct, frozen=True, kw_only=True):
    """`is_dynamic`: the VIM has chosen the addresses. It is there when they are."""

    type: str
    addresses: tuple[str, ...] = ()
    is_dynamic: bool | None = None
    subnet_id: str | None = None


class CpEthernet(SolStruct, frozen=True, kw_only=True):
    mac_address: str | None = None
    ip_addresses: tuple[CpAddress, ...] = ()


class CpProtocolInfo(SolStruct, frozen=True, kw_only=True):
    layer_protocol: str
    ip_over_ethernet: CpEthernet | None = None


class VnfcCpInfo(SolStruct, frozen=True, kw_only=True):
    id: str
    cpd_id: str
    cp_protocol_info: tuple[CpProtocolInfo, ...] = ()
    vnf_ext_cp_id: str | None = None
    vnf_link_port_id: str | None = None
    metadata: dict[str, Any] = {}


class ExtCpInfo(SolStruct, frozen=True, kw_only=True):
    id: str
    cpd_id: str
    cp_config_id: str
    cp_protocol_info: tuple[CpProtocolInfo, ...] = ()
    ext_link_port_id: str | None = None
    associated_vnfc_cp_id: str | None = None


class VnfcResourceInfo(SolStruct, frozen=True, kw_only=True):
    """One VNFC on the VIM."""

    id: str
    vdu_id: str
    compute_resource: ResourceHandle
    zone_id: str | None = None
    storage_resource_ids: tuple[str, ...] = ()
    vnfc_cp_info: tuple[VnfcCpInfo, ...] = ()
    metadata: dict[str, Any] = {}

    @property
    def slot(self) -> int | None:
        """Its number in its VDU, which a heal keeps. None for a pod: those are not numbered."""
        slot = self.metadata.get("slot")
        return None if slot is None else int(slot)


class VirtualLinkResourceInfo(SolStruct, frozen=True, kw_only=True):
    id: str
    vnf_virtual_link_desc_id: str
    network_resource: ResourceHandle


class VirtualStorageResourceInfo(SolStruct, frozen=True, kw_only=True):
    id: str
    virtual_storage_desc_id: str
    storage_resource: ResourceHandle
    metadata: dict[str, Any] = {}


class VnfcInfo(SolStruct, frozen=True, kw_only=True):
    id: str
    vdu_id: str
    vnfc_state: str
    vnfc_resource_info_id: str | None = None
    vnfc_configurable_properties: dict[str, Any] = {}


class InstantiatedVnfInfo(SolStruct, frozen=True, kw_only=True):
    flavour_id: str
    vnf_state: str
    scale_status: tuple[ScaleInfo, ...] = ()
    max_scale_levels: tuple[ScaleInfo, ...] = ()
    ext_cp_info: tuple[ExtCpInfo, ...] = ()
    ext_virtual_link_info: tuple[ExtVirtualLinkInfo, ...] = ()
    ext_managed_virtual_link_info: tuple[ExtManagedVirtualLinkInfo, ...] = ()
    vnfc_resource_info: tuple[VnfcResourceInfo, ...] = ()
    vnf_virtual_link_resource_info: tuple[VirtualLinkResourceInfo, ...] = ()
    virtual_storage_resource_info: tuple[VirtualStorageResourceInfo, ...] = ()
    vnfc_info: tuple[VnfcInfo, ...] = ()
    localization_language: str | None = None
    metadata: dict[str, Any] = {}

    @property
    def scale_levels(self) -> dict[str, int]:
        """By aspect."""
        return {status.aspect_id: status.scale_level for status in self.scale_status}

    @property
    def instantiation_level_id(self) -> str | None:
        """The level it was instantiated at, where the VNFD has levels."""
        return self.metadata.get(INSTANTIATION_LEVEL)

    @property
    def vnfc_resource_ids(self) -> dict[str, str]:
        """The id in `vnfc_resource_info` by each id that a VNFC is known by: that one, and its id in `vnfc_info`."""
        known = {vnfc.id: vnfc.id for vnfc in self.vnfc_resource_info}
        return known | {vnfc.id: vnfc.vnfc_resource_info_id for vnfc in self.vnfc_info if vnfc.vnfc_resource_info_id}

    def vnfcs_of(self, vdu_id: str) -> tuple[VnfcResourceInfo, ...]:
        return tuple(vnfc for vnfc in self.vnfc_resource_info if vnfc.vdu_id == vdu_id)


class VnfInstance(SolStruct, frozen=True, kw_only=True):
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
    """The standard's view plus what later operations need and the API does not show."""

    vnf: VnfInstance
    project: str = DEFAULT_PROJECT  # whose it is
    version: int = 1  # grows with every change: the ETag
    created_at: datetime
    # additionalParams of the instantiate request, so that later requests need not repeat them; secrets are references.
    parameters: dict[str, Any] = {}
