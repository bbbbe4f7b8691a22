"""Which machines of a VNF are masters and workers: from the names in the parameters to VDUs of the flavour."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from slipway.cluster.parameters import NodeParameters
from slipway.cluster.schema import Refusal
from slipway.model.descriptor import Aspect, ConnectionPoint, Flavour, Level


class NodeRole(msgspec.Struct, frozen=True, kw_only=True):
    """`count` at the levels asked for, `most` at the highest that the flavour allows."""

    vdu: str
    count: int
    most: int


class NoRole(Exception):
    """The parameters name no VDU: which parameter is to blame, and why."""

    def __init__(self, parameter: str, refusal: Refusal) -> None:
        super().__init__(refusal.what)
        self.parameter, self.refusal = parameter, refusal


def role_of(node: NodeParameters, flavour: Flavour, scale: dict[str, int], level: Level | None = None) -> NodeRole:
    vdu = _vdu_name(node, flavour)
    highest = {name: aspect.max_level for name, aspect in flavour.aspects.items()}
    count = flavour.members(vdu, scale, level)
    most = min(max(flavour.members(vdu, highest, level), count), max(flavour.vdus[vdu].maximum, count))
    return NodeRole(vdu=vdu, count=count, most=most)


def _vdu_name(node: NodeParameters, flavour: Flavour) -> str:
    """By VDU, else by aspect, else by the connection point that SSH uses, or the cluster's traffic where SSH has none.

    An `aspect_id` that is no aspect of the VNFD is the name of a group in the VIM's template, which nothing here knows.
    """
    if node.vdu_id is not None:
        return _machine_vdu(node.vdu_id, "vdu_id", flavour)
    if node.aspect_id in flavour.aspects:
        return _vdu_of_aspect(flavour.aspects[node.aspect_id], node, flavour)
    point = _point(node, flavour)
    if point is None:
        raise NoRole("ssh_cp_name", unknown("connection point", node.ssh_cp_name, flavour.connection_points))
    return _machine_vdu(point.vdu, "ssh_cp_name", flavour)


def _vdu_of_aspect(aspect: Aspect, node: NodeParameters, flavour: Flavour) -> str:
    """The one VDU that the aspect scales; of several the one that has SSH's connection point."""
    plan_scale = [name for name in aspect.deltas if name in flavour.vdus]
    point = _point(node, flavour)
    if len(plan_scale) > 1 and point is not None and point.vdu in plan_scale:
        return _machine_vdu(point.vdu, "aspect_id", flavour)
    if len(plan_scale) != 1:
        what = f"the aspect {aspect.name!a} scales {', '.join(plan_scale) or 'no VDU'}"
        raise NoRole("aspect_id", Refusal(what, "name an aspect that scales the machines of this role, or use vdu_id"))
    return _machine_vdu(plan_scale[0], "aspect_id", flavour)


def _point(node: NodeParameters, flavour: Flavour) -> ConnectionPoint | None:
    """SSH may go to a floating IP of the VIM's template, which is no connection point."""
    points = flavour.connection_points
    return points.get(node.ssh_cp_name) or points.get(node.nic_cp_name or "")


def _machine_vdu(name: str, parameter: str, flavour: Flavour) -> str:
    machines = [vdu.name for vdu in flavour.vdus.values() if not vdu.container]
    if name not in machines:
        raise NoRole(parameter, unknown("VDU of machines", name, machines))
    return name


def unknown(what: str, name: str, known: Iterable[str]) -> Refusal:
    return Refusal(f"the flavour has no {what} {name[:80]!a}", f"write one of: {', '.join(known) or '(there is none)'}")
