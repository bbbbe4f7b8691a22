"""Granting in SOL003 3.3.1's words (clause 9): what an NFVO is asked before anything is touched, and its answer.

The answer is read by `nfvo/`, which leaves out what is not named here. lcm/grant_application.py checks whether it fits
what was asked.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from slipway.model.instance import ExtManagedVirtualLink, ExtVirtualLink, ResourceHandle, Term, VimConnectionInfo
from slipway.model.operation import OperationType


class ResourceType(StrEnum):
    COMPUTE = "COMPUTE"
    VL = "VL"
    STORAGE = "STORAGE"
    LINKPORT = "LINKPORT"


class IdType(StrEnum):
    GRANT = "GRANT"  # the id of a resource definition of the same request
    RES_MGMT = "RES_MGMT"  # the VIM's own id of what is there


class GrantRequestStruct(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    pass


class ResourceDefinition(GrantRequestStruct, frozen=True, kw_only=True):
    """`id` is the one that Slipway gives the thing, before it is made and for as long as it is there."""

    id: str
    type: ResourceType
    resource_template_id: str
    resource: ResourceHandle | None = None


class ConstraintResource(GrantRequestStruct, frozen=True, kw_only=True):
    id_type: IdType
    resource_id: str
    vim_connection_id: str | None = None


class PlacementConstraint(GrantRequestStruct, frozen=True, kw_only=True):
    affinity_or_anti_affinity: str
    scope: str
    resource: tuple[ConstraintResource, ...]


class GrantRequest(GrantRequestStruct, frozen=True, kw_only=True):
    vnf_instance_id: str
    vnf_lcm_op_occ_id: str
    vnfd_id: str
    dst_vnfd_id: str | None = None
    flavour_id: str | None = None
    instantiation_level_id: str | None = None
    operation: OperationType
    is_automatic_invocation: bool
    add_resources: tuple[ResourceDefinition, ...] = ()
    remove_resources: tuple[ResourceDefinition, ...] = ()
    update_resources: tuple[ResourceDefinition, ...] = ()
    placement_constraints: tuple[PlacementConstraint, ...] = ()
    additional_params: dict[str, Any] = {}
    links: dict[str, dict[str, str]] = msgspec.field(default_factory=dict, name="_links")


class GrantStruct(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    pass


class OnVim(GrantStruct, frozen=True, kw_only=True):
    vim_connection_id: Term | None = None  # a key of the grant's own vimConnectionInfo, or of the instance's


class ZoneInfo(OnVim, frozen=True, kw_only=True):
    """`id` is for references within the grant, `zone_id` is the VIM's."""

    id: Term
    zone_id: Term


class GrantInfo(OnVim, frozen=True, kw_only=True):
    resource_definition_id: Term
    zone_id: Term | None = None  # the id of a ZoneInfo


class VimFlavour(OnVim, frozen=True, kw_only=True):
    vnfd_virtual_compute_desc_id: Term
    vim_flavour_id: Term


class VimImage(OnVim, frozen=True, kw_only=True):
    vnfd_software_image_id: Term
    vim_software_image_id: Term


class VimAssets(GrantStruct, frozen=True, kw_only=True):
    compute_resource_flavours: tuple[VimFlavour, ...] = ()
    software_images: tuple[VimImage, ...] = ()


class Grant(GrantStruct, frozen=True, kw_only=True):
    """Secrets in it are references once it is stored."""

    id: Term
    vnf_instance_id: Term
    vnf_lcm_op_occ_id: Term
    vim_connection_info: dict[Term, VimConnectionInfo] = {}
    zones: tuple[ZoneInfo, ...] = ()
    add_resources: tuple[GrantInfo, ...] = ()
    remove_resources: tuple[GrantInfo, ...] = ()
    update_resources: tuple[GrantInfo, ...] = ()
    vim_assets: VimAssets = VimAssets()
    ext_virtual_links: tuple[ExtVirtualLink, ...] = ()
    ext_managed_virtual_links: tuple[ExtManagedVirtualLink, ...] = ()
    additional_params: dict[str, Any] = {}


class Granting(msgspec.Struct, frozen=True, kw_only=True):
    """The request for a grant and the grant, as they are stored with the operation."""

    request: GrantRequest
    grant: Grant
