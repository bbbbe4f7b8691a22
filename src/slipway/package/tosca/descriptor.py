"""The whole VNFD: which topologies are flavours, and the product they are flavours of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from slipway.model.descriptor import Descriptor, Flavour
from slipway.model.errors import PackageError
from slipway.package.tosca.artifact_files import ArtifactFiles
from slipway.package.tosca.files import VnfdFiles
from slipway.package.tosca.flavour import read_flavour
from slipway.package.tosca.node_types import VNF, NodeTypes
from slipway.package.tosca.section import Section
from slipway.package.tosca.topology import Topology, read_topology

VERSION = "tosca_definitions_version"
TOSCA_VERSIONS = (
    *(f"tosca_simple_yaml_1_{minor}" for minor in range(4)),
    "tosca_simple_profile_for_nfv_1_0_0",
)
_GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_EXAMPLE = "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177"


def read_descriptor(files: VnfdFiles, artifacts: ArtifactFiles) -> Descriptor:
    """Product properties go by their SOL001 name or by the one that drafts and older packages use."""
    types = NodeTypes(files)
    topologies = [
        topology for path, root in files.parsed.items() if (topology := read_topology(root, path, types)) is not None
    ]
    flavours = _flavours(files, topologies, types, artifacts)
    if not any(topology.file == files.entry and topology.vnf for topology in topologies):
        raise PackageError(
            "The entry file has no VNF node.",
            file=files.entry,
            line=1,
            cure="add one to node_templates, of the type tosca.nodes.nfv.VNF or one that the VNFD derives from it.",
        )
    _check_versions(files)
    sources = list(_product_sources(topologies))

    def product(*names: str) -> str:
        return _product_text(names, sources, types, files)

    return Descriptor(
        vnfd_id=_guid(product("descriptor_id", "id"), sources),
        provider=product("provider", "vendor"),
        product_name=product("product_name", "name"),
        software_version=product("software_version", "version"),
        vnfd_version=product("descriptor_version", "version"),
        vnfm_info=_first(source.words("vnfm_info") for source, _ in sources) or (),
        description=Section(files.parsed[files.entry], files.entry).text("description") or "",
        flavours=flavours,
        default_flavour=_default_flavour(files, topologies, types, flavours),
        configurable_properties=_first(_mapping(source, "configurable_properties") for source, _ in sources) or {},
        modifiable_attributes=_first(_mapping(source, "modifiable_attributes") for source, _ in sources) or {},
    )


def _flavours(
    files: VnfdFiles, topologies: list[Topology], types: NodeTypes, artifacts: ArtifactFiles
) -> dict[str, Flavour]:
    """The topologies with VDUs or a substitution of their own; when there are none, the one with the VNF."""
    described = [topology for topology in topologies if _describes_flavour(topology)]
    if not described:
        described = [topology for topology in topologies if topology.vnf is not None][:1]
    flavours: dict[str, Flavour] = {}
    for topology in described:
        flavour_id = _flavour_id(topology, types)
        if flavour_id is None and len(described) == 1:
            flavour_id = _flavour_id(topologies[0], types)
        if flavour_id is None:
            raise topology.section.error(
                "This file describes a flavour, but gives no flavour_id.",
                "set substitution_mappings.properties.flavour_id.",
            )
        if flavour_id in flavours:
            raise topology.section.error(f"The flavour {flavour_id!r} is described twice.", "rename one of them.")
        flavours[flavour_id] = read_flavour(flavour_id, topology, artifacts)
    if not flavours:
        raise PackageError(
            "The VNFD has no flavour: no file with a VNF node or VDUs.",
            file=files.entry,
            line=1,
            cure="import a flavour file, or add node_templates.",
        )
    return flavours


def _describes_flavour(topology: Topology) -> bool:
    if topology.substitution.section("properties").text("flavour_id"):
        return True
    return any(node.kind not in (None, VNF) for node in topology.nodes.values())


def _flavour_id(topology: Topology, types: NodeTypes) -> str | None:
    substituted = topology.substitution.section("properties").text("flavour_id")
    if substituted or topology.vnf is None:
        return substituted
    type_name = topology.vnf.section.text("type")
    return topology.vnf.properties.text("flavour_id") or types.default(type_name, "flavour_id")


def _default_flavour(
    files: VnfdFiles, topologies: list[Topology], types: NodeTypes, flavours: dict[str, Flavour]
) -> str | None:
    """What the entry file or the VNF's type falls back to; the only flavour, when there is one."""
    if len(flavours) == 1:
        return next(iter(flavours))
    entry = next((topology for topology in topologies if topology.file == files.entry), None)
    named = _flavour_id(entry, types) if entry is not None else None
    return named if named in flavours else None


def _product_sources(topologies: list[Topology]) -> Iterator[tuple[Section, str | None]]:
    """Where product properties may stand, the entry file first: the VNF node, then substitution_mappings."""
    for topology in topologies:
        if (vnf := topology.vnf) is not None:
            yield vnf.properties, vnf.section.text("type")
        if topology.substitution:
            yield topology.substitution.section("properties"), topology.substitution.text("node_type")


def _product_text(
    names: tuple[str, ...], sources: list[tuple[Section, str | None]], types: NodeTypes, files: VnfdFiles
) -> str:
    for name in names:
        for source, _ in sources:
            if text := source.text(name):
                return text
        for _, type_name in sources:
            if text := types.default(type_name, name):
                return text
    place, line = (sources[0][0].file, sources[0][0].content.line) if sources else (files.entry, 1)
    raise PackageError(f"The VNF has no {names[0]}.", file=place, line=line, cure=f"give it as a property: {names[0]}.")


def _guid(text: str, sources: list[tuple[Section, str | None]]) -> str:
    """It stands in URLs and names, and is the same wherever the package goes."""
    if not _GUID.fullmatch(text):
        key = "descriptor_id"
        place = next((source for source, _ in sources if key in source), sources[0][0])
        what = f"{key} {text[:60]!r} is not a GUID."
        raise place.error(what, f"write one such as {_EXAMPLE} (uuidgen makes one).", key)
    return text


def _check_versions(files: VnfdFiles) -> None:
    for path, root in files.parsed.items():
        section = Section(root, path)
        version = section.text(VERSION)
        if version is None and path == files.entry:
            raise section.error(f"The entry file has no {VERSION}.", f"add `{VERSION}: tosca_simple_yaml_1_2`.")
        if version is not None and version not in TOSCA_VERSIONS:
            known = ", ".join(TOSCA_VERSIONS)
            raise section.error(f"{version[:60]!r} is not a TOSCA version.", f"write one of: {known}.", VERSION)


def _first(values: Iterator[Any]) -> Any:
    return next((value for value in values if value), None)


def _mapping(source: Section, key: str) -> dict[str, Any]:
    return source.section(key).plain()
