"""The software image of a VDU or a storage: `sw_image_data`, and the file where the package carries one."""

from __future__ import annotations

from slipway.model.package import Checksum, SoftwareImage
from slipway.package.tosca.artifact_files import ArtifactFiles, DeclaredArtifact
from slipway.package.tosca.node_types import CONTAINER, NodeTemplate
from slipway.package.tosca.section import Section
from slipway.package.yaml_reader import YamlMap


def read_image(node: NodeTemplate, files: ArtifactFiles) -> SoftwareImage | None:
    """None when the node names no image. The image's id is the node's name, as SOL001 has it."""
    artifacts = [one for one in files.of(node.section, may_be_outside=node.kind == CONTAINER) if _is_image(one)]
    data = node.properties.section("sw_image_data")
    if not data and not artifacts:
        return None
    path = next((one.path for one in artifacts if one.path), None)
    checksum = _checksum(data)
    if path is not None and checksum is not None:
        files.verify(path, checksum, data, "checksum")
    return SoftwareImage(
        id=node.name,
        name=data.text("name") or next((one.reference for one in artifacts), node.name),
        provider=data.text("provider") or "",
        version=data.text("version") or "",
        checksum=checksum,
        container_format=_format(data, "container_format"),
        disk_format=_format(data, "disk_format"),
        min_disk=data.size("min_disk") or 0,
        min_ram=data.size("min_ram") or 0,
        size=data.size("size"),
        image_path=path,
        user_metadata=_metadata(data),
    )


def _is_image(artifact: DeclaredArtifact) -> bool:
    return artifact.type.endswith("SwImage") or artifact.name == "sw_image"


def _format(data: Section, key: str) -> str | None:
    """SOL001 writes `qcow2`, SOL003 `QCOW2`."""
    text = data.text(key)
    return None if text is None else text.upper()


def _metadata(data: Section) -> dict[str, str]:
    below = data.section("metadata")
    return {name: text for name in below.content if (text := below.text(name)) is not None}


def _checksum(data: Section) -> Checksum | None:
    if isinstance(data.value("checksum"), YamlMap):
        declared = data.section("checksum")
        algorithm, digest = declared.text("algorithm"), declared.text("hash")
    else:
        algorithm, digest = data.text("checksum_algorithm") or "SHA-256", data.text("checksum")
    return Checksum(algorithm, digest) if algorithm and digest else None
