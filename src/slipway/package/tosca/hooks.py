"""What the VNFD wants done around each operation: the Vnflcm interface of the VNF node."""

from __future__ import annotations

from typing import Any

from slipway.model.descriptor import Hook
from slipway.package.tosca.artifact_files import ArtifactFiles, DeclaredArtifact
from slipway.package.tosca.node_types import Node
from slipway.package.tosca.section import Section
from slipway.package.yaml_reader import Map

_NOT_OPERATIONS = frozenset({"type", "inputs", "operations", "notifications", "description"})


def read_hooks(vnf: Node | None, files: ArtifactFiles) -> dict[str, Hook]:
    if vnf is None:
        return {}
    artifacts = {one.name: one for one in files.of(vnf.section)}
    interface = vnf.section.section("interfaces").section("Vnflcm")
    hooks: dict[str, Hook] = {}
    for holder in (interface, interface.section("operations")):
        for operation in holder.content:
            if operation in _NOT_OPERATIONS:
                continue
            if hook := _hook(operation, holder, artifacts, files):
                hooks[operation] = hook
    return hooks


def _hook(operation: str, holder: Section, artifacts: dict[str, DeclaredArtifact], files: ArtifactFiles) -> Hook | None:
    """None for `[]`, null and operations without an implementation."""
    name = _implementation(holder, operation)
    if not name:
        return None
    if name in artifacts:
        artifact = artifacts[name]
        return Hook(operation=operation, implementation=name, file=artifact.path, type=artifact.type or None)
    return Hook(operation=operation, implementation=name, file=files.find(name, holder, operation))


def _implementation(holder: Section, key: str) -> str | None:
    """`x`, {implementation: x}, {implementation: {primary: x}}, {primary: {file: x}}."""
    for _ in range(4):
        value: Any = holder.value(key)
        if value is None or value == [] or value == {}:
            return None
        if not isinstance(value, Map):
            return holder.text(key)
        holder = holder.section(key)
        key = next((one for one in ("implementation", "primary", "file") if one in value), "")
    return None
