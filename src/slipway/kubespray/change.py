"""What an operation changes in a cluster by kubespray: nodes, the balancer in front of them, the Ansible server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from slipway.cluster.change import ClusterChange, Nodes, cluster_change, masters, workers
from slipway.cluster.parameters import NAME, parameters_now
from slipway.cluster.request import ClusterRequest
from slipway.cluster.spec import Node, Server, login_of
from slipway.kubespray.arguments import AnsibleServer
from slipway.kubespray.checks import ansible_parameters, check_kubespray_cluster
from slipway.kubespray.server import HOST_KEY
from slipway.load_balancer.balancer import Balancer, BalancerRole, balancer_of, balancer_role
from slipway.model.errors import RequestError
from slipway.model.instance import VnfInstance
from slipway.model.situation import PlanningSituation


@dataclass(frozen=True)
class KubesprayChange:
    """`balancer`: as it will be, where the cluster has one in front of its masters.

    `former`: the Ansible server so far, where the request names another one.
    """

    nodes: ClusterChange
    ansible: AnsibleServer
    former: AnsibleServer | None = None
    balancer: Balancer | None = None

    @property
    def instance(self) -> str:
        return self.nodes.situation.instance.vnf.id

    @property
    def published(self) -> Nodes:
        """Machines beside the nodes by which the API is called."""
        return (self.balancer.node,) if self.balancer else ()

    @property
    def has_balancer(self) -> bool:
        """Whatever a termination says of it."""
        return bool((self.nodes.situation.instance.parameters.get(NAME) or {}).get("external_lb_param"))

    @property
    def balancer_is_new(self) -> bool:
        """A heal made its machine anew, or there was none."""
        there = {machine.id for machine in self.nodes.situation.found.machines}
        return self.balancer is not None and self.balancer.node.machine not in there

    @property
    def unchanged_balancer(self) -> Nodes:
        """The balancer, where this operation leaves its machine as it is."""
        return () if self.balancer_is_new else self.published

    @property
    def uses_passwords(self) -> bool:
        return any(node.login.private_key is None for node in self.nodes.after)

    @property
    def plugin(self) -> str | None:
        """kubespray's own choice unless the request has one."""
        return self.nodes.parameters.cni if self.nodes.request.document.get("cni") is not None else None


def kubespray_change(situation: PlanningSituation) -> KubesprayChange:
    nodes = cluster_change(situation, check_kubespray_cluster)
    ansible, before, target = ansible_server(nodes.request), server_before(nodes.request), situation.change.after
    former = before if before and _place(before) != _place(ansible) else None
    given, role = nodes.parameters.external_lb_param, balancer_role_of(nodes.request)
    if given is None or role is None:
        return KubesprayChange(nodes, ansible, former)
    machines = target.members if target else situation.found.machines
    return KubesprayChange(nodes, ansible, former, balancer_of(given, role, situation.instance.vnf.id, machines))


def balancer_role_of(request: ClusterRequest) -> BalancerRole | None:
    """None without a balancer. BadRequest when the flavour has no machine that can be it."""
    given, flavour, checked = request.parameters.external_lb_param, request.situation.flavour, request.checked
    if given is None:
        return None
    return balancer_role(
        given,
        flavour,
        {vdu: flavour.members(vdu, request.scale_levels, request.level) for vdu in flavour.vdus},
        others=tuple(vdu for vdu in (checked.masters.vdu, checked.workers.vdu, checked.storage) if vdu),
        has_template=request.has_template,
        files=request.situation.files,
    )


def ansible_server(request: ClusterRequest) -> AnsibleServer:
    """BadRequest when the request does not say enough of it."""
    given, vnf = ansible_parameters(request.parameters), request.situation.instance.vnf
    assert given.kubespray_root_path is not None  # noqa: S101 - or it was refused
    key = given.host_key or recorded_host_key(vnf, given.ip_address)
    return AnsibleServer(
        server=Server(address=given.ip_address, login=login_of(given), host_key=key),
        root=given.kubespray_root_path,
        inventory=given.transferring_inventory_path or f"{given.kubespray_root_path}/inventory/slipway-{vnf.id}",
        instance=vnf.id,
    )


def server_before(request: ClusterRequest) -> AnsibleServer | None:
    """The one that the instance has been on so far."""
    stored = request.situation.instance.parameters
    try:
        return ansible_server(replace(request, parameters=parameters_now(stored, {})))
    except RequestError:
        return None


def _place(ansible: AnsibleServer) -> tuple[str, int]:
    return ansible.server.address, ansible.server.login.port


def recorded_host_key(vnf: VnfInstance, address: str) -> str | None:
    """What the server at that address showed at the first contact."""
    info = vnf.instantiated_vnf_info
    return (info.metadata.get(HOST_KEY) or {}).get(address) if info else None


def in_order(present: Iterable[Node], new: Iterable[Node] = ()) -> Nodes:
    """As the inventory has them: masters before workers, and those that stand before those that join."""
    both = (*present, *new)
    return (*masters(both), *workers(both))
