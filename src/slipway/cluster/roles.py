"""Which machines of a VNF are masters and workers: from the names in the parameters to VDUs of the flavour."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from slipway.cluster.node_parameters import NodeParameters
from slipway.cluster.reading import Refusal
from slipway.model.descriptor import Aspect, Flavour, Level


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """`count` at the levels asked for, `most` at the highest that the flavour allows."""

    vdu: str
    count: int
    most: int


class NoRole(Exception):
    """The parameters name no VDU: which parameter is to blame, and why."""

    def __init__(self, parameter: str, refusal: Refusal) -> None:
        super().__init__(refusal.what)
        self.parameter, self.refusal = parameter, refusal


def role_of(node: NodeParameters, flavour: Flavour, scale: dict[str, int], level: Level | None = None) -> Role:
    vdu = _vdu_name(node, flavour)
    highest = {name: aspect.max_level for name, aspect in flavour.aspects.items()}
    count = flavour.members(vdu, scale, level)
    most = min(max(flavour.members(vdu, highest, level), count), max(flavour.vdus[vdu].maximum, count))
    return Role(vdu=vdu, count=count, most=most)


def _vdu_name(node: NodeParameters, flavour: Flavour) -> str:
    """By VDU, else by aspect, else by the connection point that SSH uses."""
    if node.vdu_id is not None:
        return _machine_vdu(node.vdu_id, "vdu_id", flavour)
    if node.aspect_id is not None:
        return _vdu_of_aspect(_aspect(node.aspect_id, flavour), node, flavour)
    point = flavour.connection_points.get(node.ssh_cp_name)
    if point is None:
        raise NoRole("ssh_cp_name", unknown("connection point", node.ssh_cp_name, flavour.connection_points))
    return _machine_vdu(point.vdu, "ssh_cp_name", flavour)


def _aspect(name: str, flavour: Flavour) -> Aspect:
    if name not in flavour.aspects:
        raise NoRole("aspect_id", unknown("aspect", name, flavour.aspects))
    return flavour.aspects[name]


def _vdu_of_aspect(aspect: Aspect, node: NodeParameters, flavour: Flavour) -> str:
    """The one VDU that the aspect scales; of several the one that has SSH's connection point."""
    scaled = [name for name in aspect.deltas if name in flavour.vdus]
    point = flavour.connection_points.get(node.ssh_cp_name)
    if len(scaled) > 1 and point is not None and point.vdu in scaled:
        return _machine_vdu(point.vdu, "aspect_id", flavour)
    if len(scaled) != 1:
        what = f"the aspect {aspect.name!a} scales {', '.join(scaled) or 'no VDU'}"
        raise NoRole("aspect_id", Refusal(what, "name an aspect that scales the machines of this role, or use vdu_id"))
    return _machine_vdu(scaled[0], "aspect_id", flavour)


def _machine_vdu(name: str, parameter: str, flavour: Flavour) -> str:
    machines = [vdu.name for vdu in flavour.vdus.values() if not vdu.container]
    if name not in machines:
        raise NoRole(parameter, unknown("VDU of machines", name, machines))
    return name


def unknown(what: str, name: str, known: Iterable[str]) -> Refusal:
    return Refusal(f"the flavour has no {what} {name[:80]!a}", f"write one of: {', '.join(known) or '(there is none)'}")
