"""User data for templates whose VDUs are servers or AutoScalingGroups: `nfv` by VDU and connection point."""

from __future__ import annotations

from typing import Any

from tacker.sol_refactored.common import common_script_utils as values
from tacker.sol_refactored.infra_drivers.openstack.nfv_values import (
    CAPACITY,
    FLAVOR,
    IMAGE,
    ZONE,
    Document,
    Links,
    Package,
    connected,
    with_additional_params,
)
from tacker.sol_refactored.infra_drivers.openstack.userdata_utils import AbstractUserData


class DefaultUserData(AbstractUserData):
    """After the instantiation it answers what changes in `nfv`, and no template."""

    @staticmethod
    def instantiate(req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str) -> Document:
        package, links = Package.read(inst["vnfdId"], req["flavourId"], tmp_csar_dir), Links.asked(req, grant)
        nfv = package.nfv
        for name, read in nfv.get("VDU", {}).items():
            read.update(package.size_and_image(name, read, grant))
            if ZONE in read:
                read[ZONE] = values.get_param_zone(name, grant_req, grant)
            if CAPACITY in read:
                read[CAPACITY] = values.get_param_capacity(name, inst, grant_req)
        for name, read in nfv.get("CP", {}).items():
            read.update(links.filled(name, read))
        values.apply_ext_managed_vls(package.top, req, grant)
        return package.stack(with_additional_params(nfv, req, grant))

    @staticmethod
    def scale(req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str) -> Document:
        vdus = _capacities_read(Package.of(inst, tmp_csar_dir))
        return _nfv(VDU={name: {CAPACITY: values.get_param_capacity(name, inst, grant_req)} for name in vdus})

    @staticmethod
    def scale_rollback(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        vdus = _capacities_read(Package.of(inst, tmp_csar_dir))
        return _nfv(VDU={name: {CAPACITY: values.get_current_capacity(name, inst)} for name in vdus})

    @staticmethod
    def change_ext_conn(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        return _nfv(CP=connected(Package.of(inst, tmp_csar_dir).nfv, Links.asked(req, grant)))

    @staticmethod
    def change_ext_conn_rollback(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        return _nfv(CP=connected(Package.of(inst, tmp_csar_dir).nfv, Links.present(inst)))

    @staticmethod
    def heal(req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str) -> Document:
        return _nfv()

    @staticmethod
    def change_vnfpkg(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        package = Package.of(inst, tmp_csar_dir, grant_req["dstVnfdId"])
        vdus = package.nfv.get("VDU", {})
        sized = {name: package.size_and_image(name, read, grant) for name, read in vdus.items()}
        return _nfv(
            VDU={name: vdu for name, vdu in sized.items() if vdu}, CP=connected(package.nfv, Links.asked(req, grant))
        )

    @staticmethod
    def change_vnfpkg_rollback(
        req: Document, inst: Document, grant_req: Document, grant: Document, tmp_csar_dir: str
    ) -> Document:
        package = Package.of(inst, tmp_csar_dir)
        present = _sizes_and_images(inst)
        vdus = {
            name: {key: present.get((name, key)) for key in (FLAVOR, IMAGE) if key in read}
            for name, read in package.nfv.get("VDU", {}).items()
        }
        return _nfv(
            VDU={name: vdu for name, vdu in vdus.items() if vdu}, CP=connected(package.nfv, Links.present(inst))
        )


def _nfv(**parts: Document) -> Document:
    return {"parameters": {"nfv": parts}}


def _capacities_read(package: Package) -> list[str]:
    return [name for name, read in package.nfv.get("VDU", {}).items() if CAPACITY in read]


def _sizes_and_images(inst: Document) -> dict[tuple[str, str], Any]:
    """Of VDUs and volumes, as the first VNFC of each has them."""
    found: dict[tuple[str, str], Any] = {}
    for vnfc in (inst.get("instantiatedVnfInfo") or {}).get("vnfcResourceInfo", ()):
        for key, value in vnfc.get("metadata", {}).items():
            if key == "flavor":
                found.setdefault((vnfc["vduId"], FLAVOR), value)
            elif key.startswith("image-"):
                found.setdefault((key.removeprefix("image-"), IMAGE), value)
    return found
