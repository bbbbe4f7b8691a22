"""Change of the current package: the same VNF, described by a newer VNFD from now on.

Machines that the new VNFD makes from something else are made anew, one after another (package_renewal.py); all others
stay. The record follows at the very end: an operation that failed or was rolled back leaves the VNF on the package it
had.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from msgspec.structs import replace

from slipway.lcm.affected_resources import modifications
from slipway.lcm.coordination import with_coordination
from slipway.lcm.link_checks import check_links, check_managed_links, check_managed_stay, check_named_ports
from slipway.lcm.operation_rules import OperationRules, made_from
from slipway.lcm.package_renewal import check_parameters, chosen_vdus, renewal_of, turns_of
from slipway.lcm.targets import change_to, info_of, target_at
from slipway.lcm.unsupported import refuse_links_elsewhere, refuse_unsupported_links
from slipway.lcm.upgrade_parameters import OF_THIS_REQUEST
from slipway.model.connectivity import links_of, recorded_links, recorded_managed_links
from slipway.model.errors import BadRequest, Unprocessable
from slipway.model.instance import (
    ExtManagedVirtualLinkInfo,
    ExtVirtualLink,
    Instance,
    InstantiatedVnfInfo,
    VimConnectionInfo,
    VnfInstance,
)
from slipway.model.json_documents import check_bounds, merge_patch
from slipway.model.operation import OperationType
from slipway.model.requests import ChangePackageRequest
from slipway.model.situation import Situation
from slipway.model.target import Change
from slipway.vim_registry.choice import merged_connections, vim_key_of


def check(situation: Situation, request: ChangePackageRequest) -> None:
    vnf, new = situation.instance.vnf, situation.descriptor
    info = info_of(vnf)
    if (new.provider, new.product_name) != (vnf.vnf_provider, vnf.vnf_product_name):
        raise Unprocessable(
            f"vnfdId: the package is {new.product_name!r} of {new.provider!r}, the VNF is {vnf.vnf_product_name!r} of "
            f"{vnf.vnf_provider!r}; choose a package of the same product."
        )
    check_levels(situation, info)
    _check_members(situation, info)
    refuse_unsupported_links(request.ext_virtual_links, request.ext_managed_virtual_links)
    check_links(request.ext_virtual_links, situation.flavour)
    check_named_ports(request.ext_virtual_links, request.ext_virtual_links)
    check_managed_links(request.ext_managed_virtual_links, situation.flavour)
    check_managed_stay(info, request.ext_managed_virtual_links)
    _check_moves(info, request)
    check_parameters(situation, request)
    _connections(vnf, request)
    check_bounds(_merged(situation, request) | {"additional_params": parameters_after(situation.instance, request)})


def parameters_after(instance: Instance, request: ChangePackageRequest) -> dict[str, Any]:
    """The additionalParams that the instance keeps for later operations."""
    lasting = {name: value for name, value in request.additional_params.items() if name not in OF_THIS_REQUEST}
    merged: dict[str, Any] = merge_patch(instance.parameters, lasting)
    return merged


def _connections(vnf: VnfInstance, request: ChangePackageRequest) -> dict[str, VimConnectionInfo]:
    return merged_connections(vnf, request.vim_connection_info)


def _merged(situation: Situation, request: ChangePackageRequest) -> dict[str, dict[str, Any]]:
    vnf = situation.instance.vnf
    properties = {**situation.descriptor.configurable_properties, **vnf.vnf_configurable_properties}
    return {
        "vnf_configurable_properties": merge_patch(properties, request.vnf_configurable_properties),
        "extensions": merge_patch(vnf.extensions, request.extensions),
    }


def change(situation: Situation, request: ChangePackageRequest) -> Change:
    info = info_of(situation.instance.vnf)
    renewal, level = renewal_of(situation, request), situation.flavour.level_of(info)
    links, managed = _links(info, request), _managed(situation, request)
    after = target_at(situation, info.scale_levels, level, links, managed, renewal)
    after = dataclasses.replace(after, parameters=parameters_after(situation.instance, request))
    return dataclasses.replace(
        change_to(situation, after, renewal=renewal),
        batches=turns_of(situation, request),
        chosen_vdus=chosen_vdus(situation, request),
    )


def complete(situation: Situation, request: ChangePackageRequest) -> VnfInstance:
    vnf, new = situation.instance.vnf, situation.descriptor
    info = info_of(vnf)
    return replace(
        made_from(vnf, new),
        vim_connection_info=_connections(vnf, request),
        **_merged(situation, request),
        instantiated_vnf_info=replace(
            info,
            scale_status=situation.flavour.scale_status(info.scale_levels),
            max_scale_levels=situation.flavour.max_scale_levels,
            ext_virtual_link_info=recorded_links(_links(info, request), vim_key_of(vnf)),
            ext_managed_virtual_link_info=_managed(situation, request),
        ),
    )


def check_levels(situation: Situation, info: InstantiatedVnfInfo) -> None:
    """The VNF stays at its levels, so the new flavour must have them."""
    flavour = situation.flavour
    level = info.instantiation_level_id
    if level is not None and level not in flavour.levels:
        known = ", ".join(flavour.levels) or "none"
        raise _unfit(situation, f"no instantiation level {level!r}; it has: {known}")
    for aspect, now in info.scale_levels.items():
        if aspect not in flavour.aspects:
            raise _unfit(situation, f"no aspect {aspect!r}; it has: {', '.join(flavour.aspects) or 'none'}")
        if now > (highest := flavour.aspects[aspect].max_level):
            raise _unfit(
                situation, f"levels 0 to {highest} of aspect {aspect!r}, and the VNF is at {now}; scale it in first"
            )


def _check_members(situation: Situation, info: InstantiatedVnfInfo) -> None:
    """As many machines as there are: a change of package is no way to scale."""
    flavour = situation.flavour
    counts = flavour.counts(info.scale_levels, flavour.level_of(info))
    there = Counter(vnfc.vdu_id for vnfc in info.vnfc_resource_info if vnfc.slot is not None)
    pods = {vnfc.vdu_id for vnfc in info.vnfc_resource_info if vnfc.slot is None}
    if missing := [name for name in there if name not in flavour.vdus]:
        raise _unfit(
            situation, f"no VDU {missing[0]!r}, of which the VNF has machines; it has: {', '.join(flavour.vdus)}"
        )
    for name, vdu in flavour.vdus.items():
        count = 0 if vdu.container or name in pods else counts[name]
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
    """The present links; those of the request replace or extend them."""
    return tuple({link.id: link for link in (*links_of(info), *request.ext_virtual_links)}.values())


def _managed(situation: Situation, request: ChangePackageRequest) -> tuple[ExtManagedVirtualLinkInfo, ...]:
    """The present ones that the new VNFD still has, with those of the request."""
    vnf = situation.instance.vnf
    asked = recorded_managed_links(request.ext_managed_virtual_links, vim_key_of(vnf))
    links = {link.vnf_virtual_link_desc_id: link for link in (*info_of(vnf).ext_managed_virtual_link_info, *asked)}
    return tuple(link for name, link in links.items() if name in situation.flavour.virtual_links)


def _check_vim(vnf: VnfInstance, vim: VimConnectionInfo, request: ChangePackageRequest) -> None:
    refuse_links_elsewhere(request, vim_key_of(vnf), vim)


def _grant_attributes(situation: Situation, request: ChangePackageRequest) -> dict[str, Any]:
    return {"dst_vnfd_id": request.vnfd_id}


def _report(before: VnfInstance, after: VnfInstance, request: ChangePackageRequest) -> dict[str, Any]:
    return {"modifications_triggered_by_vnf_pkg_change": modifications(before, after)}


RULES = OperationRules(
    operation=OperationType.CHANGE_VNFPKG,
    request=ChangePackageRequest,
    hook="change_current_package",
    check=check,
    check_vim=_check_vim,
    connections=_connections,
    vnfd_id=lambda request: str(request.vnfd_id),
    change=change,
    coordinated=with_coordination,
    grant_attributes=_grant_attributes,
    complete=complete,
    parameters=parameters_after,
    report=_report,
)
