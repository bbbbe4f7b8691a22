"""What user data of a package is given, in the form in which OpenStack Tacker gives it. Pure.

There a grant is always asked for, of a service inside when there is no NFVO, and the record of an instance holds the
`nfv` parameter and each VNFC's number. So request, record and grant get here what scripts look for in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from slipway.mgmt.scripts import without_vims
from slipway.model.grant import Grant, GrantRequest, ResourceType
from slipway.model.instance import VnfcResourceInfo, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.user_data import CLASS, FILE, UserDataArgs


def user_data_input(
    args: UserDataArgs,
    request: dict[str, Any],
    vnf: VnfInstance,
    asked: GrantRequest,
    grant: Grant | None,
    images: Mapping[str, str],
) -> dict[str, Any]:
    """`asked` is what an NFVO was asked for, or would be; `images` what the package carries, by VDUs and storages."""
    return {
        "path": args.path,
        "class": args.class_name,
        "operation": args.operation,
        "request": _request(args, request),
        "vnfInstance": _instance(vnf, args.stack_parameters),
        "grantRequest": _grant_request(asked, request),
        "grant": _grant(grant, asked, images),
        "additionalParams": args.additional_params,
        "stackParameters": args.stack_parameters,
        "images": dict(images),
    }


def _request(args: UserDataArgs, request: dict[str, Any]) -> dict[str, Any]:
    """Each request names the user data there, and each scaling its steps."""
    named = {FILE: args.path, CLASS: args.class_name, **(request.get("additionalParams") or {})}
    steps = {"numberOfSteps": 1} if args.operation.startswith("scale") else {}
    return without_vims({**steps, **request, "additionalParams": named})


def _instance(vnf: VnfInstance, parameters: Mapping[str, Any]) -> dict[str, Any]:
    document = without_vims(msgspec.to_builtins(vnf))
    if vnf.instantiated_vnf_info is None:
        return document
    info, nfv = document["instantiatedVnfInfo"], _mapping(parameters.get("nfv"))
    info["metadata"] = {**info.get("metadata", {}), "nfv": nfv}
    storages = {
        storage.id: storage.virtual_storage_desc_id
        for storage in vnf.instantiated_vnf_info.virtual_storage_resource_info
    }
    for written, vnfc in zip(
        info.get("vnfcResourceInfo", ()), vnf.instantiated_vnf_info.vnfc_resource_info, strict=True
    ):
        names = [vnfc.vdu_id, *(storages[one] for one in vnfc.storage_resource_ids if one in storages)]
        written["metadata"] = {**written.get("metadata", {}), **_metadata(vnfc, names, nfv)}
    return document


def _metadata(vnfc: VnfcResourceInfo, names: list[str], nfv: Mapping[str, Any]) -> dict[str, Any]:
    """`names` are those of its VDU and storages. In `nfv` they have its number, or stand for all members."""
    vdus = _mapping(nfv.get("VDU"))
    read = {name: _mapping(vdus.get(f"{name}-{vnfc.slot}") or vdus.get(name)) for name in names}
    own = read[vnfc.vdu_id]
    known = {
        "vdu_idx": vnfc.slot,
        "flavor": own.get("computeFlavourId"),
        "zone": own.get("locationConstraints"),
        **{f"image-{name}": values.get("vcImageId") for name, values in read.items()},
    }
    return {key: value for key, value in known.items() if value is not None}


def _mapping(value: Any) -> Mapping[str, Any]:
    """Empty where it is none: Heat shows stars for a hidden parameter, and user data may have set anything."""
    return value if isinstance(value, Mapping) else {}


def _grant_request(asked: GrantRequest, request: dict[str, Any]) -> dict[str, Any]:
    """VNFCs that a change of the package updates are removed and added there, of those VDUs that the request names."""
    document: dict[str, Any] = msgspec.to_builtins(asked)
    if asked.operation is not OperationType.CHANGE_VNFPKG:
        return document
    named = {one.get("vdu_id") for one in (request.get("additionalParams") or {}).get("vdu_params") or ()}
    updated = [
        msgspec.to_builtins(one)
        for one in asked.update_resources
        if one.type is ResourceType.COMPUTE and (not named or one.resource_template_id in named)
    ]
    anew = [{key: value for key, value in one.items() if key != "resource"} for one in updated]
    return {
        **document,
        "addResources": [*document.get("addResources", ()), *anew],
        "removeResources": [*document.get("removeResources", ()), *updated],
    }


def _grant(grant: Grant | None, asked: GrantRequest, images: Mapping[str, str]) -> dict[str, Any]:
    """Without an NFVO all is granted as it was asked for. What an NFVO says of images goes first."""
    if grant:
        document = without_vims(msgspec.to_builtins(grant))
    else:
        document = {
            "id": asked.vnf_lcm_op_occ_id,
            "vnfInstanceId": asked.vnf_instance_id,
            "vnfLcmOpOccId": asked.vnf_lcm_op_occ_id,
            "addResources": [{"resourceDefinitionId": one.id} for one in asked.add_resources],
        }
    granted = {one.vnfd_software_image_id for one in grant.vim_assets.software_images} if grant else set[str]()
    more = [
        {"vnfdSoftwareImageId": name, "vimSoftwareImageId": image}
        for name, image in images.items()
        if name not in granted
    ]
    if more:
        assets = document.setdefault("vimAssets", {})
        assets["softwareImages"] = [*assets.get("softwareImages", ()), *more]
    return document
