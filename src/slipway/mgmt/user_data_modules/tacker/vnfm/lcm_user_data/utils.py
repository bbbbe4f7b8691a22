"""Helpers for user data of the first form: what of VNFD, request and images goes into a stack's parameters.

`base_hot_dict` holds the top template as `heat_template`, and nested ones by their file names. Requests and records are
objects with attributes (`inst_req_info.ext_virtual_links`).
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tacker.common.utils import MemoryUnit
from tacker.sol_refactored.common.vnfd_utils import capability_name, dig

HOT_NOVA_SERVER = "OS::Nova::Server"
HOT_NOVA_FLAVOR = "OS::Nova::Flavor"
HOT_NEUTRON_PORT = "OS::Neutron::Port"
HOT_CINDER_VOLUME = "OS::Cinder::Volume"
AUTO_SCALING_GROUP = "OS::Heat::AutoScalingGroup"
SUPPORTED_HOT_TYPE = [HOT_NOVA_SERVER, HOT_NOVA_FLAVOR, HOT_NEUTRON_PORT, HOT_CINDER_VOLUME]
PORT_SERVER_TYPE = [HOT_NOVA_SERVER, HOT_NEUTRON_PORT, HOT_CINDER_VOLUME]

Document = dict[str, Any]


# --- what templates read


def create_initial_param_dict(base_hot_dict: Document) -> Document:
    """`{"nfv": {"VDU": {name: {}}, "CP": {name: {}}}}` with all names that the templates read of `nfv`."""
    return _read_of_nfv(base_hot_dict, SUPPORTED_HOT_TYPE)


def create_initial_param_server_port_dict(base_hot_dict: Document) -> Document:
    """The same without what only flavors read."""
    return _read_of_nfv(base_hot_dict, PORT_SERVER_TYPE)


def _read_of_nfv(templates: Document, kinds: Container[str]) -> Document:
    nfv: dict[str, Document] = {"VDU": {}, "CP": {}}
    for template in templates.values():
        if not dig(template, "parameters", "nfv"):
            continue
        for resource in (template.get("resources") or {}).values():
            for value in _values(resource, kinds):
                read = dig(value, "get_param")
                if isinstance(read, list) and len(read) == 4 and read[0] == "nfv" and read[1] in nfv:
                    nfv[read[1]].setdefault(read[2], {})
    return {"nfv": nfv}


def _values(resource: Document, kinds: Container[str]) -> Iterator[Any]:
    """The properties of a resource or of a group's members, and the images of a server's disks."""
    kind, properties = str(resource.get("type")), resource.get("properties") or {}
    if kind == AUTO_SCALING_GROUP:
        yield from (dig(properties, "resource", "properties") or {}).values()
    elif kind in kinds:
        yield from properties.values()
        disks = properties.get("block_device_mapping_v2") if kind == HOT_NOVA_SERVER else None
        yield from (dig(disk, "image") for disk in disks or ())


def get_diff_base_hot_param_from_api(base_hot_dict: Document, inst_req_info: Any) -> Document:
    """Those of the request's additional parameters that the top template has parameters for."""
    given = inst_req_info.additional_params or {}
    known = dig(base_hot_dict, "heat_template", "parameters") or {}
    return {name: given[name] for name in known if given.get(name) is not None}


# --- what the VNFD says of VDUs


def create_vdu_flavor_dict(vnfd_dict: Document) -> Document:
    """Sizes of VDUs: `vcpus`, `ram` in MiB, `disk` in GiB."""
    sizes = {}
    for name, node in _nodes(vnfd_dict):
        asked = dig(node, "capabilities", "virtual_compute", "properties")
        if asked:
            sizes[name] = {key: size for key, size in _sizes(asked) if size is not None}
    return sizes


def _sizes(asked: Document) -> Iterator[tuple[str, Any]]:
    memory, disks = dig(asked, "virtual_memory", "virtual_mem_size"), asked.get("virtual_local_storage")
    yield "vcpus", dig(asked, "virtual_cpu", "num_virtual_cpu")
    yield "ram", memory and MemoryUnit.convert_unit_size_to_num(memory, "MiB")
    yield "disk", disks and MemoryUnit.convert_unit_size_to_num(disks[0]["size_of_storage"], "GiB")


def create_vdu_flavor_capability_name_dict(vnfd_dict: Document) -> Document:
    """The flavors that VDUs ask for by name."""
    return {name: flavor for name, node in _nodes(vnfd_dict) if (flavor := capability_name(node)) is not None}


def create_sw_image_dict(vnfd_dict: Document) -> Document:
    """The names of images, of VDUs and of volumes."""
    images = ((name, dig(node, "properties", "sw_image_data", "name")) for name, node in _nodes(vnfd_dict))
    return {name: image for name, image in images if image is not None}


def create_vdu_image_dict(grant_info: Document) -> Document:
    """The ids of images on the VIM, of VDUs and of volumes."""
    return {name: resources[-1].resource_identifier for name, resources in grant_info.items() if resources}


def _nodes(vnfd: Document) -> Iterable[tuple[str, Any]]:
    return (dig(vnfd, "topology_template", "node_templates") or {}).items()


# --- networks


def create_cpd_vl_dict(base_hot_dict: Document, inst_req_info: Any) -> Document:
    """The networks of connection points that are resources of a template."""
    resources = {name for template in base_hot_dict.values() for name in template.get("resources") or {}}
    return {point.cpd_id: link.resource_id for link, point in _points(inst_req_info) if point.cpd_id in resources}


def create_network_dict(inst_req_info: Any, param_dict: Document) -> Document:
    """Network and fixed addresses of those connection points that the templates read."""
    read = dig(param_dict, "nfv", "CP") or {}
    return {
        point.cpd_id: {"network": link.resource_id, "fixed_ips": list(_fixed_ips(point))}
        for link, point in _points(inst_req_info)
        if point.cpd_id in read
    }


def _points(request: Any) -> Iterator[tuple[Any, Any]]:
    return ((link, point) for link in request.ext_virtual_links or () for point in link.ext_cps or ())


def _fixed_ips(point: Any) -> Iterator[Document]:
    layers = (layer for config in point.cp_config or () for layer in config.cp_protocol_data or ())
    for ethernet in (layer.ip_over_ethernet for layer in layers):
        for asked in (ethernet.ip_addresses if ethernet else None) or ():
            subnet = {"subnet": asked.subnet_id} if asked.subnet_id else {}
            address = {"ip_address": asked.fixed_addresses[-1]} if asked.fixed_addresses else {}
            if subnet or address:
                yield {**subnet, **address}


# --- all together


def create_final_param_dict(
    param_dict: Document, vdu_flavor_dict: Document, vdu_image_dict: Document, cpd_vl_dict: Document
) -> Document:
    """The parameters read, with their values. A connection point's may be a network alone."""
    filled = copy.deepcopy(param_dict)
    for name, vdu in (dig(filled, "nfv", "VDU") or {}).items():
        vdu.update(flavor=vdu_flavor_dict.get(name), image=vdu_image_dict.get(name))
    for name, point in (dig(filled, "nfv", "CP") or {}).items():
        values = (cpd_vl_dict or {}).get(name) or {}
        known: Document = {"network": values} if isinstance(values, str) else values
        point.update({key: copy.deepcopy(known[key]) for key in ("network", "fixed_ips") if key in known})
    return filled


# --- how many


@dataclass(frozen=True)
class _Aspect:
    initial: int
    step: int

    def at(self, level: int) -> int:
        return self.initial + self.step * level


def create_desired_capacity_dict(base_hot_dict: Document, vnfd_dict: Document, inst_req_info: Any) -> Document:
    """How many members each aspect has at the instantiation level of the request."""
    asked, numbers = getattr(inst_req_info, "instantiation_level_id", None), {}
    for levels in _policies(vnfd_dict, "InstantiationLevels"):
        level = dig(levels, "properties", "levels", asked or dig(levels, "properties", "default_level"))
        for name, aspect in _aspects(base_hot_dict, vnfd_dict).items():
            numbers[name] = aspect.at(dig(level, "scale_info", name, "scale_level") or 0)
    return numbers


def get_desired_capacity_dict(base_hot_dict: Document, vnfd_dict: Document, inst_vnf_info: Any) -> Document:
    """How many members each aspect has now."""
    levels = {status.aspect_id: status.scale_level for status in inst_vnf_info.scale_status or ()}
    aspects = _aspects(base_hot_dict, vnfd_dict)
    return {name: aspect.at(levels[name]) for name, aspect in aspects.items() if name in levels}


def _aspects(templates: Document, vnfd: Document) -> dict[str, _Aspect]:
    """None when the top template has no groups."""
    resources = dig(templates, "heat_template", "resources") or {}
    if not any(resource.get("type") == AUTO_SCALING_GROUP for resource in resources.values()):
        return {}
    initial = {
        vdu: dig(policy, "properties", "initial_delta", "number_of_instances")
        for policy in _policies(vnfd, "VduInitialDelta")
        for vdu in policy["targets"]
    }
    aspects = {}
    for policy in _policies(vnfd, "VduScalingAspectDeltas"):
        steps = [delta["number_of_instances"] for delta in (dig(policy, "properties", "deltas") or {}).values()]
        known = [initial[vdu] for vdu in policy["targets"] if initial.get(vdu) is not None]
        if steps and known:
            aspects[dig(policy, "properties", "aspect")] = _Aspect(known[-1], steps[-1])
    return aspects


def _policies(vnfd: Document, kind: str) -> list[Document]:
    written = dig(vnfd, "topology_template", "policies") or []
    parts = written if isinstance(written, list) else [written]
    policies = (policy for part in parts for policy in part.values())
    return [policy for policy in policies if policy.get("type") == f"tosca.policies.nfv.{kind}"]
