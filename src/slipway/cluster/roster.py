"""Who is who in a situation: the cluster's nodes as they are, as they will be, who comes and who goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slipway.cluster.checks import CheckedCluster, check_cluster
from slipway.cluster.naming import node_name
from slipway.cluster.node_parameters import NodeParameters
from slipway.cluster.parameters import NAME, ClusterParameters, parameters_now, read_parameters
from slipway.cluster.recorded import recorded_version
from slipway.cluster.site import Node, Site, login_of
from slipway.cluster.versions import Version
from slipway.model.machine import FoundMachine
from slipway.model.requests import InstantiateRequest, ModifyRequest
from slipway.model.situation import Situation
from slipway.model.target import Member

Nodes = tuple[Node, ...]


@dataclass(frozen=True)
class Roster:
    """`before` and `after` the operation. A node that is healed is in both, with different machines."""

    situation: Situation
    parameters: ClusterParameters
    checked: CheckedCluster
    before: Nodes
    after: Nodes

    @property
    def leaving(self) -> Nodes:
        """Machines that will be gone, whether or not their slots are filled again."""
        stay = {node.machine for node in self.after}
        return tuple(node for node in self.before if node.machine not in stay)

    @property
    def coming(self) -> Nodes:
        there = {node.machine for node in self.before}
        return tuple(node for node in self.after if node.machine not in there)

    @property
    def healed_masters(self) -> Nodes:
        """Those that are made anew, as they were: the dead first, since etcd counts on the others meanwhile."""
        slots = {node.slot for node in self.coming}
        going = [node for node in self.leaving if node.master and node.slot in slots]
        return tuple(sorted(going, key=lambda node: node.machine not in self.situation.found.broken))

    @property
    def staying(self) -> Nodes:
        there = {node.machine for node in self.before}
        return tuple(node for node in self.after if node.machine in there)

    def site(self, through: Iterable[Node]) -> Site:
        """The cluster, worked on through these masters."""
        version = _version(self.situation, self.parameters)
        return Site(
            instance=self.situation.instance.vnf.id,
            masters=tuple(through),
            networks=self.checked.networks,
            vip=self.checked.vip,
            version=str(version) if version else None,
            image_repository=self.parameters.image_repository,
        )


def _version(situation: Situation, parameters: ClusterParameters) -> Version | None:
    """What this request names, or what the cluster has, or what was asked for at instantiation."""
    request = situation.request
    given = {} if isinstance(request, ModifyRequest) else request.additional_params.get(NAME) or {}
    recorded = recorded_version(situation.instance.vnf)
    return recorded if recorded and given.get("kubernetes_version") is None else parameters.kubernetes_version


def masters(nodes: Iterable[Node]) -> Nodes:
    return tuple(node for node in nodes if node.master)


def workers(nodes: Iterable[Node]) -> Nodes:
    return tuple(node for node in nodes if not node.master)


def roster_of(situation: Situation) -> Roster:
    parameters = parameters_of(situation)
    checked = checked_of(situation, parameters)
    target = situation.change.after if situation.change else None
    return Roster(
        situation,
        parameters,
        checked,
        before=_nodes(situation, parameters, checked, situation.found.machines),
        after=_nodes(situation, parameters, checked, target.members if target else ()),
    )


def nodes_of(situation: Situation) -> tuple[Site, Nodes]:
    """The cluster as it stands, with nothing to be done."""
    roster = roster_of(situation)
    return roster.site(masters(roster.before)), roster.before


def parameters_of(situation: Situation) -> ClusterParameters:
    """What was asked for at instantiation, and over it what this request says."""
    request = situation.request
    given = {} if isinstance(request, ModifyRequest) else request.additional_params
    if isinstance(request, InstantiateRequest):
        return read_parameters(given)
    return parameters_now(situation.instance.parameters, given)


def checked_of(situation: Situation, parameters: ClusterParameters) -> CheckedCluster:
    if isinstance(situation.request, InstantiateRequest):
        level = situation.flavour.level(situation.request.instantiation_level_id)
        return check_cluster(parameters, situation.flavour, dict(level.scale), level)
    info = situation.instance.vnf.instantiated_vnf_info
    level = situation.flavour.level(info.metadata.get("instantiationLevelId") if info else None)
    scale = {status.aspect_id: status.scale_level for status in info.scale_status} if info else {}
    return check_cluster(parameters, situation.flavour, scale, level)


def _nodes(
    situation: Situation,
    parameters: ClusterParameters,
    checked: CheckedCluster,
    machines: Iterable[Member | FoundMachine],
) -> Nodes:
    roles = {checked.masters.vdu: parameters.master_node, checked.workers.vdu: parameters.worker_node}
    master = checked.masters.vdu
    return tuple(
        _node(situation.instance.vnf.id, machine, roles[machine.vdu], master=machine.vdu == master)
        for machine in machines
        if machine.vdu in roles
    )


def _node(instance_id: str, machine: Member | FoundMachine, role: NodeParameters, *, master: bool) -> Node:
    return Node(
        machine=machine.id,
        slot=machine.name,
        name=node_name(instance_id, machine.name),
        master=master,
        ssh=role.ssh_cp_name,
        nic=role.traffic_cp_name,
        login=login_of(role),
        labels=dict(role.labels),
        taints=role.taints,
    )
