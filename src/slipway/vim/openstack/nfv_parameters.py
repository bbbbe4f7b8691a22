"""The parameters of a HOT of the package, the document `nfv` above all.

    nfv:
      VDU: {VDU1: {flavor, image, computeFlavourId, vcImageId, locationConstraints, desired_capacity}}
      CP: {VDU1_CP1: {network, fixed_ips: [{ip_address, subnet}], port}}

The names of both versions of the peer stand there at once. A VDU with a copy for each member has an entry for each of
them as well (`VDU1-0`). A storage with an image has an entry under VDU. `additionalParams.nfv` is merged over it all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from slipway.model.connectivity import asked_addresses, link_port
from slipway.model.errors import Unprocessable
from slipway.model.json_documents import merge_patch
from slipway.model.machine import Machine, Wanted
from slipway.model.target import VnfTarget
from slipway.vim.openstack.base_hot import CP, NFV, VDU, Form, Placement, is_named_read, with_members
from slipway.vim.openstack.generated_hot import fixed_ip
from slipway.vim.openstack.hot_template import BaseHot, calls, properties_of
from slipway.vim.openstack.managed_networks import refuse_unread_ports, refuse_unused, with_networks
from slipway.vim.openstack.stack_spec import FileRef, StackSpec
from slipway.vim.openstack.template_reads import reads

DESIRED_CAPACITY = "_desired_capacity"  # after an aspect's name: a parameter of its own, in version 1
FIXED_IPS = "fixed_ips"
PORT = "port"  # of a connection point that is to be a port which exists: Neutron's id
OPTIONAL = ("locationConstraints",)  # what a template may read although nothing is said; Heat reads an empty text
CURES = {
    "computeFlavourId": "name it by requested_additional_capabilities in the VNFD, or let a grant choose one",
    "flavor": "name it by requested_additional_capabilities in the VNFD, or let a grant choose one",
    "vcImageId": "give the VDU or storage sw_image_data in the VNFD, or let a grant choose an image",
    "image": "give the VDU or storage sw_image_data in the VNFD, or let a grant choose an image",
    "network": "connect the connection point by extVirtualLinks",
    "ip_address": "ask for an address of the connection point in extVirtualLinks",
    PORT: "name a port by linkPortId in extVirtualLinks, or let the template do without under a condition",
    "subnet": "name the subnet of the connection point in extVirtualLinks",
}
ELSE = "give it by additionalParams.nfv"
NOT_AN_OBJECT = "it is merged over what is computed for a template; give an object."


def base_hot_spec(
    target: VnfTarget,
    wanted: Wanted,
    base: BaseHot,
    placed: dict[str, Placement],
    present: Collection[str] = (),
    *,
    incomplete: bool = False,
) -> StackSpec:
    """What the stack is made of for those machines, when the package brings a HOT. `present` as in `parameters_of`.

    `incomplete`: user data or an NFVO has still to say something, so what is unset may yet be set.
    """
    copies, capacities = copies_of(wanted, placed), capacities_of(wanted, placed)
    _refuse_capacities(base, capacities)
    _refuse_unlike_members(target, wanted, placed)
    networks = dict(target.managed_networks)
    template = with_networks(with_members(base, copies, capacities), networks)
    parameters = _with_empty_lists(template, parameters_of(target, wanted, base, placed, present))
    if not incomplete:
        refuse_unused(base.path, base.template, networks, _links_read(target, base))
        points = target.flavour.connection_points
        refuse_unread_ports(base.path, target, [name for name in points if reads(base, (CP,), (name,), (PORT,))])
        _refuse_unset(base, template, parameters)
    return StackSpec(
        vnfd_id=target.vnfd_id,
        top=FileRef(base.path, target.files[base.path].digest),
        nested=tuple(FileRef(path, target.files[path].digest) for path in sorted(set(base.files.values()))),
        copies=copies,
        capacities=capacities,
        networks=networks,
        parameters=parameters,
    )


def copies_of(wanted: Wanted, placed: dict[str, Placement]) -> dict[str, tuple[int, ...]]:
    return {
        vdu: tuple(sorted(_slot(machine) for machine in wanted.machines if machine.vdu == vdu))
        for vdu, placement in placed.items()
        if placement.form is Form.COPIES
    }


def capacities_of(wanted: Wanted, placed: dict[str, Placement]) -> dict[str, int]:
    return {
        placement.resource: sum(machine.vdu == vdu for machine in wanted.machines)
        for vdu, placement in placed.items()
        if placement.form is Form.GROUP
    }


def parameters_of(
    target: VnfTarget, wanted: Wanted, base: BaseHot, placed: dict[str, Placement], present: Collection[str] = ()
) -> dict[str, Any]:
    """The parameters that the template declares, as far as there is something to say.

    `present`: ids of machines that are there already. Members of a group share their parameters: those of who stands.
    """
    declared: dict[str, Any] = base.template.get("parameters") or {}
    parameters = {name: target.parameters[name] for name in declared if name in target.parameters and name != NFV}
    capacities = {f"{name}{DESIRED_CAPACITY}": count for name, count in _capacity_names(target, wanted, placed)}
    parameters |= {name: count for name, count in capacities.items() if name in declared}
    if NFV in declared:
        given = target.parameters.get(NFV, {})
        if not isinstance(given, dict):
            raise Unprocessable(f"additionalParams.{NFV}: {NOT_AN_OBJECT}")
        computed = merge_patch(_nfv(target, wanted, base, placed, present), _for_copies(given, wanted, base, placed))
        parameters[NFV] = merge_patch(computed, given)
    return parameters


def _with_empty_lists(template: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """A template that hands on all addresses of a connection point gets an empty list where none is asked for.

    Heat would make an empty text of what is not there. An empty list leaves the address to Neutron.
    """
    for argument in calls(template.get("resources"), "get_param"):
        if is_named_read(argument) and argument[1] == CP and argument[3:] == [FIXED_IPS]:
            parameters = merge_patch({NFV: {CP: {argument[2]: {FIXED_IPS: []}}}}, parameters)
    return parameters


def _for_copies(
    given: dict[str, Any], wanted: Wanted, base: BaseHot, placed: dict[str, Placement]
) -> dict[str, dict[str, Any]]:
    """What is given for a VDU or connection point is for each copy of it."""
    entries: dict[str, dict[str, Any]] = {VDU: {}, CP: {}}
    for machine in wanted.machines:
        for kind, name in _reads_of_copy(base, placed, machine.vdu):
            named = given.get(kind)
            if isinstance(named, dict) and name in named:
                entries[kind][f"{name}-{_slot(machine)}"] = named[name]
    return entries


def _reads_of_copy(base: BaseHot, placed: dict[str, Placement], vdu: str) -> list[tuple[str, str]]:
    """The entries of `nfv` that each copy has one of its own of."""
    return _named_reads(base.resources[vdu]) if placed[vdu].form is Form.COPIES else []


def _nfv(
    target: VnfTarget, wanted: Wanted, base: BaseHot, placed: dict[str, Placement], present: Collection[str]
) -> dict[str, Any]:
    machines: dict[str, list[Machine]] = {name: [] for name in target.flavour.vdus}
    for machine in sorted(wanted.machines, key=lambda one: (one.id not in present, _slot(one))):
        machines[machine.vdu].append(machine)
    first_last = (volume for own in machines.values() for machine in reversed(own) for volume in machine.volumes)
    made_of = {volume.name: volume.image for volume in first_last if volume.image}
    entries: dict[str, dict[str, Any]] = {
        VDU: {
            **{
                name: _image(made_of.get(name, one.image.name))
                for name, one in target.flavour.storages.items()
                if one.image
            },
            **{name: {**_vdu(target, name, own), "desired_capacity": len(own)} for name, own in machines.items()},
        },
        CP: {name: _point(target, name, 0) for name in target.flavour.connection_points},
    }
    for vdu in placed:
        for kind, name in _reads_of_copy(base, placed, vdu):
            for machine in machines[vdu]:
                own = _of_member(target, machine, kind, name) or entries[kind].get(name, {})
                entries[kind][f"{name}-{_slot(machine)}"] = own
    return {kind: {name: one for name, one in named.items() if one} for kind, named in entries.items()}


def _of_member(target: VnfTarget, machine: Machine, kind: str, name: str) -> dict[str, Any]:
    """What one member has for itself; nothing of what belongs to others."""
    if kind == VDU and name == machine.vdu:
        return _vdu(target, name, [machine])
    if kind == VDU:
        return _image(next((volume.image for volume in machine.volumes if volume.name == name), None))
    point = target.flavour.connection_points.get(name)
    return _point(target, name, _slot(machine)) if point and point.vdu == machine.vdu else {}


def _vdu(target: VnfTarget, name: str, machines: list[Machine]) -> dict[str, Any]:
    """As the first of its machines is, or as one will be."""
    vdu = target.flavour.vdus[name]
    if machines:
        image, size, zone = machines[0].image, machines[0].flavour, machines[0].zone
    else:
        image = target.images.get(name) or (vdu.image.name if vdu.image else None)
        size, zone = target.flavours.get(name) or vdu.flavour, None
    return {**_known(flavor=size, computeFlavourId=size, locationConstraints=zone), **_image(image)}


def _image(name: str | None) -> dict[str, Any]:
    return _known(image=name, vcImageId=name)


def _point(target: VnfTarget, name: str, slot: int) -> dict[str, Any]:
    """The connection point of one member: of an external link, or of an internal one whose network exists."""
    for link in target.links:
        for data in link.ext_cps:
            if data.cpd_id == name:
                asked = [fixed_ip(address) for address in asked_addresses(data, slot)]
                port = link_port(link, data, slot)
                existing = port.resource_handle.resource_id if port else None
                return _known(network=link.resource_id, fixed_ips=asked or None, port=existing)
    inside = target.flavour.connection_points[name].virtual_link
    return _known(network=target.managed_networks.get(inside or ""))


def _known(**values: Any) -> dict[str, Any]:
    """Null would be a value to Heat; what is not there is an empty text."""
    return {name: value for name, value in values.items() if value is not None}


def _capacity_names(target: VnfTarget, wanted: Wanted, placed: dict[str, Placement]) -> Iterator[tuple[str, int]]:
    """By aspect, and by group: in version 1 they have the same name."""
    for aspect in target.flavour.aspects.values():
        if vdu := next(iter(aspect.deltas), None):
            yield aspect.name, sum(machine.vdu == vdu for machine in wanted.machines)
    yield from capacities_of(wanted, placed).items()


def _named_reads(resource: dict[str, Any]) -> list[tuple[str, str]]:
    """The entries of `nfv` that a resource reads, by kind and name."""
    arguments = calls(properties_of(resource), "get_param")
    return sorted({(argument[1], argument[2]) for argument in arguments if is_named_read(argument)})


def _refuse_capacities(base: BaseHot, capacities: dict[str, int]) -> None:
    for name, count in capacities.items():
        properties = properties_of(base.resources[name])
        low, high = properties.get("min_size"), properties.get("max_size")
        if (isinstance(low, int) and count < low) or (isinstance(high, int) and count > high):
            raise Unprocessable(
                f"{base.path}: the group {name} is to have {count} members, and has a min_size of {low} and a max_size "
                f"of {high}; let the template allow what the VNFD does."
            )


def _refuse_unlike_members(target: VnfTarget, wanted: Wanted, placed: dict[str, Placement]) -> None:
    """Unprocessable for what members of a group are to have each for itself: they share their parameters."""
    for vdu, placement in placed.items():
        members = [machine for machine in wanted.machines if machine.vdu == vdu]
        if placement.form is not Form.GROUP or len(members) < 2:
            continue
        zones = sorted({machine.zone for machine in members if machine.zone})
        if len(zones) > 1:
            raise Unprocessable(
                f"VDU {vdu}: its members are a group in the template, which has one zone for all, and the grant has "
                f"{', '.join(zones)}; grant one zone, or give the template a resource for each member."
            )
        for point in target.flavour.connection_points.values():
            own = _point(target, point.name, 0) if point.vdu == vdu else {}
            if PORT in own or any("ip_address" in one for one in own.get(FIXED_IPS, ())):
                one = "be a port that exists" if PORT in own else "have a fixed address"
                raise Unprocessable(
                    f"extVirtualLinks: {point.name} is to {one}, and the {len(members)} members of VDU "
                    f"{vdu} are a group in the template, which share their parameters; leave it out, or give the "
                    "template a resource for each member."
                )


def _links_read(target: VnfTarget, base: BaseHot) -> set[str]:
    """Internal links of connection points whose networks the template reads of `nfv`."""
    points = target.flavour.connection_points
    reads = (one for one in calls(base.resources, "get_param") if is_named_read(one) and one[1] == CP)
    named = (points[name].virtual_link for _, _, name, *rest in reads if rest[:1] == ["network"] and name in points)
    return {link for link in named if link}


def _refuse_unset(base: BaseHot, template: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Unprocessable for what Heat would miss, or read as an empty text and fail with later."""
    for name, declaration in (base.template.get("parameters") or {}).items():
        if name not in parameters and "default" not in declaration:
            raise Unprocessable(
                f"{base.path}: nothing sets its parameter {name}; give it as additionalParams.{name}, or give it a "
                "default in the template."
            )
    conditional = any(one.get("conditions") for one in (base.template, *base.nested.values()))
    optional = (*OPTIONAL, PORT) if conditional else OPTIONAL
    for argument in calls(template.get("resources"), "get_param"):
        if not isinstance(argument, list) or argument[:1] != [NFV] or argument[-1] in optional:
            continue
        if not all(isinstance(key, str | int) for key in argument):
            continue  # computed
        value: Any = parameters.get(NFV)
        for key in argument[1:]:
            value = _part(value, key)
        if value is None:
            shown, cure = ".".join(str(key) for key in argument), CURES.get(str(argument[-1]), ELSE)
            raise Unprocessable(f"{base.path}: it reads {shown}, and nothing says what that is; {cure}.")


def _part(value: Any, key: Any) -> Any:
    """As Heat goes along a path."""
    try:
        return value[int(key)] if isinstance(value, list) else value[key]
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def _slot(machine: Machine) -> int:
    return int(machine.name.rpartition("-")[2])
