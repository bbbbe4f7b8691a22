"""One deployment flavour, put together from the topology that describes it."""

from __future__ import annotations

from slipway.model.descriptor import Flavour, Mciop, Vdu
from slipway.model.errors import PackageError
from slipway.package.tosca.artifact_files import ArtifactFiles
from slipway.package.tosca.hooks import read_hooks
from slipway.package.tosca.network import read_connection_points, read_virtual_links
from slipway.package.tosca.node_types import MCIOP, VNF
from slipway.package.tosca.placement import read_placement
from slipway.package.tosca.scaling import read_aspects, read_levels, with_initial_deltas
from slipway.package.tosca.section import some
from slipway.package.tosca.topology import Topology, requirements
from slipway.package.tosca.vdu import read_storages, read_vdus


def read_flavour(flavour_id: str, topology: Topology, files: ArtifactFiles) -> Flavour:
    storages = read_storages(topology, files)
    vdus = with_initial_deltas(topology, read_vdus(topology, storages, files))
    if not vdus:
        raise _without_vdu(flavour_id, topology)
    links = read_virtual_links(topology)
    aspects = read_aspects(topology, vdus)
    levels, default_level = read_levels(topology, aspects, vdus)
    return Flavour(
        id=flavour_id,
        description=_description(topology),
        vdus=vdus,
        connection_points=read_connection_points(topology, vdus, links),
        virtual_links=links,
        storages=storages,
        aspects=aspects,
        levels=levels,
        default_level=default_level,
        placement=read_placement(topology),
        hooks=read_hooks(topology.vnf, files),
        mciops=_mciops(topology, vdus, files),
    )


def _without_vdu(flavour_id: str, topology: Topology) -> PackageError:
    others = [f"{node.name} ({node.section.text('type')})" for node in topology.nodes.values() if node.kind != VNF]
    passed_over = f"; passed over: {some(others)}" if others else ""
    return topology.section.error(
        f"The flavour {flavour_id!r} has no VDU{passed_over}.",
        "add a node of the type tosca.nodes.nfv.Vdu.Compute or tosca.nodes.nfv.Vdu.OsContainerDeployableUnit.",
    )


def _description(topology: Topology) -> str:
    sources = [topology.substitution.section("properties")]
    if topology.vnf is not None:
        sources.insert(0, topology.vnf.properties)
    return next((text for one in sources if (text := one.text("flavour_description"))), "")


def _mciops(topology: Topology, vdus: dict[str, Vdu], files: ArtifactFiles) -> dict[str, Mciop]:
    found = {}
    for node in topology.of_kind(MCIOP):
        for requirement, target, where in requirements(node.section):
            if requirement == "associatedVdu" and target not in vdus:
                subject = f"The Mciop {node.name!r} deploys the VDU"
                raise topology.no_such("VDU", target, subject, where, requirement, f"name one of: {some(vdus)}.")
        found[node.name] = Mciop(
            name=node.name,
            artifacts=tuple(one.path or one.reference for one in files.of(node.section)),
            vdus=tuple(target for name, target, _ in requirements(node.section) if name == "associatedVdu"),
        )
    return found
