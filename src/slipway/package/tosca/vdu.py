"""VDUs and the storages that belong to them."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from slipway.model.descriptor import Storage, Vdu
from slipway.package.tosca.artifact_files import ArtifactFiles
from slipway.package.tosca.boot import read_boot_data, read_boot_order
from slipway.package.tosca.image import read_image
from slipway.package.tosca.node_types import COMPUTE, CONTAINER, CONTAINER_UNIT, STORAGES, NodeTemplate
from slipway.package.tosca.section import Section
from slipway.package.tosca.topology import Topology, requirements


def read_storages(topology: Topology, files: ArtifactFiles) -> dict[str, Storage]:
    return {node.name: _storage(node, files) for node in topology.of_kind(*STORAGES)}


def _storage(node: NodeTemplate, files: ArtifactFiles) -> Storage:
    kind = STORAGES[node.kind or ""]
    properties = node.properties
    data = properties.section(f"virtual_{kind}_storage_data") or properties
    size_key = "max_size_of_storage" if kind == "object" else "size_of_storage"
    size = data.size(size_key)
    if size is None and kind != "object":
        raise node.section.error(
            f"The storage {node.name!r} has no {size_key}.", f"give virtual_{kind}_storage_data.{size_key}, e.g. 10 GB."
        )
    return Storage(name=node.name, kind=kind, size_bytes=size or 0, image=read_image(node, files))


def read_vdus(topology: Topology, storages: dict[str, Storage], files: ArtifactFiles) -> dict[str, Vdu]:
    nodes = list(topology.of_kind(COMPUTE, CONTAINER_UNIT))
    vdus = {node.name: _vdu(node, topology, storages, files) for node in nodes}
    try:
        TopologicalSorter({name: vdu.depends_on for name, vdu in vdus.items()}).prepare()
    except CycleError as error:
        circle = list(reversed(error.args[1]))  # from who depends to whom it depends on
        first = min(range(len(circle) - 1), key=lambda at: list(vdus).index(circle[at]))
        names = [*circle[first:-1], *circle[: first + 1]]
        raise topology.nodes[names[0]].section.error(
            f"VDUs depend on each other in a circle: {' -> '.join(names)}.",
            "remove one of these dependencies.",
            "requirements",
        ) from None
    return vdus


def _vdu(node: NodeTemplate, topology: Topology, storages: dict[str, Storage], files: ArtifactFiles) -> Vdu:
    minimum, maximum = _profile(node)
    compute = node.section.section("capabilities").section("virtual_compute").section("properties")
    containers = _containers(node, topology) if node.kind == CONTAINER_UNIT else []
    images = [image for one in (node, *containers) if (image := read_image(one, files)) is not None]
    boot_data, metadata = read_boot_data(node, topology, files)
    attached = _attached(node, topology, storages)
    _warn_of_constraints(node, topology)
    return Vdu(
        name=node.name,
        title=node.properties.text("name"),
        minimum=minimum,
        maximum=maximum,
        container=node.kind == CONTAINER_UNIT,
        image=images[0] if images else None,
        flavour=_flavour_name(compute),
        cpus=compute.section("virtual_cpu").number("num_virtual_cpu"),
        memory_bytes=compute.section("virtual_memory").size("virtual_mem_size"),
        disk_bytes=_local_disk(compute),
        boot_data=boot_data,
        metadata=metadata,
        storages=attached,
        boot_order=read_boot_order(node, topology, attached, storages),
        depends_on=_dependencies(node, topology),
    )


def _profile(node: NodeTemplate) -> tuple[int, int]:
    """One instance, when the VNFD says nothing."""
    profile = node.properties.section("vdu_profile")
    minimum = profile.number("min_number_of_instances")
    maximum = profile.number("max_number_of_instances")
    low = 1 if minimum is None else minimum
    high = max(low, 1) if maximum is None else maximum
    if low > high:
        raise profile.error(
            f"VDU {node.name!r} has at least {low} and at most {high} instances.",
            "let min_number_of_instances be no more than max_number_of_instances.",
            "min_number_of_instances",
        )
    return low, high


def _flavour_name(compute: Section) -> str | None:
    """The VIM's name for the size: the first requested additional capability that has a name."""
    for _, capability in compute.sections("requested_additional_capabilities"):
        if name := capability.text("requested_additional_capability_name"):
            return name
    return None


def _local_disk(compute: Section) -> int | None:
    sizes = [one.size("size_of_storage") for one in compute.listed("virtual_local_storage")]
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


def _warn_of_constraints(node: NodeTemplate, topology: Topology) -> None:
    if node.properties.value("nfvi_constraints"):
        what = f"VDU {node.name!r} has nfvi_constraints: nothing is done about them."
        cure = "ask for a flavor that meets them by requested_additional_capabilities, or remove them."
        topology.warnings.add(node.properties.error(what, cure, "nfvi_constraints"))


def _dependencies(node: NodeTemplate, topology: Topology) -> tuple[str, ...]:
    """The VDUs that must be there before. What a VDU consists of (storages, CPs) is made with it anyway."""
    names: dict[str, None] = {}
    for requirement, target, where in requirements(node.section):
        if requirement != "dependency":
            continue
        if target not in topology.nodes:
            subject = f"VDU {node.name!r} depends on"
            raise topology.no_such("VDU", target, subject, where, requirement, "name a node of this file.")
        if topology.nodes[target].kind in (COMPUTE, CONTAINER_UNIT):
            names[target] = None
    return tuple(names)


def _attached(node: NodeTemplate, topology: Topology, storages: dict[str, Storage]) -> tuple[str, ...]:
    names = []
    for requirement, target, where in requirements(node.section):
        if not requirement.startswith("virtual_storage"):
            continue
        if target not in storages:
            subject = f"VDU {node.name!r} uses the storage"
            cure = "declare it as tosca.nodes.nfv.Vdu.VirtualBlockStorage, or correct the name."
            raise topology.no_such("storage", target, subject, where, requirement, cure)
        names.append(target)
    return tuple(names)


def _containers(node: NodeTemplate, topology: Topology) -> list[NodeTemplate]:
    found = []
    for requirement, target, where in requirements(node.section):
        if requirement != "container":
            continue
        if target not in topology.nodes or topology.nodes[target].kind != CONTAINER:
            subject = f"VDU {node.name!r} runs the container"
            raise topology.no_such("container", target, subject, where, requirement, "declare it.")
        found.append(topology.nodes[target])
    return found
