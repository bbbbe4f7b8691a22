"""What the VNFD wants done around each operation: the Vnflcm interface of the VNF node."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.model.descriptor import Hook
from slipway.model.hooks import HOOKS
from slipway.package.tosca.artifact_files import ArtifactFiles, DeclaredArtifact
from slipway.package.tosca.node_types import NodeTemplate
from slipway.package.tosca.section import Section
from slipway.package.warnings import Warnings
from slipway.package.yaml_reader import YamlMap, plain

LARGEST_INPUTS = 64 << 10  # bytes of a hook's inputs, as JSON
_NOT_OPERATIONS = frozenset({"type", "inputs", "operations", "notifications", "description"})


def read_hooks(vnf: NodeTemplate | None, files: ArtifactFiles, warnings: Warnings) -> dict[str, Hook]:
    if vnf is None:
        return {}
    artifacts = {one.name: one for one in files.of(vnf.section)}
    interface = vnf.section.section("interfaces").section("Vnflcm")
    hooks: dict[str, Hook] = {}
    for holder in (interface, interface.section("operations")):
        for operation in holder.content:
            if operation in _NOT_OPERATIONS:
                continue
            hook = _hook(operation, holder, artifacts, files)
            if hook and operation in HOOKS:
                hooks[operation] = hook
            elif hook:
                what = f"The hook {operation!r} names {hook.implementation[:100]!r}, but is never run: it is ignored."
                cure = "remove it, or name an operation of Slipway and its _start or _end, such as instantiate_end."
                warnings.add(holder.error(what, cure, operation))
    return hooks


def _hook(operation: str, holder: Section, artifacts: dict[str, DeclaredArtifact], files: ArtifactFiles) -> Hook | None:
    """None for `[]`, null and operations without an implementation."""
    name = _implementation(holder, operation)
    if not name:
        return None
    inputs = _inputs(holder, operation)
    if name in artifacts:
        artifact = artifacts[name]
        return Hook(
            operation=operation, implementation=name, file=artifact.path, type=artifact.type or None, inputs=inputs
        )
    return Hook(operation=operation, implementation=name, file=files.find(name, holder, operation), inputs=inputs)


def _inputs(holder: Section, operation: str) -> dict[str, Any]:
    """What the package says to whoever does the operation; none in the short form, `instantiate_end: name`."""
    if not isinstance(holder.value(operation), YamlMap):
        return {}
    section = holder.section(operation)
    inputs: dict[str, Any] = plain(section.section("inputs").content)
    if len(msgspec.json.encode(inputs)) > LARGEST_INPUTS:
        what = f"The inputs of {operation!r} are larger than {LARGEST_INPUTS >> 10} KiB as JSON."
        raise section.error(what, "bring a file of the package in their place.", "inputs")
    return inputs


def _implementation(holder: Section, key: str) -> str | None:
    """`x`, {implementation: x}, {implementation: {primary: x}}, {primary: {file: x}}."""
    for _ in range(4):
        value: Any = holder.value(key)
        if value is None or value == [] or value == {}:
            return None
        if not isinstance(value, YamlMap):
            return holder.text(key)
        holder = holder.section(key)
        key = next((one for one in ("implementation", "primary", "file") if one in value), "")
    return None
