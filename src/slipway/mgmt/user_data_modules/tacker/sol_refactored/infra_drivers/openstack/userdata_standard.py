"""User data for templates whose VDUs are nested files: a resource for each VNFC (`VDU1-0`), with values of its own."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable
from typing import Any

import yaml
from tacker.sol_refactored.common import common_script_utils as values
from tacker.sol_refactored.common.exceptions import SolHttpError422
from tacker.sol_refactored.infra_drivers.openstack.nfv_values import (
    IMAGE,
    ZONE,
    Document,
    Links,
    Package,
    connected,
    with_additional_params,
)
from tacker.sol_refactored.infra_drivers.openstack.userdata_utils import AbstractUserData

Numbered = list[tuple[str, int]]  # VDUs with the numbers of their VNFCs


def add_idx(name: str, index: int) -> str:
    return f"{name}-{index}"


def rm_idx(name_idx: str) -> str:
    return name_idx.rpartition("-")[0]


def add_idx_to_vdu_template(vdu_template: Document, vdu_idx: int) -> Document:
    """A VDU's resource for one VNFC: where the template reads `[nfv, VDU, VDU1, ...]`, `[nfv, VDU, VDU1-0, ...]`."""
    resource = copy.deepcopy(vdu_template)
    for value in (resource.get("properties") or {}).values():
        read = value.get("get_param") if isinstance(value, dict) else None
        if isinstance(read, list) and len(read) >= 4:
            read[2] = add_idx(read[2], vdu_idx)
    return resource


class StandardUserData(AbstractUserData):
    @staticmethod
    def instantiate(req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str) -> Document:
        package = Package.read(inst["vnfdId"], req["flavourId"], tmp_csar_dir)
        zones = _add_members(package, grant_req, grant, ())
        nfv = package.nfv
        _fill(nfv, package, zones, Links.asked(req, grant), grant)
        values.apply_ext_managed_vls(package.top, req, grant)
        return package.stack(with_additional_params(nfv, req, grant))

    @staticmethod
    def scale(req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str) -> Document:
        if req["type"] != "SCALE_OUT":
            leaving = [(vnfc["vduId"], vnfc["metadata"]["vdu_idx"]) for vnfc in _leaving(inst, grant_req)]
            return _without(leaving)
        package = Package.of(inst, tmp_csar_dir)
        zones = _add_members(package, grant_req, grant, _numbered(inst))
        nfv = package.nfv
        _fill(nfv, package, zones, Links.present(inst), grant)
        for part in nfv.values():
            for name, read in part.items():
                part[name] = {key: value for key, value in read.items() if value is not None}
        values.apply_ext_managed_vls_from_inst(package.top, inst)
        stack = package.stack(with_additional_params(nfv, req, grant))
        return {key: stack[key] for key in ("template", "parameters")}

    @staticmethod
    def scale_rollback(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        return _without(member for _, member in _added(grant_req, _numbered(inst)))

    @staticmethod
    def change_ext_conn(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        package = Package.of(inst, tmp_csar_dir)
        _put_members(package, _numbered(inst))
        nfv = with_additional_params({"CP": connected(package.nfv, Links.asked(req, grant), rm_idx)}, req, grant)
        return {"parameters": {"nfv": nfv}}

    @staticmethod
    def change_ext_conn_rollback(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        return {"parameters": {"nfv": _present(inst)}}

    @staticmethod
    def heal(req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str) -> Document:
        """A granted image goes into what is healed; all else stays."""
        package, vdus = Package.of(inst, tmp_csar_dir), _present(inst).get("VDU", {})
        for vnfc in _leaving(inst, grant_req):
            image = values.get_param_image(vnfc["vduId"], package.flavour_id, package.vnfd, grant, fallback_vnfd=False)
            if image is not None:
                vdus[add_idx(vnfc["vduId"], vnfc["metadata"]["vdu_idx"])][IMAGE] = image
        return {"parameters": {"nfv": with_additional_params({"VDU": vdus}, req, grant)}}

    @staticmethod
    def change_vnfpkg(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        """The whole stack anew: what is to change by the new package, all else by what it has."""
        package, present = Package.of(inst, tmp_csar_dir, grant_req["dstVnfdId"]), _present(inst)
        _put_members(package, _numbered(inst))
        changing = {add_idx(vnfc["vduId"], vnfc["metadata"]["vdu_idx"]) for vnfc in _leaving(inst, grant_req)}
        resources = package.top["resources"]
        changed = values.init_nfv_dict({"resources": {name: resources[name] for name in changing}})
        vdus = dict(present.get("VDU", {}))
        for name, read in changed.get("VDU", {}).items():
            vdus[name] = {**vdus.get(name, {}), **package.size_and_image(rm_idx(name), read, grant)}
        asked, before = connected(package.nfv, Links.asked(req, grant), rm_idx), present.get("CP", {})
        points = {name: asked.get(name, before.get(name, read)) for name, read in package.nfv.get("CP", {}).items()}
        values.apply_ext_managed_vls(package.top, req, grant)
        nfv = with_additional_params({"VDU": vdus, "CP": points}, req, grant)
        return {**package.stack(nfv), "existing": False}

    @staticmethod
    def change_vnfpkg_rollback(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        package = Package.of(inst, tmp_csar_dir)
        _put_members(package, _numbered(inst))
        values.apply_ext_managed_vls(package.top, req, grant)
        return {**package.stack(_present(inst)), "existing": False}


# --- members


def _put_members(package: Package, members: Numbered) -> None:
    """In the top template, in place of their VDUs."""
    resources = package.top.setdefault("resources", {})
    vdus = package.vnfd.get_vdu_nodes(package.flavour_id)
    if missing := [vdu for vdu in vdus if vdu not in resources]:
        raise SolHttpError422(sol_detail=f"the top template has no resource {missing[0]!r}, which is a VDU of the VNFD")
    templates = {vdu: resources.pop(vdu) for vdu in vdus}
    for vdu, number in members:
        if vdu in templates:
            resources[add_idx(vdu, number)] = add_idx_to_vdu_template(templates[vdu], number)


def _add_members(
    package: Package, grant_req: Document, grant: Document, taken: Iterable[tuple[str, int]]
) -> dict[str, str | None]:
    """Puts those that the grant request adds; answers their zones by their names."""
    added = _added(grant_req, taken)
    _put_members(package, [member for _, member in added])
    return {add_idx(*member): values.get_param_zone_by_vnfc(asked, grant) for asked, member in added}


def _added(grant_req: Document, taken: Iterable[tuple[str, int]]) -> list[tuple[str, tuple[str, int]]]:
    """The ids in the grant request, and the members, with the lowest numbers of their VDUs that are free.

    Who left may have had a lower number than those that stay: counting on from how many there are would meet one.
    """
    used = set(taken)
    added = []
    for asked in grant_req.get("addResources", ()):
        if asked["type"] == "COMPUTE":
            vdu = asked["resourceTemplateId"]
            member = next((vdu, number) for number in itertools.count() if (vdu, number) not in used)
            used.add(member)
            added.append((asked["id"], member))
    return added


def _leaving(inst: Document, grant_req: Document) -> list[Document]:
    """The VNFCs that the grant request removes, to be made anew or not."""
    removed = [one for one in grant_req.get("removeResources", ()) if one["type"] == "COMPUTE"]
    gone = {one["resource"]["resourceId"] for one in removed}
    vnfcs: list[Document] = inst["instantiatedVnfInfo"].get("vnfcResourceInfo", [])
    return [vnfc for vnfc in vnfcs if vnfc["computeResource"]["resourceId"] in gone]


def _numbered(inst: Document) -> Numbered:
    vnfcs = inst["instantiatedVnfInfo"].get("vnfcResourceInfo", ())
    numbers = ((vnfc["vduId"], vnfc.get("metadata", {}).get("vdu_idx")) for vnfc in vnfcs)
    return [(vdu, number) for vdu, number in numbers if number is not None]


def _without(members: Iterable[tuple[str, int]]) -> Document:
    """A patch of the template that takes them out."""
    return {"template": yaml.safe_dump({"resources": {add_idx(*member): None for member in members}})}


# --- values


def _present(inst: Document) -> Any:
    """`nfv` as the stack has it."""
    return inst["instantiatedVnfInfo"]["metadata"]["nfv"]


def _fill(nfv: Document, package: Package, zones: dict[str, str | None], links: Links, grant: Document) -> None:
    for name, read in nfv.get("VDU", {}).items():
        read.update(package.size_and_image(rm_idx(name), read, grant))
        if ZONE in read:
            read[ZONE] = zones.get(name)
    for name, read in nfv.get("CP", {}).items():
        read.update(links.filled(rm_idx(name), read))
