"""Helpers for user data of the second form: what of request, grant and VNFD goes into the `nfv` parameter of a stack.

A grant goes before the request and before the VNFD.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tacker.sol_refactored.common.vnfd_utils import Vnfd

Document = dict[str, Any]


def get_vnfd(vnfd_id: str, csar_dir: str) -> Vnfd:
    vnfd = Vnfd(vnfd_id)
    vnfd.init_from_csar_dir(csar_dir)
    return vnfd


def init_nfv_dict(hot_template: Document) -> Document:
    """All that the properties of a template's resources read of `nfv`, each as None."""
    nfv: Document = {}
    for resource in (hot_template.get("resources") or {}).values():
        for name, *path in _parameters_read(resource.get("properties")):
            if name != "nfv" or len(path) < 3:
                continue
            inside = nfv
            for key in path[:-1]:
                inside = inside.setdefault(key, {})
            inside[path[-1]] = None
    return nfv


def _parameters_read(value: Any) -> Iterator[list[Any]]:
    """Every `get_param` that goes into a parameter."""
    if isinstance(value, list):
        for item in value:
            yield from _parameters_read(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "get_param":
                yield from _parameters_read(item)
            elif isinstance(item, list) and item:
                yield item


# --- VDUs


def get_param_flavor(vdu_name: str, flavour_id: str | Document, vnfd: Vnfd, grant: Document) -> str | None:
    """`flavour_id` may also be the request that names it, as helpers once took it."""
    for granted in _assets(grant, "computeResourceFlavours"):
        if granted["vnfdVirtualComputeDescId"] == vdu_name:
            return str(granted["vimFlavourId"])
    return vnfd.get_compute_flavor(_flavour(flavour_id), vdu_name)


def get_param_image(
    vdu_name: str, flavour_id: str | Document, vnfd: Vnfd, grant: Document, fallback_vnfd: bool = True
) -> str | None:
    for granted in _assets(grant, "softwareImages"):
        if granted["vnfdSoftwareImageId"] == vdu_name:
            return str(granted["vimSoftwareImageId"])
    return vnfd.get_sw_image(_flavour(flavour_id)).get(vdu_name) if fallback_vnfd else None


def _assets(grant: Document, kind: str) -> list[Document]:
    return (grant.get("vimAssets") or {}).get(kind) or []


def _flavour(named: str | Document) -> str:
    return named if isinstance(named, str) else named["flavourId"]


def get_param_zone(vdu_name: str, grant_req: Document, grant: Document) -> str | None:
    """The first one granted to a member of the VDU."""
    asked = (one for one in grant_req.get("addResources", ()) if one.get("resourceTemplateId") == vdu_name)
    return next(filter(None, (get_param_zone_by_vnfc(one["id"], grant) for one in asked)), None)


def get_param_zone_by_vnfc(res_id: str, grant: Document) -> str | None:
    zones = {zone["id"]: zone["zoneId"] for zone in grant.get("zones", ())}
    granted = {one["resourceDefinitionId"]: one.get("zoneId") for one in grant.get("addResources", ())}
    return zones.get(granted.get(res_id))


def get_current_capacity(vdu_name: str, inst: Document) -> int:
    vnfcs = (inst.get("instantiatedVnfInfo") or {}).get("vnfcResourceInfo", ())
    return sum(vnfc["vduId"] == vdu_name for vnfc in vnfcs)


def get_param_capacity(vdu_name: str, inst: Document, grant_req: Document) -> int:
    """How many members the VDU has after the operation."""

    def members(kind: str) -> int:
        asked = (one for one in grant_req.get(kind, ()) if one["type"] == "COMPUTE")
        return sum(one["resourceTemplateId"] == vdu_name for one in asked)

    return get_current_capacity(vdu_name, inst) + members("addResources") - members("removeResources")


# --- connection points


def get_param_network(cp_name: str, grant: Document, req: Document) -> str | None:
    return next((link["resourceId"] for link, _ in _asked_points(cp_name, grant, req)), None)


def get_param_fixed_ips(cp_name: str, grant: Document, req: Document) -> list[Document] | None:
    return next((_get_fixed_ips_from_extcp(point) for _, point in _asked_points(cp_name, grant, req)), None)


def get_param_network_from_inst(cp_name: str, inst: Document) -> str | None:
    return next((link["resourceHandle"]["resourceId"] for link, _ in _present_points(cp_name, inst)), None)


def get_param_fixed_ips_from_inst(cp_name: str, inst: Document) -> list[Document] | None:
    return next((_get_fixed_ips_from_extcp(point) for _, point in _present_points(cp_name, inst)), None)


def _asked_points(name: str, grant: Document, req: Document) -> Iterator[tuple[Document, Document]]:
    links = [*(grant.get("extVirtualLinks") or ()), *(req.get("extVirtualLinks") or ())]
    return _points(name, links, "extCps")


def _present_points(name: str, inst: Document) -> Iterator[tuple[Document, Document]]:
    return _points(name, inst["instantiatedVnfInfo"].get("extVirtualLinkInfo", ()), "currentVnfExtCpData")


def _points(name: str, links: Any, key: str) -> Iterator[tuple[Document, Document]]:
    """Links with those of their connection points that have that name."""
    return ((link, point) for link in links for point in link.get(key, ()) if point["cpdId"] == name)


def _get_fixed_ips_from_extcp(extcp: Document) -> list[Document]:
    """As a Heat port has them: of several addresses in one place it takes the first."""
    fixed_ips = []
    for config in (extcp.get("cpConfig") or {}).values():
        for layer in config.get("cpProtocolData", ()):
            for asked in (layer.get("ipOverEthernet") or {}).get("ipAddresses", ()):
                addresses, subnet = asked.get("fixedAddresses"), asked.get("subnetId")
                one = {"ip_address": str(addresses[0])} if addresses else {}
                if subnet is not None:
                    one["subnet"] = subnet
                if one:
                    fixed_ips.append(one)
    return fixed_ips


# --- internal links that exist already


def apply_ext_managed_vls(hot_dict: Document, req: Document, grant: Document) -> None:
    """The template uses those networks, and makes none in their place."""
    _use_networks(hot_dict, [*grant.get("extManagedVirtualLinks", ()), *req.get("extManagedVirtualLinks", ())])


def apply_ext_managed_vls_from_inst(hot_dict: Document, inst: Document) -> None:
    present = inst["instantiatedVnfInfo"].get("extManagedVirtualLinkInfo") or ()
    _use_networks(hot_dict, [{**one, "resourceId": one["networkResource"]["resourceId"]} for one in present])


def _use_networks(hot_dict: Document, links: list[Document]) -> None:
    ids: dict[str, str] = {}
    for link in links:
        ids.setdefault(link["vnfVirtualLinkDescId"], link["resourceId"])
    resources = hot_dict.get("resources") or {}
    for name, resource in list(resources.items()):
        network = (resource.get("properties") or {}).get("network")
        subnet_of = network.get("get_resource") if isinstance(network, dict) else None
        if name in ids or (resource.get("type") == "OS::Neutron::Subnet" and subnet_of in ids):
            del resources[name]
        else:
            resources[name] = _with_networks(resource, ids)


def _with_networks(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_with_networks(item, ids) for item in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["get_resource"] and value["get_resource"] in ids:
        return ids[value["get_resource"]]
    return {key: _with_networks(item, ids) for key, item in value.items()}
