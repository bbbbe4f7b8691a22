"""What an operation changes in a cluster: its nodes before and after, who leaves, who joins, who stays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slipway.cluster.checks import check_cluster
from slipway.cluster.naming import node_name
from slipway.cluster.parameters import ClusterParameters, NodeParameters
from slipway.cluster.request import Check, ClusterRequest, read_request
from slipway.cluster.spec import ClusterSpec, Node, login_of
from slipway.model.machine import FoundMachine
from slipway.model.situation import PlanningSituation
from slipway.model.target import VnfcMember

Nodes = tuple[Node, ...]


@dataclass(frozen=True)
class ClusterChange:
    """Nodes `before` and `after` the operation. A node that is healed is in both, with different machines."""

    situation: PlanningSituation
    request: ClusterRequest
    before: Nodes
    after: Nodes

    @property
    def parameters(self) -> ClusterParameters:
        return self.request.parameters

    @property
    def leaving(self) -> Nodes:
        """Machines that will be gone, whether or not their slots are filled again."""
        stay = {node.machine for node in self.after}
        return tuple(node for node in self.before if node.machine not in stay)

    @property
    def joining(self) -> Nodes:
        there = {node.machine for node in self.before}
        return tuple(node for node in self.after if node.machine not in there)

    @property
    def staying(self) -> Nodes:
        there = {node.machine for node in self.before}
        return tuple(node for node in self.after if node.machine in there)

    @property
    def healed_masters(self) -> Nodes:
        """Those that are made anew, as they were: the dead first, since etcd counts on the others meanwhile."""
        slots = {node.slot for node in self.joining}
        plan_heal = [node for node in self.leaving if node.master and node.slot in slots]
        return tuple(sorted(plan_heal, key=lambda node: node.machine not in self.situation.found.broken))

    def cluster(self, through: Iterable[Node]) -> ClusterSpec:
        """The cluster, worked on through these masters."""
        version, checked = self.request.version, self.request.checked
        return ClusterSpec(
            instance=self.situation.instance.vnf.id,
            masters=tuple(through),
            networks=checked.networks,
            vip=checked.vip,
            vip_port=checked.vip_port,
            floating_ip=checked.floating_ip,
            version=str(version) if version else None,
            image_repository=self.parameters.image_repository,
        )


def cluster_change(situation: PlanningSituation, check: Check = check_cluster) -> ClusterChange:
    request = read_request(situation, check)
    target = situation.change.after
    return ClusterChange(
        situation,
        request,
        before=_nodes(request, situation.found.machines),
        after=_nodes(request, target.members if target else ()),
    )


def cluster_now(situation: PlanningSituation, check: Check = check_cluster) -> tuple[ClusterSpec, Nodes]:
    """The cluster as it is, with nothing to be done."""
    change = cluster_change(situation, check)
    return change.cluster(masters(change.before)), change.before


def masters(nodes: Iterable[Node]) -> Nodes:
    return tuple(node for node in nodes if node.master)


def workers(nodes: Iterable[Node]) -> Nodes:
    return tuple(node for node in nodes if not node.master)


def _nodes(request: ClusterRequest, machines: Iterable[VnfcMember | FoundMachine]) -> Nodes:
    checked, parameters = request.checked, request.parameters
    roles = {checked.masters.vdu: parameters.master_node, checked.workers.vdu: parameters.worker_node}
    instance_id = request.situation.instance.vnf.id
    return tuple(
        _node(instance_id, machine, roles[machine.vdu], master=machine.vdu == checked.masters.vdu)
        for machine in machines
        if machine.vdu in roles
    )


def _node(instance_id: str, machine: VnfcMember | FoundMachine, role: NodeParameters, *, master: bool) -> Node:
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
