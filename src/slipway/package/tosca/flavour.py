"""One deployment flavour, put together from the topology that describes it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from slipway.model.descriptor import Flavour, PlacementRule
from slipway.model.errors import PackageError
from slipway.package.tosca.artifact_files import ArtifactFiles
from slipway.package.tosca.hooks import read_hooks
from slipway.package.tosca.network import read_connection_points, read_virtual_links
from slipway.package.tosca.node_types import MCIOP, VIRTUAL_LINK, VNF
from slipway.package.tosca.scaling import read_aspects, read_levels, with_initial_deltas
from slipway.package.tosca.section import some
from slipway.package.tosca.topology import Topology
from slipway.package.tosca.vdu import read_storages, read_vdus

CHART, CHART_ARCHIVES = "Chart.yaml", (".tgz", ".tar.gz")
MANIFESTS = (".yaml", ".yml", ".json")
_APART = {"AffinityRule": False, "AntiAffinityRule": True}


def read_flavour(flavour_id: str, topology: Topology, files: ArtifactFiles) -> Flavour:
    storages = read_storages(topology, files)
    vdus = with_initial_deltas(topology, read_vdus(topology, storages, files))
    if not vdus:
        raise _without_vdu(flavour_id, topology)
    links = read_virtual_links(topology)
    aspects = read_aspects(topology, vdus)
    _warn_of_manifests_outside(topology, files)
    levels, default_level = read_levels(topology, aspects, vdus)
    return Flavour(
        id=flavour_id,
        vdus=vdus,
        connection_points=read_connection_points(topology, vdus, links),
        virtual_links=links,
        storages=storages,
        aspects=aspects,
        levels=levels,
        default_level=default_level,
        placement=tuple(_placement(topology)),
        hooks=read_hooks(topology.vnf, files, topology.warnings),
        manifests=tuple(dict.fromkeys(_manifests(topology, files))),
        charts=tuple(dict.fromkeys(_charts(topology, files))),
    )


def _manifests(topology: Topology, files: ArtifactFiles) -> Iterator[str]:
    """Files of the package that Mciop nodes name, but for charts."""
    for node in topology.of_kind(MCIOP):
        for artifact in files.of(node.section, may_be_outside=True):
            if artifact.path and artifact.path.endswith(MANIFESTS) and posixpath.basename(artifact.path) != CHART:
                yield artifact.path


def _charts(topology: Topology, files: ArtifactFiles) -> Iterator[str]:
    """Archives that Mciop nodes name, and the directories of whatever Chart.yaml they name."""
    for node in topology.of_kind(MCIOP):
        for artifact in files.of(node.section, may_be_outside=True):
            if artifact.path and artifact.path.endswith(CHART_ARCHIVES):
                yield artifact.path
            elif artifact.path and posixpath.basename(artifact.path) == CHART:
                yield posixpath.dirname(artifact.path)


def _warn_of_manifests_outside(topology: Topology, files: ArtifactFiles) -> None:
    """Packages of others name such things, and are usable on other VIMs; who deploys a CNF must know what it lacks."""
    for node in topology.of_kind(MCIOP):
        for artifact in files.of(node.section, may_be_outside=True):
            if artifact.path is None and artifact.reference.endswith((*MANIFESTS, *CHART_ARCHIVES)):
                what = (
                    f"The artifact {artifact.name!r} ({artifact.reference[:200]}) of {node.name!r} is not in the "
                    "package: no VNF gets it."
                )
                cure = "put the file into the package, and name its path there."
                topology.warnings.add(node.section.error(what, cure, "artifacts"))


def _without_vdu(flavour_id: str, topology: Topology) -> PackageError:
    others = [f"{node.name} ({node.section.text('type')})" for node in topology.nodes.values() if node.kind != VNF]
    passed_over = f"; passed over: {some(others)}" if others else ""
    return topology.section.error(
        f"The flavour {flavour_id!r} has no VDU{passed_over}.",
        "add a node of the type tosca.nodes.nfv.Vdu.Compute or tosca.nodes.nfv.Vdu.OsContainerDeployableUnit.",
    )


def _placement(topology: Topology) -> Iterator[PlacementRule]:
    """Which VNFCs must be together or apart: affinity rules, and the placement groups that they name."""
    groups = {name: section.words("members") for name, section in topology.section.sections("groups")}
    for policy in topology.policies:
        if policy.kind not in _APART:
            continue
        named = policy.section.words("targets")
        members = tuple(
            dict.fromkeys(name for target in dict.fromkeys(named) for name in groups.get(target, (target,)))
        )
        if unknown := [name for name in members if name not in topology.nodes]:
            what = f"The policy {policy.name!r} has targets that are not declared ({some(unknown)}): those are ignored."
            cure = "remove them, or name VDUs, virtual links or placement groups."
            topology.warnings.add(policy.section.error(what, cure, "targets"))
        if links := [name for name in members if name in topology.nodes and topology.nodes[name].kind == VIRTUAL_LINK]:
            what = f"The policy {policy.name!r} is for virtual links ({some(links)}): nothing is done about those."
            topology.warnings.add(policy.section.error(what, "remove them, or name VDUs.", "targets"))
        yield PlacementRule(
            name=policy.name,
            apart=_APART[policy.kind],
            scope=policy.properties.text("scope") or "nfvi_node",
            targets=tuple(name for name in members if name in topology.nodes),
        )
