"""What both kinds of user data that are built in have in common: a template's `nfv` parameter, filled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from tacker.sol_refactored.common import common_script_utils as values
from tacker.sol_refactored.common.vnf_instance_utils import json_merge_patch
from tacker.sol_refactored.common.vnfd_utils import Vnfd

Document = dict[str, Any]
FLAVOR, IMAGE, ZONE, CAPACITY = "computeFlavourId", "vcImageId", "locationConstraints", "desired_capacity"


@dataclass(frozen=True)
class Links:
    """Where a connection point's network and addresses come from: from what is asked, or from what is there."""

    network: Callable[[str], str | None]
    fixed_ips: Callable[[str], list[Document] | None]

    @classmethod
    def asked(cls, req: Document, grant: Document) -> Links:
        return cls(
            lambda name: values.get_param_network(name, grant, req),
            lambda name: values.get_param_fixed_ips(name, grant, req),
        )

    @classmethod
    def present(cls, inst: Document) -> Links:
        return cls(
            lambda name: values.get_param_network_from_inst(name, inst),
            lambda name: values.get_param_fixed_ips_from_inst(name, inst),
        )

    def filled(self, name: str, read: Document) -> Document:
        """Network and addresses of a connection point, as far as the template reads them."""
        point: Document = {}
        if "network" in read:
            point["network"] = self.network(name)
        if "fixed_ips" in read:
            point["fixed_ips"] = self._addresses(name, read["fixed_ips"])
        return point

    def _addresses(self, name: str, read: dict[int, Document]) -> list[Document]:
        """As many as there are both in the template, numbered from 0, and in what was asked."""
        pairs = ((read.get(number), given) for number, given in enumerate(self.fixed_ips(name) or ()))
        filled: list[Document] = []
        for keys, given in pairs:
            if keys is None:
                break
            filled.append({**keys, **{key: given.get(key) for key in ("subnet", "ip_address") if key in keys}})
        return filled


@dataclass(frozen=True)
class Package:
    """The package's VNFD and templates for a flavour. `top` may be changed."""

    vnfd: Vnfd
    flavour_id: str
    top: Document
    nested: Document

    @classmethod
    def read(cls, vnfd_id: str, flavour_id: str, directory: str) -> Package:
        vnfd = values.get_vnfd(vnfd_id, directory)
        hot = vnfd.get_base_hot(flavour_id)
        return cls(vnfd, flavour_id, hot["template"], hot.get("files", {}))

    @classmethod
    def of(cls, inst: Document, directory: str, vnfd_id: str | None = None) -> Package:
        """Of an instance; or another package for it."""
        return cls.read(vnfd_id or inst["vnfdId"], inst["instantiatedVnfInfo"]["flavourId"], directory)

    @property
    def nfv(self) -> Document:
        """What the top template reads, without values."""
        return values.init_nfv_dict(self.top)

    def size_and_image(self, name: str, read: Document, grant: Document) -> Document:
        """Flavor and image of a VDU, as far as they are read."""
        vdu: Document = {}
        if FLAVOR in read:
            vdu[FLAVOR] = values.get_param_flavor(name, self.flavour_id, self.vnfd, grant)
        if IMAGE in read:
            vdu[IMAGE] = values.get_param_image(name, self.flavour_id, self.vnfd, grant)
        return vdu

    def stack(self, nfv: Document) -> Document:
        """All that a stack is made of."""
        return {
            "template": yaml.safe_dump(self.top),
            "parameters": {"nfv": nfv},
            "files": {name: yaml.safe_dump(template) for name, template in self.nested.items()},
        }


def connected(nfv: Document, links: Links, cp_name: Callable[[str], str] = str) -> Document:
    """Those connection points that are read and that `links` know, by the names that the VNFD has for them."""
    points = nfv.get("CP", {}).items()
    filled = {name: links.filled(cp_name(name), read) for name, read in points if links.network(cp_name(name))}
    return {name: point for name, point in filled.items() if point}


def with_additional_params(nfv: Document, req: Document, grant: Document) -> Document:
    """What request and grant say of `nfv` themselves goes before all that was found out."""
    for said in (req, grant):
        nfv = json_merge_patch(nfv, (said.get("additionalParams") or {}).get("nfv", {}))
    return nfv
