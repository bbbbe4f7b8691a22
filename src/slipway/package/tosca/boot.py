"""How the machines of a VDU start: user data, key-value pairs, and the storages that they boot from."""

from __future__ import annotations

from slipway.model.descriptor import Storage
from slipway.package.tosca.artifact_files import ArtifactFiles
from slipway.package.tosca.node_types import NodeTemplate
from slipway.package.tosca.section import Section, some
from slipway.package.tosca.topology import Topology
from slipway.package.yaml_reader import YamlMap

_NOTHING = "nothing is done about"


def read_boot_data(node: NodeTemplate, topology: Topology, files: ArtifactFiles) -> tuple[str | None, dict[str, str]]:
    """User data and key-value pairs. Older packages have one text, which may be the name of a file."""
    properties = node.properties
    if not isinstance(properties.value("boot_data"), YamlMap):
        return _text_or_file(properties, files), {}
    data = properties.section("boot_data")
    _warn_of_unread(node, topology, data)
    pairs = data.section("kvp_data")
    pairs = pairs.section("data") if "data" in pairs else pairs
    metadata = {name: pairs.text(name) or "" for name in pairs.content}
    return _content(data.section("content_or_file_data") or data, files), metadata


def read_boot_order(
    node: NodeTemplate, topology: Topology, attached: tuple[str, ...], storages: dict[str, Storage]
) -> tuple[str, ...]:
    """The storages that its machines may boot from, the first one first: those with an image.

    `boot_order` is true, for the order in which the VDU names its storages, or a list of their names.
    """
    value = node.properties.value("boot_order")
    if value is None or isinstance(value, bool):
        named = attached if value else ()
    else:
        named = node.properties.words("boot_order")
    if unknown := [name for name in named if name not in attached]:
        what = f"boot_order of VDU {node.name!r} names what is no storage of it ({some(unknown)}): that is ignored."
        topology.warnings.add(node.properties.error(what, f"name some of: {some(attached)}.", "boot_order"))
    return tuple(name for name in dict.fromkeys(named) if name in attached and storages[name].image)


def _text_or_file(properties: Section, files: ArtifactFiles) -> str | None:
    text = properties.text("boot_data")
    path = files.find(text, properties, "boot_data") if text and "\n" not in text else None
    return files.read_text(path) if path else text


def _content(data: Section, files: ArtifactFiles) -> str | None:
    if data.value("content") is not None:
        return data.text("content")
    if (source := data.text("source_path")) is None:
        return None
    path = files.find(source, data, "source_path")
    if path is None:
        raise data.error(f"The boot data {source[:200]!r} is not in the package.", "add the file.", "source_path")
    return files.read_text(path)


def _warn_of_unread(node: NodeTemplate, topology: Topology, data: Section) -> None:
    given = data.section("content_or_file_data")
    unread = (
        (data, "vim_specific_properties", "remove them, or write a template in BaseHOT."),
        (given, "destination_path", "let the boot data, which is user data, write the file."),
        (given, "data", "write out the file: no variable in it is replaced."),
    )
    for holder, key, cure in unread:
        if holder.value(key):
            what = f"Boot data of VDU {node.name!r} has {key}: {_NOTHING} it."
            topology.warnings.add(holder.error(what, cure, key))
