"""The topology template of one VNFD file, with its nodes sorted by kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slipway.model.errors import PackageError
from slipway.package.tosca.node_types import VNF, NodeTemplate, NodeTypes
from slipway.package.tosca.section import Section
from slipway.package.warnings import Warnings
from slipway.package.yaml_reader import YamlMap

# Policies multiply nodes with levels and steps, so few of each are read in one flavour.
MOST_NODES = 300
MOST_POLICIES = 300
_POLICY_PREFIX = "tosca.policies.nfv."
_STANDARD = {
    "VDU": "Vdu.Compute",
    "container": "Vdu.OsContainer",
    "virtual link": "VnfVirtualLink",
    "storage": "Vdu.VirtualBlockStorage",
}


@dataclass(frozen=True)
class ToscaPolicy:
    name: str
    kind: str
    section: Section

    @property
    def properties(self) -> Section:
        return self.section.section("properties")


@dataclass(frozen=True)
class Topology:
    file: str
    section: Section
    nodes: dict[str, NodeTemplate]
    policies: tuple[ToscaPolicy, ...]
    warnings: Warnings

    def of_kind(self, *kinds: str) -> Iterator[NodeTemplate]:
        return (node for node in self.nodes.values() if node.kind in kinds)

    @property
    def vnf(self) -> NodeTemplate | None:
        return next(self.of_kind(VNF), None)

    @property
    def substitution(self) -> Section:
        return self.section.section("substitution_mappings")

    def no_such(self, noun: str, name: str, subject: str, where: Section, key: str, cure: str) -> PackageError:
        """`subject` takes the node `name` for a VDU, a storage, ...; `cure` is for a name that nothing has."""
        node = self.nodes.get(name)
        if node is None:
            return where.error(f"{subject} {name!r}, which is not declared.", cure, key)
        type_name = node.section.text("type")
        fault = f"whose type {type_name[:100]!r} is not that of a {noun}" if type_name else "which has no type"
        cure = f"give {name!r} the type tosca.nodes.nfv.{_STANDARD[noun]}, or one that the VNFD derives from it."
        return where.error(f"{subject} {name!r}, {fault}.", cure, key)

    def policies_of(self, kind: str) -> Iterator[ToscaPolicy]:
        return (policy for policy in self.policies if policy.kind == kind)


def read_topology(root: YamlMap, file: str, types: NodeTypes, warnings: Warnings) -> Topology | None:
    """None for a file that only defines types."""
    whole = Section(root, file)
    inputs = whole.section("topology_template").section("inputs").content
    section = Section(root, file, inputs).section("topology_template")
    if not section:
        return None
    nodes = {
        name: NodeTemplate(name, types.kind(node.text("type"), node), node)
        for name, node in section.sections("node_templates")
    }
    policies = tuple(_policies(section))
    if len(nodes) > MOST_NODES or len(policies) > MOST_POLICIES:
        raise section.error(
            f"The topology has more than {MOST_NODES} nodes or {MOST_POLICIES} policies.", "describe fewer VDUs."
        )
    return Topology(file, section, nodes, policies, warnings)


def _policies(section: Section) -> Iterator[ToscaPolicy]:
    for name, holder in section.pairs("policies"):
        policy = holder.section(name)
        kind = policy.text("type") or ""
        if kind.startswith(_POLICY_PREFIX):
            yield ToscaPolicy(name, kind.removeprefix(_POLICY_PREFIX), policy)


def requirements(section: Section) -> Iterator[tuple[str, str, Section]]:
    """(requirement, node it names, where it stands), for `name: node` and `name: {node: node}`."""
    for name, holder in section.pairs("requirements"):
        long_form = isinstance(holder.value(name), YamlMap)
        node = holder.section(name).text("node") if long_form else next(iter(holder.words(name)), None)
        if node is not None:
            yield name, node, holder
