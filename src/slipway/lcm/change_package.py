"""Change of the current package: the same VNF, described by a newer VNFD from now on.

Machines stay as they are. What is new in them is the work of the new VNFD's hooks, or comes with the next heal, which
makes a machine from the new package's image. The record follows at the very end: an operation that failed or was rolled
back leaves the VNF on the package it had.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from msgspec.structs import replace

from slipway.lcm.record import member_of
from slipway.lcm.rules import Rules, made_from
from slipway.lcm.targets import change_to, check_links, highest_levels, info_of, level_of, scale_levels, target_at
from slipway.lcm.unsupported import refuse_unsupported
from slipway.lcm.vim_choice import connections_with, key_of
from slipway.model.connectivity import links_of, recorded_links
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.instance import ExtVirtualLink, Instance, InstantiatedVnfInfo, ScaleInfo, VnfInstance
from slipway.model.merge import check_bounds, merge_patch
from slipway.model.operation import OperationType
from slipway.model.requests import ChangePackageRequest
from slipway.model.situation import Situation
from slipway.model.target import Change


def check(situation: Situation, request: ChangePackageRequest) -> None:
    vnf, new = situation.instance.vnf, situation.descriptor
    info = info_of(vnf)
    if (new.provider, new.product_name) != (vnf.vnf_provider, vnf.vnf_product_name):
        raise Unprocessable(
            f"vnfdId: the package is {new.product_name!r} of {new.provider!r}, the VNF is {vnf.vnf_product_name!r} of "
            f"{vnf.vnf_provider!r}; choose a package of the same product."
        )
    _check_levels(situation, info)
    _check_members(situation, info)
    refuse_unsupported(request)
    check_links(request.ext_virtual_links, situation.flavour)
    _check_moves(info, request)
    connections_with(vnf, request.vim_connection_info)
    check_bounds(_merged(situation, request) | {"additional_params": parameters_after(situation.instance, request)})


def parameters_after(instance: Instance, request: ChangePackageRequest) -> dict[str, Any]:
    """What later operations need not be told again."""
    merged: dict[str, Any] = merge_patch(instance.parameters, request.additional_params)
    return merged


def _merged(situation: Situation, request: ChangePackageRequest) -> dict[str, dict[str, Any]]:
    vnf = situation.instance.vnf
    properties = {**situation.descriptor.configurable_properties, **vnf.vnf_configurable_properties}
    return {
        "vnf_configurable_properties": merge_patch(properties, request.vnf_configurable_properties),
        "extensions": merge_patch(vnf.extensions, request.extensions),
    }


def change(situation: Situation, request: ChangePackageRequest) -> Change:
    info = info_of(situation.instance.vnf)
    after = target_at(situation, scale_levels(info), level_of(situation), _links(info, request))
    parameters = parameters_after(situation.instance, request)
    return change_to(situation, dataclasses.replace(after, parameters=parameters))


def complete(situation: Situation, request: ChangePackageRequest) -> VnfInstance:
    vnf, new = situation.instance.vnf, situation.descriptor
    info, levels = info_of(vnf), scale_levels(info_of(vnf))
    return replace(
        made_from(vnf, new),
        vim_connection_info=connections_with(vnf, request.vim_connection_info),
        **_merged(situation, request),
        instantiated_vnf_info=replace(
            info,
            scale_status=tuple(
                ScaleInfo(aspect_id=name, scale_level=levels.get(name, 0)) for name in situation.flavour.aspects
            ),
            max_scale_levels=highest_levels(situation.flavour),
            ext_virtual_link_info=recorded_links(_links(info, request), key_of(vnf)),
        ),
    )


def _check_levels(situation: Situation, info: InstantiatedVnfInfo) -> None:
    """The VNF stays at its levels, so the new flavour must have them."""
    flavour = situation.flavour
    level = info.metadata.get("instantiationLevelId")
    if level is not None and level not in flavour.levels:
        known = ", ".join(flavour.levels) or "none"
        raise _unfit(situation, f"no instantiation level {level!r}; it has: {known}")
    for aspect, now in scale_levels(info).items():
        if aspect not in flavour.aspects:
            raise _unfit(situation, f"no aspect {aspect!r}; it has: {', '.join(flavour.aspects) or 'none'}")
        if now > (highest := flavour.aspects[aspect].max_level):
            raise _unfit(
                situation, f"levels 0 to {highest} of aspect {aspect!r}, and the VNF is at {now}; scale it in first"
            )


def _check_members(situation: Situation, info: InstantiatedVnfInfo) -> None:
    """As many machines as there are: a change of package is no way to scale."""
    flavour, level, levels = situation.flavour, level_of(situation), scale_levels(info)
    there = Counter(vnfc.vdu_id for vnfc in info.vnfc_resource_info if member_of(vnfc))
    if missing := [name for name in there if name not in flavour.vdus]:
        raise _unfit(
            situation, f"no VDU {missing[0]!r}, of which the VNF has machines; it has: {', '.join(flavour.vdus)}"
        )
    for name, vdu in flavour.vdus.items():
        count = 0 if vdu.container else flavour.members(name, levels, level)
        if count != there[name]:
            raise _unfit(
                situation,
                f"{count} members of VDU {name!r} at the present scale levels, and the VNF has {there[name]}; "
                "scale or heal it first, or choose a package that keeps the number",
            )


def _check_moves(info: InstantiatedVnfInfo, request: ChangePackageRequest) -> None:
    """Ports that are there stay where they are: the VIM would leave them, and the record would be wrong."""
    there = {cp.cpd_id for vnfc in info.vnfc_resource_info for cp in vnfc.vnfc_cp_info}
    now = {cp.cpd_id: link.resource_id for link in links_of(info) for cp in link.ext_cps}
    for at, link in enumerate(request.ext_virtual_links):
        for cp in link.ext_cps:
            if cp.cpd_id in there and now.get(cp.cpd_id) != link.resource_id:
                raise BadRequest(
                    f"extVirtualLinks[{at}].extCps: {cp.cpd_id!r} is connected to another network, and a change of the "
                    "package moves no ports; name only connection points that the new VNFD adds."
                )


def _unfit(situation: Situation, what: str) -> Unprocessable:
    return Unprocessable(f"vnfdId: flavour {situation.flavour.id!r} of the new VNFD has {what}.")


def _links(info: InstantiatedVnfInfo, request: ChangePackageRequest) -> tuple[ExtVirtualLink, ...]:
    """Those there are, and in their place or beside them those of the request."""
    return tuple({link.id: link for link in (*links_of(info), *request.ext_virtual_links)}.values())


RULES = Rules(OperationType.CHANGE_VNFPKG, ChangePackageRequest, "change_current_package", check, complete, change)
