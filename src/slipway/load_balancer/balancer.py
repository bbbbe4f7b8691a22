"""The machine that balances: which VDU it is, how it is reached, and what is refused before anything is made."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from slipway.cluster.naming import node_name
from slipway.cluster.parameters import PATH, ExternalLoadBalancerParameters
from slipway.cluster.roles import unknown
from slipway.cluster.schema import Problems, Refusal
from slipway.cluster.spec import Node, SshLogin, StepArguments
from slipway.cluster.values import Secret
from slipway.model.descriptor import ConnectionPoint, Flavour
from slipway.model.machine import FoundMachine
from slipway.model.target import VnfcMember

PARAMETER = f"{PATH}.external_lb_param"
GROUP = "_instance"  # what requests for other managers put behind a VDU's name when they mean its group of machines


class Balancer(StepArguments, frozen=True, kw_only=True):
    """The load balancer of a cluster, in a plan. `script`: of the package, which sets it up in place of ours."""

    cluster: str  # the instance that it belongs to
    node: Node
    script: str | None = None


class BalancerRole(StepArguments, frozen=True, kw_only=True):
    """`ssh`: the connection point, or the floating IP of the VIM's template, where it is reached by all."""

    vdu: str
    ssh: str


def balancer_role(
    parameters: ExternalLoadBalancerParameters,
    flavour: Flavour,
    counts: dict[str, int],
    *,
    others: Collection[str],
    has_template: bool,
    files: Collection[str],
) -> BalancerRole:
    """BadRequest that names what does not fit. `others`: VDUs of nodes and of the storage server, which are none."""
    problems = Problems()
    machines = [name for name, vdu in flavour.vdus.items() if not vdu.container and name not in others]
    role = _role(parameters.ssh_cp_name, flavour, machines, has_template)
    if isinstance(role, Refusal):
        problems.add(f"{PARAMETER}.ssh_cp_name", role)
    elif counts.get(role.vdu, 0) != 1:
        what = f"there would be {counts.get(role.vdu, 0)} machines of {role.vdu!a}, and one balances"
        problems.add(f"{PARAMETER}.ssh_cp_name", Refusal(what, "choose a level with one, or a VDU that has one"))
    if parameters.script_path is not None and parameters.script_path not in files:
        what = f"the package has no file {parameters.script_path}"
        cure = "name one that it has, or leave script_path out: then Slipway's own template is used"
        problems.add(f"{PARAMETER}.script_path", Refusal(what, cure))
    problems.raise_if_any()
    assert isinstance(role, BalancerRole)  # noqa: S101 - otherwise there was a problem
    return role


def balancer_of(
    parameters: ExternalLoadBalancerParameters,
    role: BalancerRole,
    instance_id: str,
    machines: Iterable[VnfcMember | FoundMachine],
) -> Balancer | None:
    """The one among the machines; None when it is not there (yet, or any more)."""
    for machine in machines:
        if machine.vdu == role.vdu:
            node = Node(
                machine=machine.id,
                slot=machine.name,
                name=node_name(instance_id, machine.name),
                master=False,
                ssh=role.ssh,
                nic=role.ssh,
                login=balancer_login(parameters),
            )
            return Balancer(cluster=instance_id, node=node, script=parameters.script_path)
    return None


def balancer_login(parameters: ExternalLoadBalancerParameters) -> SshLogin:
    return SshLogin(
        username=parameters.ssh_username,
        port=parameters.ssh_port,
        password=_document(parameters.ssh_password),
        private_key=_document(parameters.ssh_private_key),
        passphrase=_document(parameters.ssh_passphrase),
    )


def _role(name: str, flavour: Flavour, machines: list[str], has_template: bool) -> BalancerRole | Refusal:
    """A connection point; else the VDU, its aspect or its group of machines; else a floating IP of the template."""
    points = [point for point in flavour.connection_points.values() if point.vdu in machines]
    for point in points:
        if point.name == name:
            return BalancerRole(vdu=point.vdu, ssh=name)
    if name in flavour.connection_points:
        owner = flavour.connection_points[name].vdu
        what = f"the connection point {name!a} belongs to {owner!a}, which is another part of the cluster"
        return Refusal(what, f"write one of: {_listed(points, machines)}")
    named = [vdu for vdu in machines if name in (vdu, f"{vdu}{GROUP}")] or _scaled(name, flavour, machines)
    if len(named) == 1:
        return _reached(named[0], points)
    if has_template and len(machines) == 1:
        return BalancerRole(vdu=machines[0], ssh=name)
    refusal = unknown("connection point, VDU or aspect of a load balancer", name, [_listed(points, machines)])
    if has_template and len(machines) > 1:
        what = f"{refusal.what}; a floating IP of the template may be any of {', '.join(machines)}"
        return Refusal(what, refusal.cure)
    return refusal


def _scaled(name: str, flavour: Flavour, machines: list[str]) -> list[str]:
    aspect = flavour.aspects.get(name)
    return [vdu for vdu in aspect.deltas if vdu in machines] if aspect else []


def _reached(vdu: str, points: list[ConnectionPoint]) -> BalancerRole | Refusal:
    """At the first connection point that is connected from outside, for others come by it; else at its first one."""
    own = sorted((point for point in points if point.vdu == vdu), key=lambda point: point.order)
    outside = [point for point in own if point.virtual_link is None]
    for point in (*outside, *own):
        return BalancerRole(vdu=vdu, ssh=point.name)
    return Refusal(f"{vdu!a} has no connection point", "give it one in the VNFD")


def _listed(points: list[ConnectionPoint], machines: list[str]) -> str:
    return ", ".join([*(point.name for point in points), *machines]) or "(there is none)"


def _document(secret: Secret | None) -> str | dict[str, str] | None:
    return None if secret is None else secret.document
