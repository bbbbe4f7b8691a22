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
from slipway.package.tosca.section import Section, some
from slipway.package.tosca.topology import Topology, read_topology
from slipway.package.warnings import Warnings

VERSION = "tosca_definitions_version"
TOSCA_VERSIONS = (
    *(f"tosca_simple_yaml_1_{minor}" for minor in range(4)),
    "tosca_simple_profile_for_nfv_1_0_0",
)
FLAVOUR_ID = "substitution_mappings.properties.flavour_id"
_GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_EXAMPLE = "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177"


def read_descriptor(files: VnfdFiles, artifacts: ArtifactFiles, warnings: Warnings) -> Descriptor:
    """Product properties go by their SOL001 name or by the one that drafts and older packages use."""
    types = NodeTypes(files)
    topologies = [
        topology
        for path, root in files.parsed.items()
        if (topology := read_topology(root, path, types, warnings)) is not None
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
        return _product_text(names, sources, types, files, warnings)

    return Descriptor(
        vnfd_id=_guid(product("descriptor_id", "id"), sources),
        provider=product("provider", "vendor"),
        product_name=product("product_name", "name"),
        software_version=product("software_version", "version"),
        vnfd_version=product("descriptor_version", "version"),
        flavours=flavours,
        default_flavour=_default_flavour(_entry(files, topologies), types, flavours),
        configurable_properties=_configurable_properties(sources),
    )


def _flavours(
    files: VnfdFiles, topologies: list[Topology], types: NodeTypes, artifacts: ArtifactFiles
) -> dict[str, Flavour]:
    """The topologies with VDUs or a substitution of their own; when there are none, the one with the VNF."""
    described = [topology for topology in topologies if _describes_flavour(topology)]
    if not described:
        described = [topology for topology in topologies if topology.vnf is not None][:1]
    flavours: dict[str, Flavour] = {}
    for flavour_id, topology in _identified(described, _entry(files, topologies), types):
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


def _identified(described: list[Topology], entry: Topology | None, types: NodeTypes) -> Iterator[tuple[str, Topology]]:
    """Each with its flavour_id. The only one that gives none is the flavour that the entry file names."""
    given = [_flavour_id(topology, types) for topology in described]
    default = _flavour_id(entry, types) if entry else None
    for flavour_id, topology in zip(given, described, strict=True):
        if flavour_id is not None:
            yield flavour_id, topology
            continue
        fault, cure = "This file describes a flavour, but gives no flavour_id", f"set {FLAVOUR_ID}."
        if default is None or default in given or given.count(None) > 1:
            raise topology.section.error(f"{fault}.", cure)
        taken = f"{fault}: {default[:100]!r} is taken, which the entry file falls back to."
        topology.warnings.add(topology.section.error(taken, cure))
        yield default, topology


def _entry(files: VnfdFiles, topologies: list[Topology]) -> Topology | None:
    return next((topology for topology in topologies if topology.file == files.entry), None)


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


def _default_flavour(entry: Topology | None, types: NodeTypes, flavours: dict[str, Flavour]) -> str | None:
    """What the entry file or the VNF's type falls back to; the only flavour, when there is one."""
    default = _flavour_id(entry, types) if entry else None
    if entry and default is not None and default not in flavours:
        what = f"The entry file falls back to the flavour {default[:100]!r}, which is not described: that is ignored."
        place = entry.vnf.section if entry.vnf else entry.section
        entry.warnings.add(place.error(what, f"let flavour_id, or its default, be one of: {some(flavours)}."))
    if len(flavours) == 1:
        return next(iter(flavours))
    return default if default in flavours else None


def _product_sources(topologies: list[Topology]) -> Iterator[tuple[Section, str | None]]:
    """Where product properties may stand, the entry file first: the VNF node, then substitution_mappings."""
    for topology in topologies:
        if (vnf := topology.vnf) is not None:
            yield vnf.properties, vnf.section.text("type")
        if topology.substitution:
            yield topology.substitution.section("properties"), topology.substitution.text("node_type")


def _product_text(
    names: tuple[str, ...],
    sources: list[tuple[Section, str | None]],
    types: NodeTypes,
    files: VnfdFiles,
    warnings: Warnings,
) -> str:
    for name in names:
        texts = [(text, source) for source, _ in sources if (text := source.text(name))]
        if texts:
            _warn_of_others(name, texts, warnings)
            return texts[0][0]
        for _, type_name in sources:
            if text := types.default(type_name, name):
                return text
    place, line = (sources[0][0].file, sources[0][0].content.line) if sources else (files.entry, 1)
    raise PackageError(f"The VNF has no {names[0]}.", file=place, line=line, cure=f"give it as a property: {names[0]}.")


def _warn_of_others(name: str, texts: list[tuple[str, Section]], warnings: Warnings) -> None:
    text, counts = texts[0]
    for other, source in texts[1:]:
        if other != text:
            what = f"{name} is {other[:100]!r} here and {text[:100]!r} in {counts.file}, which counts."
            warnings.add(source.error(what, "write the same in both, or remove this one.", name))


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


def _configurable_properties(sources: list[tuple[Section, str | None]]) -> dict[str, Any]:
    found = (source.section("configurable_properties").plain() for source, _ in sources)
    return next((properties for properties in found if properties), {})
