"""What a caller of v1 asks for, and the same in the core's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import UNSET, Meta, UnsetType

from slipway.api.v1 import LenientStruct
from slipway.api.v1.connectivity import ExtManagedVirtualLinkData, ExtVirtualLinkData, to_links, to_managed_links
from slipway.api.v1.vim_connections import VIM_TYPES, V1VimConnection, check_type, to_map
from slipway.model import requests as core
from slipway.model.errors import BadRequest
from slipway.model.operation import CancelMode, OperationType
from slipway.model.requests import Name, ScaleType, TerminationType, Text
from slipway.model.vim import Vim

MaybeEmpty = Annotated[str, Meta(max_length=255)]
AtMostOne = Annotated[tuple[V1VimConnection, ...], Meta(max_length=1)]
Params = dict[str, Any] | None


class CreateVnfRequest(LenientStruct, frozen=True, kw_only=True):
    vnfd_id: Name
    vnf_instance_name: MaybeEmpty | None = None
    vnf_instance_description: Text | None = None
    metadata: Params = None

    def translated(self) -> core.CreateRequest:
        return core.CreateRequest(
            vnfd_id=self.vnfd_id,
            vnf_instance_name=self.vnf_instance_name or None,
            vnf_instance_description=self.vnf_instance_description,
            metadata=self.metadata or {},
        )


class InstantiateVnfRequest(LenientStruct, frozen=True, kw_only=True):
    flavour_id: Name
    instantiation_level_id: Name | None = None
    ext_virtual_links: tuple[ExtVirtualLinkData, ...] | None = None
    ext_managed_virtual_links: tuple[ExtManagedVirtualLinkData, ...] | None = None
    vim_connection_info: AtMostOne | None = None
    localization_language: str | None = None
    additional_params: Params = None
    extensions: Params = None
    vnf_configurable_properties: Params = None

    def translated(self) -> core.InstantiateRequest:
        return core.InstantiateRequest(
            flavour_id=self.flavour_id,
            instantiation_level_id=self.instantiation_level_id,
            ext_virtual_links=to_links(self.ext_virtual_links or ()),
            ext_managed_virtual_links=to_managed_links(self.ext_managed_virtual_links or ()),
            vim_connection_info=to_map(self.vim_connection_info or ()),
            localization_language=self.localization_language,
            additional_params=self.additional_params or {},
            extensions=self.extensions or {},
            vnf_configurable_properties=self.vnf_configurable_properties or {},
        )


class TerminateVnfRequest(LenientStruct, frozen=True, kw_only=True):
    termination_type: TerminationType
    graceful_termination_timeout: Annotated[int, Meta(ge=0, le=86400)] | None = None
    additional_params: Params = None

    def translated(self) -> core.TerminateRequest:
        """The shortest grace there is lasts a second."""
        grace = self.graceful_termination_timeout
        return core.TerminateRequest(
            termination_type=self.termination_type,
            graceful_termination_timeout=None if grace is None else max(grace, 1),
            additional_params=self.additional_params or {},
        )


class ScaleVnfRequest(LenientStruct, frozen=True, kw_only=True):
    type: ScaleType
    aspect_id: Name
    number_of_steps: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    additional_params: Params = None

    def translated(self) -> core.ScaleRequest:
        return core.ScaleRequest(
            type=self.type,
            aspect_id=self.aspect_id,
            number_of_steps=self.number_of_steps or 1,
            additional_params=self.additional_params or {},
        )


class HealVnfRequest(LenientStruct, frozen=True, kw_only=True):
    """The ids are those of vnfcResourceInfo, which the core knows as well as those of vnfcInfo."""

    vnfc_instance_id: tuple[Name, ...] | Name | None = None
    cause: Text | None = None
    additional_params: Params = None

    def translated(self) -> core.HealRequest:
        named = self.vnfc_instance_id or ()
        return core.HealRequest(
            vnfc_instance_id=(named,) if isinstance(named, str) else named,
            cause=self.cause,
            additional_params=self.additional_params or {},
        )


class ChangeExtVnfConnectivityRequest(LenientStruct, frozen=True, kw_only=True):
    ext_virtual_links: Annotated[tuple[ExtVirtualLinkData, ...], Meta(min_length=1)]
    vim_connection_info: AtMostOne | None = None
    additional_params: Params = None

    def translated(self) -> core.ChangeExtConnRequest:
        return core.ChangeExtConnRequest(
            ext_virtual_links=to_links(self.ext_virtual_links),
            vim_connection_info=to_map(self.vim_connection_info or ()),
            additional_params=self.additional_params or {},
        )


class VnfcProperties(LenientStruct, frozen=True, kw_only=True):
    id: Name
    vnfc_configurable_properties: dict[str, Any]


class VnfInfoModificationRequest(LenientStruct, frozen=True, kw_only=True):
    vnf_instance_name: MaybeEmpty | UnsetType | None = UNSET
    vnf_instance_description: Text | UnsetType | None = UNSET
    vnfd_id: Name | UnsetType = UNSET
    vnf_pkg_id: Name | UnsetType = UNSET
    vnf_configurable_properties: dict[str, Any] | UnsetType | None = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    extensions: dict[str, Any] | UnsetType | None = UNSET
    vim_connection_info: tuple[V1VimConnection, ...] | UnsetType = UNSET
    vim_connection_info_delete_ids: tuple[Name, ...] | UnsetType = UNSET
    vnfc_info_modifications: tuple[VnfcProperties, ...] | UnsetType = UNSET

    def translated(self, vnfd_of: Callable[[str], str], vim_of: Callable[[str], Vim]) -> core.ModifyRequest:
        """`vnfd_of` gives the VNFD of a package, `vim_of` a registered VIM."""
        modifications = self.vnfc_info_modifications
        return core.ModifyRequest(
            vnf_instance_name=self.vnf_instance_name or (UNSET if self.vnf_instance_name is UNSET else None),
            vnf_instance_description=self.vnf_instance_description,
            vnfd_id=self._vnfd(vnfd_of),
            vnf_configurable_properties=self.vnf_configurable_properties,
            metadata=self.metadata,
            extensions=self.extensions,
            vim_connection_info=self._connections(vim_of),
            vnfc_info_modifications=UNSET
            if modifications is UNSET
            else tuple(
                core.VnfcInfoModification(id=one.id, vnfc_configurable_properties=one.vnfc_configurable_properties)
                for one in modifications
            ),
        )

    def _vnfd(self, vnfd_of: Callable[[str], str]) -> str | UnsetType:
        if self.vnf_pkg_id is UNSET:
            return self.vnfd_id
        vnfd_id = vnfd_of(self.vnf_pkg_id)
        if self.vnfd_id not in (UNSET, vnfd_id):
            raise BadRequest(f"vnfPkgId: the package has the VNFD {vnfd_id!r}, not the vnfdId given; name one of them.")
        return vnfd_id

    def _connections(self, vim_of: Callable[[str], Vim]) -> dict[str, Any] | UnsetType:
        """A merge patch: each entry says only what changes."""
        if self.vim_connection_info is UNSET and self.vim_connection_info_delete_ids is UNSET:
            return UNSET
        gone: dict[str, Any] = dict.fromkeys(self.vim_connection_info_delete_ids or ())
        return gone | {one.id: _changes(one, vim_of) for one in self.vim_connection_info or () if not one.names_no_vim}


class CancelVnfLcmOperationRequest(LenientStruct, frozen=True, kw_only=True):
    cancel_mode: CancelMode


def _changes(one: V1VimConnection, vim_of: Callable[[str], Vim]) -> dict[str, Any]:
    changes: dict[str, Any] = msgspec.to_builtins(one)
    del changes["id"]
    if one.vim_id:
        vim = vim_of(one.vim_id)
        check_type(one, vim)
        return changes | {"vimId": vim.id, "vimType": vim.vim_type}
    return changes | ({"vimType": VIM_TYPES.get(one.vim_type, one.vim_type)} if one.vim_type else {})


class OperationRequest(Protocol):
    def translated(self) -> core.AnyRequest: ...


OPERATIONS: Mapping[OperationType, type[OperationRequest]] = {
    OperationType.INSTANTIATE: InstantiateVnfRequest,
    OperationType.TERMINATE: TerminateVnfRequest,
    OperationType.SCALE: ScaleVnfRequest,
    OperationType.HEAL: HealVnfRequest,
    OperationType.CHANGE_EXT_CONN: ChangeExtVnfConnectivityRequest,
}
