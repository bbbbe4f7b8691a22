"""The HOT that a package brings in `BaseHOT/<flavour>`: which resource makes which VDU, and one for all members.

A VDU's servers have one of three forms there:

    group     an OS::Heat::AutoScalingGroup of a nested template that has a server named as the VDU
    copies    a resource named as the VDU, a nested template: one copy for each member, `VDU1-0`, `VDU1-1`, ...
    single    such a resource, or a server, of a VDU that always has one member: left as it is
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from glob import escape
from posixpath import dirname, splitext
from typing import Any

import msgspec

from slipway.model.descriptor import Flavour, Level
from slipway.model.errors import PackageError
from slipway.model.machine import Machine
from slipway.model.target import VnfTarget
from slipway.package.limits import DEFAULT_LIMITS
from slipway.package.yaml_reader import plain
from slipway.vim.openstack.hot_template import GROUP, NESTED, SERVER, BaseHot, calls, read_base_hot, resources_of
from slipway.vim.openstack.managed_networks import with_networks
from slipway.vim.openstack.stack_spec import StackSpec

BASE_HOT = "BaseHOT"
SUFFIXES = (".yaml", ".yml")
NFV = "nfv"  # the parameter with what a template may read of VDUs and connection points
VDU, CP = "VDU", "CP"


class Form(StrEnum):
    GROUP = "group"
    COPIES = "copies"
    SINGLE = "single"


class Placement(msgspec.Struct, frozen=True):
    """How servers of a VDU are made, and by which resource of the top template."""

    form: Form
    resource: str

    @property
    def is_group(self) -> bool:
        return self.form is Form.GROUP

    def resource_of(self, machine: Machine) -> str:
        """The one that has a machine's server."""
        return machine.name if self.form is Form.COPIES else self.resource


def package_files(target: VnfTarget) -> tuple[str, ...]:
    """All there is for the flavour: templates, and what they get by get_file."""
    return (f"{BASE_HOT}/{escape(target.flavour.id)}/*",)


def has_base_hot(target: VnfTarget) -> bool:
    """Whether the package brings a HOT for the flavour, told from the names of its files."""
    return bool(_top_files(target))


def refuse_base_hot(target: VnfTarget) -> None:
    """PackageError when the HOT can't be used: by the names of its files, and by their content where it was read."""
    if base := parse(target):
        placements(base, target.flavour)


def parse(target: VnfTarget) -> BaseHot | None:
    """None when there is no HOT for the flavour, or nothing has been read yet. PackageError names the file."""
    found = _top_files(target)
    if len(found) > 1:
        raise PackageError(
            f"There are {len(found)} templates for flavour {target.flavour.id!r}: {', '.join(found)}.",
            cure=f"keep one there, and put those that it uses into {dirname(found[0])}/{NESTED}.",
        )
    if not found or found[0] not in target.files:
        return None
    return read_base_hot(found[0], {path: file.content for path, file in target.files.items()})


def placements(base: BaseHot, flavour: Flavour) -> dict[str, Placement]:
    """By VDU. PackageError when no resource makes one of them, or when it can't be told which."""
    placed = {name: _placement(base, flavour, name) for name, vdu in flavour.vdus.items() if not vdu.container}
    for vdu, placement in placed.items():
        together = [name for name, other in placed.items() if other.is_group and other.resource == placement.resource]
        if len(together) > 1:
            raise PackageError(
                f"The group {placement.resource!r} makes servers of several VDUs: {', '.join(together)}.",
                file=base.path,
                cure=f"give each VDU a group of its own: {vdu!r} could not be scaled or healed without the others.",
            )
    return placed


def rendered(spec: StackSpec, contents: Mapping[str, bytes]) -> tuple[dict[str, Any], dict[str, str]]:
    """The template, and the files that go with it by the names it has for them: as Heat gets them.

    `contents`: the files of `spec.files`, by path.
    """
    if spec.top is None:
        return spec.template or {}, spec.boot_files
    base = read_base_hot(spec.top.path, contents)
    files = {name: _text(path, contents[path]) for name, path in base.files.items()}
    return with_networks(with_members(base, spec.copies, spec.capacities), spec.networks), files


def with_members(base: BaseHot, copies: Mapping[str, tuple[int, ...]], capacities: Mapping[str, int]) -> dict[str, Any]:
    """The top template with a copy of a VDU's resource for each of its slots, and the number of members of groups."""
    _refuse_too_large(base, copies)
    template = plain(base.template)
    resources: dict[str, Any] = {}
    for name, resource in resources_of(template).items():
        if name in capacities:
            resource["properties"]["desired_capacity"] = capacities[name]
        if "depends_on" in resource:
            resource["depends_on"] = _with_copies(resource["depends_on"], copies)
        for slot in copies.get(name, ()):
            own = {"properties": _of_slot(resource["properties"], slot)} if "properties" in resource else {}
            resources[f"{name}-{slot}"] = {**resource, **own}
        if name not in copies:
            resources[name] = resource
    return {**template, "resources": resources}


def _refuse_too_large(base: BaseHot, copies: Mapping[str, tuple[int, ...]]) -> None:
    """A small file may have ten thousand copies of a large resource, or of two that wait for each other's."""
    values = 0
    for name, resource in base.resources.items():
        needed = resource.get("depends_on", [])
        waits_for = sum(len(copies.get(one, [one])) for one in (needed if isinstance(needed, list) else [needed]))
        values += len(copies.get(name, [name])) * (_values_in(resource) + waits_for)
    if values > DEFAULT_LIMITS.yaml_nodes:
        raise PackageError(
            f"With a resource for each member the template has more than {DEFAULT_LIMITS.yaml_nodes} values.",
            file=base.path,
            cure=f"let it have less for each member, or make its VDUs {GROUP}s.",
        )


def _values_in(resource: dict[str, Any]) -> int:
    count = 0
    pending: list[Any] = [resource]
    while pending:
        one = pending.pop()
        count += 1
        if isinstance(one, dict | list):
            pending += one.values() if isinstance(one, dict) else one
    return count


def _with_copies(depends_on: Any, copies: Mapping[str, tuple[int, ...]]) -> list[str]:
    names = [depends_on] if isinstance(depends_on, str) else depends_on
    return [
        one for name in names for one in ([f"{name}-{slot}" for slot in copies[name]] if name in copies else [name])
    ]


def _of_slot(value: Any, slot: int) -> Any:
    """What a copy reads of `nfv` is its own: [nfv, VDU, VDU1, image] becomes [nfv, VDU, VDU1-0, image]."""
    if isinstance(value, list):
        return [_of_slot(one, slot) for one in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["get_param"] and is_named_read(value["get_param"]):
        nfv, kind, name, *rest = value["get_param"]
        return {"get_param": [nfv, kind, f"{name}-{slot}", *rest]}
    return {key: _of_slot(one, slot) for key, one in value.items()}


def is_named_read(argument: Any) -> bool:
    """Whether a get_param reads what `nfv` says of a VDU, storage or connection point."""
    if not isinstance(argument, list) or len(argument) < 3:
        return False
    return argument[0] == NFV and argument[1] in (VDU, CP) and isinstance(argument[2], str)


def _placement(base: BaseHot, flavour: Flavour, vdu: str) -> Placement:
    makers = [name for name, resource in base.resources.items() if _makes(base, name, resource, vdu)]
    if not makers:
        raise PackageError(
            f"No resource makes the servers of VDU {vdu!r}.",
            file=base.path,
            cure=f"name an {SERVER} {vdu!r}: here, in a nested template, or in one that is the resource of an {GROUP}.",
        )
    if len(makers) > 1:
        raise PackageError(
            f"Several resources make servers of VDU {vdu!r}: {', '.join(makers)}.",
            file=base.path,
            cure="keep one of them, or name their servers differently.",
        )
    (maker,) = makers
    if base.resources[maker]["type"] == GROUP:
        if base.resources[maker]["properties"]["resource"]["type"] == SERVER:
            raise PackageError(
                f"The group {maker!r} has bare servers: nothing in it is named as the VDU, or outlives a server.",
                file=base.path,
                cure=f"put the server, named {vdu!r}, with its ports into a nested template that the group is of.",
            )
        return Placement(Form.GROUP, maker)
    if _always_one(flavour, vdu):
        return Placement(Form.SINGLE, maker)
    _refuse_uncopyable(base, maker, vdu)
    return Placement(Form.COPIES, maker)


def _makes(base: BaseHot, name: str, resource: dict[str, Any], vdu: str) -> bool:
    type_ = resource["properties"]["resource"]["type"] if resource["type"] == GROUP else resource["type"]
    return name == vdu if type_ == SERVER else _holds(base, type_, vdu)


def _holds(base: BaseHot, template: str, vdu: str) -> bool:
    """Whether a nested template has the VDU's server, or one that it uses does."""
    pending, seen = [template], set[str]()
    while pending:
        name = pending.pop()
        if name in seen or name not in base.nested:
            continue
        seen.add(name)
        resources = resources_of(base.nested[name])
        if resources.get(vdu, {}).get("type") == SERVER:
            return True
        pending += [resource["type"] for resource in resources.values()]
    return False


def _always_one(flavour: Flavour, vdu: str) -> bool:
    """Whether no instantiation level and no scaling leads to another number of members."""
    scales = any(aspect.max_level and any(aspect.deltas.get(vdu, ())) for aspect in flavour.aspects.values())
    levels = flavour.levels.values() or (Level(name=""),)
    return not scales and all(flavour.members(vdu, level.scale, level) == 1 for level in levels)


def _refuse_uncopyable(base: BaseHot, maker: str, vdu: str) -> None:
    """Each copy needs everything of its own: what others refer to, or what it would share, can't be copied."""
    several = f"VDU {vdu!r} may have several members"
    if maker != vdu:
        cure = f"name it {vdu!r}, so that there can be one for each member, or make it an {GROUP}."
        raise PackageError(f"The resource {maker!r} makes one server, and {several}.", file=base.path, cure=cure)
    resource = base.resources[vdu]
    if resource["type"] == SERVER and any(calls(resource, "get_resource")):
        cure = "put the server with its ports and volumes into a nested template."
        raise PackageError(f"{several}, which can't share what its server refers to.", file=base.path, cure=cure)
    others = {name: one for name, one in base.resources.items() if name != vdu}
    if _refers(others, vdu) or _refers(base.template.get("outputs"), vdu):
        cure = "remove the reference, or move what refers to it into its nested template."
        raise PackageError(f"{several}, and something refers to it as to one resource.", file=base.path, cure=cure)
    if taken := [name for name in others if re.fullmatch(f"{re.escape(vdu)}-[0-9]+", name)]:
        raise PackageError(f"{several}, and one would be called {taken[0]!r}.", file=base.path, cure="rename that.")


def _refers(value: Any, resource: str) -> bool:
    arguments = (one for function in ("get_resource", "get_attr") for one in calls(value, function))
    return any(one == resource or (isinstance(one, list) and one[:1] == [resource]) for one in arguments)


def _top_files(target: VnfTarget) -> list[str]:
    folder = f"{BASE_HOT}/{target.flavour.id}"
    names = {*target.file_names, *target.files}
    return sorted(name for name in names if dirname(name) == folder and splitext(name)[1] in SUFFIXES)


def _text(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PackageError("The file is not UTF-8 text.", file=path, cure="save it as UTF-8.") from None
