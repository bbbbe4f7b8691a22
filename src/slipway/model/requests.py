"""What a caller asks for, in SOL003 3.3.1's words. Unknown fields and wrong types are refused with their path."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from slipway.model.instance import ExtManagedVirtualLink, ExtVirtualLink, VimConnectionInfo

Name = Annotated[str, Meta(min_length=1, max_length=255)]
Text = Annotated[str, Meta(max_length=4096)]


class Request(msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True, frozen=True):
    pass


class CreateRequest(Request, frozen=True, kw_only=True):
    vnfd_id: Name
    vnf_instance_name: Name | None = None
    vnf_instance_description: Text | None = None
    metadata: dict[str, Any] = {}


class InstantiateRequest(Request, frozen=True, kw_only=True):
    flavour_id: Name
    instantiation_level_id: Name | None = None
    ext_virtual_links: tuple[ExtVirtualLink, ...] = ()
    ext_managed_virtual_links: tuple[ExtManagedVirtualLink, ...] = ()
    vim_connection_info: dict[str, VimConnectionInfo] = {}
    localization_language: str | None = None
    additional_params: dict[str, Any] = {}
    extensions: dict[str, Any] = {}
    vnf_configurable_properties: dict[str, Any] = {}


class TerminationType(StrEnum):
    GRACEFUL = "GRACEFUL"
    FORCEFUL = "FORCEFUL"


class TerminateRequest(Request, frozen=True, kw_only=True):
    termination_type: TerminationType
    graceful_termination_timeout: Annotated[int, Meta(ge=1, le=86400)] | None = None
    additional_params: dict[str, Any] = {}


class ScaleType(StrEnum):
    SCALE_OUT = "SCALE_OUT"
    SCALE_IN = "SCALE_IN"


class ScaleRequest(Request, frozen=True, kw_only=True):
    type: ScaleType
    aspect_id: Name
    number_of_steps: Annotated[int, Meta(ge=1, le=10_000)] = 1
    additional_params: dict[str, Any] = {}

    def levels_after(self, levels: Mapping[str, int]) -> dict[str, int]:
        """The scale levels, by aspect, that it leads to from the present ones."""
        steps = self.number_of_steps if self.type is ScaleType.SCALE_OUT else -self.number_of_steps
        return {**levels, self.aspect_id: levels.get(self.aspect_id, 0) + steps}


class HealRequest(Request, frozen=True, kw_only=True):
    """Without `vnfc_instance_id`: the whole VNF. `additional_params.all`: its ports, volumes and networks, too."""

    vnfc_instance_id: tuple[Name, ...] = ()
    cause: Text | None = None
    heal_script: str | None = None
    additional_params: dict[str, Any] = {}


class ChangeExtConnRequest(Request, frozen=True, kw_only=True):
    """ChangeExtVnfConnectivityRequest: the links that are new or not as they were; all others stay."""

    ext_virtual_links: Annotated[tuple[ExtVirtualLink, ...], Meta(min_length=1)]
    vim_connection_info: dict[str, VimConnectionInfo] = {}
    additional_params: dict[str, Any] = {}


class ChangePackageRequest(Request, frozen=True, kw_only=True):
    """ChangeCurrentVnfPkgRequest: `vnfd_id` is that of the new package."""

    vnfd_id: Name
    ext_virtual_links: tuple[ExtVirtualLink, ...] = ()
    ext_managed_virtual_links: tuple[ExtManagedVirtualLink, ...] = ()
    vim_connection_info: dict[str, VimConnectionInfo] = {}
    additional_params: dict[str, Any] = {}
    extensions: dict[str, Any] = {}
    vnf_configurable_properties: dict[str, Any] = {}


class VnfcInfoModification(Request, frozen=True, kw_only=True):
    id: str
    vnfc_configurable_properties: dict[str, Any]


class ModifyRequest(Request, frozen=True, kw_only=True):
    """A merge patch (RFC 7396): absent keeps, null removes."""

    vnf_instance_name: Name | UnsetType | None = UNSET
    vnf_instance_description: Text | UnsetType | None = UNSET
    vnfd_id: Name | UnsetType = UNSET
    vnf_configurable_properties: dict[str, Any] | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    extensions: dict[str, Any] | UnsetType | None = UNSET
    vim_connection_info: dict[str, Any] | UnsetType = UNSET
    vnfc_info_modifications: tuple[VnfcInfoModification, ...] | UnsetType = UNSET

    @property
    def additional_params(self) -> dict[str, Any]:
        """The standard knows none of a modification."""
        return {}


AnyRequest = (
    InstantiateRequest
    | TerminateRequest
    | ScaleRequest
    | HealRequest
    | ChangeExtConnRequest
    | ChangePackageRequest
    | ModifyRequest
)
