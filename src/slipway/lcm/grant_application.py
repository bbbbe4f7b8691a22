"""What a grant means for an operation: whether it fits what was asked, and what it changes. Pure.

Zones, images and sizes are for machines that are made now; those that stand keep what they have. Images and sizes are
remembered with the instance for as long as it is of the same package, so that a heal without a word of them keeps them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from slipway.lcm.grant_request import Definitions, Resources, difference
from slipway.lcm.operation_rules import OperationRules
from slipway.lcm.operations import OPERATIONS
from slipway.model.connectivity import connected
from slipway.model.descriptor import Storage, Vdu
from slipway.model.grant import Grant, GrantInfo, GrantRequest, ResourceType
from slipway.model.instance import VimConnectionInfo, VnfInstance
from slipway.model.requests import AnyRequest
from slipway.model.situation import Situation
from slipway.model.target import Change
from slipway.nfvo.reading import unusable

ASSETS = "vimAssets"  # in instantiatedVnfInfo.metadata


class Assets(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """Images and flavours that an NFVO chose, by VDU. They are valid for one package only."""

    vnfd_id: str
    software_images: dict[str, str] = {}
    compute_resource_flavours: dict[str, str] = {}


def check_grant(asked: GrantRequest, grant: Grant, vims: Iterable[str]) -> None:
    """Unprocessable when it is not an answer to what was asked. `vims`: what the VIM of the VNF is known by."""
    zones = {zone.id for zone in grant.zones}
    for at, info in enumerate(grant.add_resources):
        if info.zone_id is not None and info.zone_id not in zones:
            raise unusable(f"addResources[{at}].zoneId: its zones have no {info.zone_id!r}")
    _check_covered("addResources", asked.add_resources, grant.add_resources)
    _check_covered("removeResources", asked.remove_resources, grant.remove_resources)
    _check_covered("updateResources", asked.update_resources, grant.update_resources)
    _check_vim(asked, grant, set(vims))


def check_unchanged(situation: Situation, left: Resources) -> None:
    """Links and parameters of a grant must not lead to anything that no grant was asked for.

    A network that the grant itself gives for an internal link is not made.
    """
    if situation.granting is None:
        return
    change, asked = difference(situation, left), situation.granting.request
    managed = {link.vnf_virtual_link_desc_id for link in situation.granting.grant.ext_managed_virtual_links}
    to_make = [
        one for one in asked.add_resources if one.type != ResourceType.VL or one.resource_template_id not in managed
    ]
    for name, now, before in (
        ("make", change.add, to_make),
        ("remove", change.remove, asked.remove_resources),
        ("change", change.update, asked.update_resources),
    ):
        if other := {one.id for one in now} ^ {one.id for one in before}:
            raise unusable(
                "its extVirtualLinks or additionalParams would change what the operation was granted to "
                f"{name}: {', '.join(sorted(other)[:5])}"
            )


def with_grant(request: AnyRequest, grant: Grant, rules: OperationRules) -> AnyRequest:
    """The request as it was granted. An NFVO's links go before those of the request, its parameters behind them."""
    changes: dict[str, Any] = {}
    if grant.ext_virtual_links and hasattr(request, "ext_virtual_links"):
        changes["ext_virtual_links"] = connected(request.ext_virtual_links, grant.ext_virtual_links)
    if grant.ext_managed_virtual_links and hasattr(request, "ext_managed_virtual_links"):
        granted = {link.vnf_virtual_link_desc_id for link in grant.ext_managed_virtual_links}
        others = (one for one in request.ext_managed_virtual_links if one.vnf_virtual_link_desc_id not in granted)
        changes["ext_managed_virtual_links"] = (*others, *grant.ext_managed_virtual_links)
    if grant.additional_params:
        changes["additional_params"] = {**grant.additional_params, **request.additional_params}
    if rules.choose_vim and (vim := vim_in(grant)):
        changes["vim_connection_info"] = vim
    with_granted_placement: AnyRequest = replace(request, **changes) if changes else request
    return with_granted_placement


def vim_in(grant: Grant) -> dict[str, VimConnectionInfo]:
    """The VIM that the grant chooses; empty when it chooses none."""
    described = grant.vim_connection_info
    key = next(iter(_named(grant) or described), None)
    return {key: described[key]} if key in described else {}


def with_granted_placement(situation: Situation, change: Change) -> Change:
    """With the zones, images and sizes for what is new, as they were granted now or before."""
    if change.after is None:
        return change
    assets = _assets(situation)
    after = dataclasses.replace(
        change.after,
        zones=_zones(situation.granting.grant) if situation.granting else {},
        images=assets.software_images if assets else {},
        flavours=assets.compute_resource_flavours if assets else {},
    )
    return dataclasses.replace(change, after=after)


def with_granted_assets(vnf: VnfInstance, situation: Situation) -> VnfInstance:
    """The instance with the images and flavours of the grant recorded, for later operations."""
    info, assets = vnf.instantiated_vnf_info, _assets(situation)
    if info is None or (assets is None and ASSETS not in info.metadata):
        return vnf
    others = {name: value for name, value in info.metadata.items() if name != ASSETS}
    metadata = others if assets is None else {**others, ASSETS: msgspec.to_builtins(assets)}
    return replace(vnf, instantiated_vnf_info=replace(info, metadata=metadata))


def _assets(situation: Situation) -> Assets | None:
    info, vnfd_id = situation.instance.vnf.instantiated_vnf_info, situation.descriptor.vnfd_id
    images: dict[str, str] = {}
    flavours: dict[str, str] = {}
    if info and ASSETS in info.metadata:
        before = msgspec.convert(info.metadata[ASSETS], Assets)
        if before.vnfd_id == vnfd_id:
            images, flavours = before.software_images, before.compute_resource_flavours
    if situation.granting:
        new = situation.granting.grant.vim_assets
        by_image = {one.vnfd_software_image_id: one.vim_software_image_id for one in new.software_images}
        by_compute = {one.vnfd_virtual_compute_desc_id: one.vim_flavour_id for one in new.compute_resource_flavours}
        nodes: dict[str, Vdu | Storage] = {**situation.flavour.storages, **situation.flavour.vdus}
        for name, node in nodes.items():
            known_as = (name, *((node.image.id, node.image.name) if node.image else ()))
            # Volumes that stand were made from the first one that was granted, and are not to be made anew.
            keeps = name in images and name in situation.flavour.storages
            if not keeps and (image := next((by_image[one] for one in known_as if one in by_image), None)):
                images = {**images, name: image}
            if name in by_compute:
                flavours = {**flavours, name: by_compute[name]}
    if not images and not flavours:
        return None
    return Assets(vnfd_id=vnfd_id, software_images=images, compute_resource_flavours=flavours)


def _zones(grant: Grant) -> Mapping[str, str]:
    """The VIM's names of zones, by resource."""
    names = {zone.id: zone.zone_id for zone in grant.zones}
    return {info.resource_definition_id: names[info.zone_id] for info in grant.add_resources if info.zone_id}


def _check_covered(field: str, asked: Definitions, answered: tuple[GrantInfo, ...]) -> None:
    """A list in a grant has exactly what was asked for. Without the list everything is granted."""
    wanted, seen = {one.id for one in asked}, set[str]()
    for at, info in enumerate(answered):
        id_ = info.resource_definition_id
        if id_ not in wanted:
            raise unusable(f"{field}[{at}]: {id_!r} was not asked for")
        if id_ in seen:
            raise unusable(f"{field}[{at}]: {id_!r} is there twice")
        seen.add(id_)
    if seen and (missing := sorted(wanted - seen)):
        raise unusable(f"{field}: it leaves out {', '.join(missing[:5])}, which was asked for")


def _check_vim(asked: GrantRequest, grant: Grant, known: set[str]) -> None:
    """One VIM for a VNF: an instantiation may be sent to another than was chosen, later operations may not."""
    named, described = _named(grant), grant.vim_connection_info
    if len(named or described) > 1:
        raise unusable(f"a VNF is on one VIM only; it names {', '.join(sorted(named or described)[:5])}")
    for key in named or described:
        if key in described:
            is_ours = key in known or described[key].vim_id in known
            if OPERATIONS[asked.operation].choose_vim is None and not is_ours:
                raise unusable(f"vimConnectionInfo.{key}: the VNF is on another VIM, {', '.join(sorted(known))}")
        elif key not in known:
            raise unusable(f"vimConnectionInfo: it does not describe {key!r}, which it names")


def _named(grant: Grant) -> set[str]:
    assets = grant.vim_assets
    paths = (*grant.add_resources, *grant.zones, *assets.software_images, *assets.compute_resource_flavours)
    return {place.vim_connection_id for place in paths if place.vim_connection_id is not None}
