"""Whether a cluster can be built as asked: the parameters against the flavour, and against the networks known.

Everything that can be known before anything is made is refused here, all of it in one answer.
"""

from __future__ import annotations

import ipaddress

import msgspec

from slipway.cluster.networks import ClusterNetworks, chosen_networks, network_problems, vip_problem
from slipway.cluster.node_parameters import NodeParameters
from slipway.cluster.parameters import PATH, ClusterParameters
from slipway.cluster.reading import Problems, Refusal
from slipway.cluster.roles import NoRole, Role, role_of, unknown
from slipway.model.descriptor import Flavour, Level


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What is known beside the request. Nothing known is nothing checked.

    `template_ports` are ports that a VIM's template has beyond the VNFD, and that parameters may name, too.
    """

    node_network: str | None = None
    node_addresses: tuple[str, ...] = ()
    vip: str | None = None
    template_ports: tuple[str, ...] = ()


class CheckedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """What the checks found out, for the planners: roles, networks, and the virtual address when it is known."""

    masters: Role
    workers: Role
    networks: ClusterNetworks
    vip: str | None = None

    @property
    def balanced(self) -> bool:
        """Several masters behind a virtual address."""
        return self.masters.count > 1


def check_cluster(
    parameters: ClusterParameters,
    flavour: Flavour,
    scale: dict[str, int],
    level: Level | None = None,
    around: Surroundings = Surroundings(),  # noqa: B008 - frozen
) -> CheckedCluster:
    """BadRequest that names everything that does not fit."""
    problems = Problems()
    masters = _role(parameters.master_node, "master_node", flavour, scale, level, problems)
    workers = _role(parameters.worker_node, "worker_node", flavour, scale, level, problems)
    _check_points(parameters.master_node, "master_node", masters, flavour, around, problems)
    _check_points(parameters.worker_node, "worker_node", workers, flavour, around, problems)
    _check_storage(parameters, flavour, around, problems)
    problems.complain()
    assert masters is not None  # noqa: S101 - otherwise there was a problem
    assert workers is not None  # noqa: S101
    if masters.vdu == workers.vdu:
        what = f"masters and workers are both machines of {masters.vdu!a}"
        problems.add(f"{PATH}.worker_node", Refusal(what, "name different VDUs or aspects"))
    _check_masters(parameters, masters, flavour, around, problems)
    nodes = _node_network(parameters, flavour, around)
    networks = chosen_networks(parameters.master_node, nodes, masters.most + workers.most)
    for name, refusal in network_problems(networks, masters.most + workers.most, around.node_addresses):
        problems.add(f"{PATH}.master_node.{name}", refusal)
    vip = _checked_vip(parameters, masters, networks, around, problems)
    problems.complain()
    return CheckedCluster(masters=masters, workers=workers, networks=networks, vip=vip)


def refuse_master_count(count: int) -> Refusal | None:
    """1 or at least 3: of two etcd members both are needed, so two masters fail more often than one."""
    if count == 2:
        what = "there would be 2 masters, and etcd has no quorum of 2 once one is lost"
        return Refusal(what, "choose a flavour or level with 1 master or with 3 or more")
    if count < 1:
        return Refusal("there would be no master", "choose a flavour or level with 1 master or with 3 or more")
    return None


def _role(
    node: NodeParameters, name: str, flavour: Flavour, scale: dict[str, int], level: Level | None, problems: Problems
) -> Role | None:
    try:
        role = role_of(node, flavour, scale, level)
    except NoRole as error:
        problems.add(f"{PATH}.{name}.{error.parameter}", error.refusal)
        return None
    if node.vdu_id and node.aspect_id:
        aspect = flavour.aspects.get(node.aspect_id)
        if aspect is None:
            problems.add(f"{PATH}.{name}.aspect_id", unknown("aspect", node.aspect_id, flavour.aspects))
        elif role.vdu not in aspect.deltas:
            what = f"the aspect {node.aspect_id!a} does not scale {role.vdu!a}"
            problems.add(f"{PATH}.{name}.aspect_id", Refusal(what, "name an aspect that scales it, or leave it out"))
    return role


def _check_points(
    node: NodeParameters, name: str, role: Role | None, flavour: Flavour, around: Surroundings, problems: Problems
) -> None:
    for parameter, point in (("ssh_cp_name", node.ssh_cp_name), ("nic_cp_name", node.nic_cp_name)):
        if role is None or point is None or point in around.template_ports:
            continue
        if refusal := _refuse_point(point, role.vdu, flavour):
            problems.add(f"{PATH}.{name}.{parameter}", refusal)


def _refuse_point(name: str, vdu: str, flavour: Flavour) -> Refusal | None:
    own = [point.name for point in flavour.connection_points.values() if point.vdu == vdu]
    if name in own:
        return None
    if name not in flavour.connection_points:
        return unknown("connection point", name, own)
    what = f"the connection point {name!a} belongs to {flavour.connection_points[name].vdu!a}, not to {vdu!a}"
    return Refusal(what, f"write one of: {', '.join(own) or '(there is none)'}")


def _check_masters(
    parameters: ClusterParameters, masters: Role, flavour: Flavour, around: Surroundings, problems: Problems
) -> None:
    path = f"{PATH}.master_node"
    if refusal := refuse_master_count(masters.count):
        problems.add(path, refusal)
    point = parameters.master_node.cluster_cp_name
    if point is not None and point not in around.template_ports:
        if refusal := _refuse_point(point, masters.vdu, flavour):
            problems.add(f"{path}.cluster_cp_name", refusal)
        elif masters.count > 1 and parameters.master_node.cluster_ip is None and around.vip is None:
            what = f"each of the {masters.count} masters has its own {point!a}, and none is the cluster's address"
            cure = "give cluster_ip, an unused address of the nodes' network, or name a port of the VIM's template"
            problems.add(f"{path}.cluster_cp_name", Refusal(what, cure))
        elif point != (used := parameters.master_node.traffic_cp_name):
            refusal = Refusal(
                f"the cluster's address is one of the network of {used!a}", f"write {used}, or leave it out"
            )
            problems.add(f"{path}.cluster_cp_name", refusal)
    if masters.count > 1 and point is None and parameters.master_node.cluster_ip is None:
        what = f"{masters.count} masters need an address that they share"
        cure = "give cluster_ip, an unused address of the nodes' network, or cluster_cp_name"
        problems.add(f"{path}.cluster_ip", Refusal(what, cure))


def _check_storage(parameters: ClusterParameters, flavour: Flavour, around: Surroundings, problems: Problems) -> None:
    known = (*flavour.connection_points, *around.template_ports)
    named = [(f"pv_registration_params[{at}].nfs_server_cp", one.nfs_server_cp)
             for at, one in enumerate(parameters.pv_registration_params)]  # fmt: skip
    if storage := parameters.storage_server:
        named.append(("storage_server.ssh_cp_name", storage.ssh_cp_name))
        if storage.nic_cp_name is not None:
            named.append(("storage_server.nic_cp_name", storage.nic_cp_name))
    for parameter, point in named:
        if point not in known:
            problems.add(f"{PATH}.{parameter}", unknown("connection point", point, known))


def _checked_vip(
    parameters: ClusterParameters, masters: Role, networks: ClusterNetworks, around: Surroundings, problems: Problems
) -> str | None:
    """The address that several masters share, when it is known already. One master has its own."""
    given = parameters.master_node.cluster_ip
    if masters.count == 1:
        if given is not None:
            refusal = Refusal("one master is reached at its own address", "leave it out, or take several masters")
            problems.add(f"{PATH}.master_node.cluster_ip", refusal)
        return None
    vip = given or around.vip
    if vip and (wrong := vip_problem(vip, networks, around.node_addresses)):
        problems.add(f"{PATH}.master_node.{'cluster_ip' if given else 'cluster_cp_name'}", wrong)
    return vip


def _node_network(parameters: ClusterParameters, flavour: Flavour, around: Surroundings) -> str | None:
    """What the VIM says, else what the VNFD says about the masters' link, else what the request says."""
    point = flavour.connection_points.get(parameters.master_node.traffic_cp_name)
    link = flavour.virtual_links.get(point.virtual_link) if point and point.virtual_link else None
    known = around.node_network or (link.cidr if link else None) or parameters.proxy.k8s_node_cidr
    return str(ipaddress.ip_network(known, strict=False)) if known else None
