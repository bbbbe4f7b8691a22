"""What a node template is: a VNF, a VDU, a connection point. Packages derive types of their own; we follow them up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slipway.package.tosca.files import VnfdFiles
from slipway.package.tosca.section import Section

VNF = "VNF"
COMPUTE = "Vdu.Compute"
CONTAINER_UNIT = "Vdu.OsContainerDeployableUnit"
CONTAINER = "Vdu.OsContainer"
MCIOP = "Mciop"  # what is deployed together on a container infrastructure: its artifacts say how
VDU_CP, VIP_CP = "VduCp", "VipCp"
VIRTUAL_LINK = "VnfVirtualLink"
STORAGES = {
    "Vdu.VirtualBlockStorage": "block",
    "Vdu.VirtualObjectStorage": "object",
    "Vdu.VirtualFileStorage": "file",
    "Vdu.VirtualStorage": "block",
}
_PREFIX = "tosca.nodes.nfv."
_LONGEST_CHAIN = 32
_VNF_PROPERTIES = frozenset({"flavour_id", "flavour_description", "descriptor_id", "product_name"})


@dataclass(frozen=True)
class NodeTemplate:
    """A node template. `kind` is the SOL001 type without its prefix, None when it is no type of the standard."""

    name: str
    kind: str | None
    section: Section

    @property
    def properties(self) -> Section:
        return self.section.section("properties")


class NodeTypes:
    """The node types that the package itself defines."""

    def __init__(self, files: VnfdFiles) -> None:
        self._types: dict[str, Section] = {}
        for path, root in files.parsed.items():
            for name, section in Section(root, path).sections("node_types"):
                self._types.setdefault(name, section)
        for name in self._types:
            self._check_ancestry(name)

    def kind(self, type_name: str | None, section: Section) -> str | None:
        for name in self._ancestors(type_name):
            if name.startswith(_PREFIX):
                return name.removeprefix(_PREFIX)
        return VNF if _looks_like_vnf(section) else None

    def default(self, type_name: str | None, key: str) -> str | None:
        """What the type gives a property that the template does not: its default, or its only valid value."""
        for name in self._ancestors(type_name):
            if name not in self._types:
                continue
            declared = self._types[name].section("properties").section(key)
            if (default := declared.text("default")) is not None:
                return default
            for constraint in declared.listed("constraints"):
                valid = constraint.words("valid_values")
                if len(valid) == 1:
                    return valid[0]
        return None

    def _ancestors(self, name: str | None) -> Iterable[str]:
        while name is not None:
            yield name
            name = self._types[name].text("derived_from") if name in self._types else None

    def _check_ancestry(self, name: str) -> None:
        seen: list[str] = []
        for ancestor in self._ancestors(name):
            if ancestor in seen:
                circle = " -> ".join([*seen[seen.index(ancestor) :], ancestor])
                raise self._types[ancestor].error(
                    f"The node type is derived from itself: {circle}.",
                    "derive it from a type of the standard, such as tosca.nodes.nfv.VNF.",
                    "derived_from",
                )
            seen.append(ancestor)
            if len(seen) > _LONGEST_CHAIN:
                raise self._types[name].error(
                    f"The node type {name!r} is derived over more than {_LONGEST_CHAIN} other types.",
                    "derive it from a type of the standard.",
                    "derived_from",
                )


def _looks_like_vnf(section: Section) -> bool:
    known = _VNF_PROPERTIES & section.section("properties").content.keys()
    return bool(known) or "Vnflcm" in section.section("interfaces")
