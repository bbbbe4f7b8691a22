"""The whole VNFD: which topologies are flavours, and the product they are flavours of."""

from __future__ import annotations

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


def read_descriptor(files: VnfdFiles, artifacts: ArtifactFiles) -> Descriptor:
    """Product properties go by their SOL001 name or by the one that drafts and older packages use."""
    types = NodeTypes(files)
    topologies = [
        topology for path, root in files.parsed.items() if (topology := read_topology(root, path, types)) is not None
    ]
    flavours = _flavours(files, topologies, types, artifacts)
    sources = list(_product_sources(topologies))

    def product(*names: str) -> str:
        return _product_text(names, sources, types, files)

    return Descriptor(
        vnfd_id=product("descriptor_id", "id"),
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


def _first(values: Iterator[Any]) -> Any:
    return next((value for value in values if value), None)


def _mapping(source: Section, key: str) -> dict[str, Any]:
    return source.section(key).plain()
