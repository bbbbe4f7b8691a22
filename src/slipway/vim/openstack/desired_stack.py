"""The stack that a target leads to: what it is made of, and where in it each member's server will be."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from slipway.model.machine import Machine, Wanted
from slipway.model.target import Change, VnfTarget
from slipway.model.user_data import FILE
from slipway.vim.machine_by_machine.wanted import wanted_of
from slipway.vim.openstack import base_hot
from slipway.vim.openstack.base_hot import NFV, VDU
from slipway.vim.openstack.generated_hot import generated_spec
from slipway.vim.openstack.hot_template import BaseHot
from slipway.vim.openstack.nfv_parameters import DESIRED_CAPACITY, base_hot_spec
from slipway.vim.openstack.package_images import carried_images, image_names_in
from slipway.vim.openstack.stack_change import StackMember
from slipway.vim.openstack.stack_spec import StackSpec
from slipway.vim.openstack.template_reads import reads_image

NFV_NAMES = {"image": "vcImageId", "flavour": "computeFlavourId", "zone": "locationConstraints"}  # in nfv.VDU.<vdu>


@dataclass(frozen=True)
class DesiredStack:
    target: VnfTarget
    wanted: Wanted
    spec: StackSpec
    members: tuple[StackMember, ...]
    present: frozenset[str]  # ids of machines that are there already
    user_data: bool  # whether code of the package decides what the stack becomes
    images: frozenset[str]  # of packages, by their names in Glance, that it is made from
    grant_follows: bool = False  # whether an NFVO has still to say what is unset
    base: BaseHot | None = None  # the package's own template

    def definition_of(self, name: str) -> Any:
        """All that template and parameters have for one member: where it differs from before, the member is touched."""
        if self.spec.template is not None:
            resources = self.spec.template["resources"]
            return {key: value for key, value in resources.items() if _owner(key) == name}
        machine = next(one for one in self.wanted.machines if one.name == name)
        shared = (key for key in self.spec.parameters if key != "nfv" and not key.endswith(DESIRED_CAPACITY))
        others = {key: self.spec.parameters[key] for key in shared}
        return (self.spec.files, others, *_nfv_entries(self.spec.parameters.get("nfv", {}), machine))

    def updated_for(self, names: Iterable[str], before: DesiredStack) -> DesiredStack:
        """The stack before, with those members as they will be.

        A template of the package stays the one before, with other parameters for those members: a new template is for
        all members at once.
        """
        after = {one.name: one for one in self.wanted.machines}
        was = {one.name: one for one in before.wanted.machines}
        done = set(names)
        mixed = [after.get(name) if name in done else was.get(name) for name in dict.fromkeys((*was, *after))]
        wanted = replace(self.wanted, machines=tuple(one for one in mixed if one is not None))
        if before.spec.template is not None and self.spec.template is not None:
            return self._generated_for(before, wanted, done)
        return _build(before.target, wanted, self.present, user_data=self.user_data, grant_follows=self.grant_follows)

    def _generated_for(self, before: DesiredStack, wanted: Wanted, done: set[str]) -> DesiredStack:
        """What belongs to no member, like a network, is there for those before and for those to come."""
        names = {one.name for stack in (before, self) for one in stack.wanted.machines}
        old, new = (one.spec.template or {} for one in (before, self))
        staying = {key: one for key, one in old["resources"].items() if _owner(key) not in done}
        coming = {key: one for key, one in new["resources"].items() if _owner(key) in done or _owner(key) not in names}
        template = {**new, "resources": staying | coming}
        spec = replace(self.spec, template=template, boot_files=before.spec.boot_files | self.spec.boot_files)
        members = tuple(_member(one, one.name) for one in wanted.machines)
        return dataclasses.replace(self, wanted=wanted, spec=spec, members=members)


def desired_stack(change: Change, target: VnfTarget) -> DesiredStack:
    present = frozenset(machine.id for machine in change.inventory.machines)
    user_data = FILE in {**target.parameters, **change.additional_params}  # of the instantiation, or of this request
    wanted = wanted_of(dataclasses.replace(change, after=target))
    return _build(target, wanted, present, user_data=user_data, grant_follows=change.grant_follows)


def current_stack(change: Change, target: VnfTarget) -> DesiredStack:
    """The stack that stands: nothing in it is new."""
    still = Change(
        instance_id=change.instance_id,
        version=change.version,
        inventory=change.inventory,
        additional_params=change.additional_params,
    )
    return desired_stack(still, target)


def _build(
    target: VnfTarget, wanted: Wanted, present: frozenset[str], *, user_data: bool, grant_follows: bool
) -> DesiredStack:
    base = base_hot.parse(target)
    if base is None:
        spec = generated_spec(wanted, target.flavour, target.vnfd_id, incomplete=grant_follows)
        members = tuple(_member(one, one.name) for one in wanted.machines)
        images = image_names_in(spec.template)
        return DesiredStack(target, wanted, spec, members, present, user_data, frozenset(images), grant_follows)
    placed = base_hot.placements(base, target.flavour)
    if user_data:
        members = tuple(_member(one, None, group=True) for one in wanted.machines)
    else:
        members = tuple(
            _member(one, placed[one.vdu].resource_of(one), placed[one.vdu].is_group) for one in wanted.machines
        )
    spec = base_hot_spec(target, wanted, base, placed, present, incomplete=user_data or grant_follows)
    members = members if user_data else _with_nfv_values(members, spec.parameters.get(NFV, {}).get(VDU, {}))
    images = image_names_in(_images_used(base, target, spec.parameters, wanted, user_data=user_data))
    return DesiredStack(target, wanted, spec, members, present, user_data, frozenset(images), grant_follows, base)


def _with_nfv_values(members: tuple[StackMember, ...], vdus: dict[str, Any]) -> tuple[StackMember, ...]:
    """With what their servers are made from: members of a group share one entry, whatever each was to have."""

    def with_values(member: StackMember) -> StackMember:
        entry = vdus.get(member.name) or vdus.get(member.vdu) or {}
        values = {name: entry.get(key) for name, key in NFV_NAMES.items()}
        return replace(member, **{name: value for name, value in values.items() if isinstance(value, str)})

    return tuple(map(with_values, members))


def _images_used(
    base: BaseHot, target: VnfTarget, parameters: dict[str, Any], wanted: Wanted, *, user_data: bool
) -> list[Any]:
    """What parameters name as images, and what members were made from, where the templates read it.

    User data may use any image of the package, but for those in whose place a grant has another.
    """
    entries: dict[str, Any] = parameters.get(NFV, {}).get(VDU, {})
    made_from = [(machine.vdu, machine.image) for machine in wanted.machines]
    if user_data:
        return [entries, made_from, carried_images(target)]
    read = [name for name in (*target.flavour.vdus, *target.flavour.storages) if reads_image(base, name)]
    own = [one for key, one in entries.items() if key in read or key.rpartition("-")[0] in read]
    return [own, [image for vdu, image in made_from if vdu in read]]


def _member(machine: Machine, top: str | None, group: bool = False) -> StackMember:
    return StackMember(
        id=machine.id,
        name=machine.name,
        vdu=machine.vdu,
        top=top,
        group=group,
        image=machine.image,
        flavour=machine.flavour,
        zone=machine.zone,
        volume_images={volume.name: volume.image for volume in machine.volumes if volume.image},
        existing_ports={port.name: port.existing for port in machine.ports if port.existing},
    )


def _owner(resource: str) -> str:
    """The member, network or VDU that a resource of a generated template belongs to."""
    return resource.partition(":")[0]


def _nfv_entries(nfv: dict[str, Any], machine: Machine) -> tuple[Any, ...]:
    slot = machine.name.removeprefix(machine.vdu)
    vdus, points = nfv.get("VDU", {}), nfv.get("CP", {})
    own = dict(vdus.get(machine.name) or vdus.get(machine.vdu) or {})
    own.pop("desired_capacity", None)  # how many others there are
    return own, {port.name: points.get(f"{port.name}{slot}") or points.get(port.name) for port in machine.ports}
