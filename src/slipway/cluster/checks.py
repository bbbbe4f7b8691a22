"""Whether a cluster can be built as asked: parameters against the flavour, the known networks and the package's files.

Everything that can be known before anything is made is refused here, all of it in one answer.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator

import msgspec

from slipway.cluster.networks import ClusterNetworks, chosen_networks, network_problems, vip_problem
from slipway.cluster.parameters import (
    BUILT_IN_CNIS,
    BY_KUBESPRAY,
    DEFAULT_CNI,
    PATH,
    ClusterParameters,
    MasterParameters,
    NodeParameters,
)
from slipway.cluster.roles import NodeRole, NoRole, role_of, unknown
from slipway.cluster.schema import Problems, Refusal
from slipway.cluster.source_parameters import SourceParameters
from slipway.cluster.storage_checks import check_storage
from slipway.model.descriptor import Flavour, Level
from slipway.model.errors import Unprocessable

OF_KUBESPRAY = "only clusters by the management driver kubespray have it; leave it out, or name that driver in the VNFD"
BY_SCRIPT = "with script_path the package's script decides this, and is not told; leave it out"


class NetworkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the VIM knows of the networks, beside the request. What is not known is not checked.

    `has_template`: the package has one for the flavour, whose ports are not known before the VIM has made them.
    `managed_links`: internal links whose networks exist, so that the VNFD does not tell their addresses.
    """

    node_network: str | None = None
    node_addresses: tuple[str, ...] = ()
    has_template: bool = False
    managed_links: frozenset[str] = frozenset()


class CheckedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """What the checks found out, for the planners: roles, networks, the virtual address or the port that has it."""

    masters: NodeRole
    workers: NodeRole
    networks: ClusterNetworks
    vip: str | None = None
    vip_port: str | None = None
    floating_ip: str | None = None  # by its name in the VIM's template
    storage: str | None = None  # the VDU of the storage server

    @property
    def balanced(self) -> bool:
        """Several masters behind a virtual address."""
        return self.masters.count > 1


def check_cluster(
    parameters: ClusterParameters,
    flavour: Flavour,
    scale: dict[str, int],
    level: Level | None = None,
    facts: NetworkFacts = NetworkFacts(),  # noqa: B008 - frozen
) -> CheckedCluster:
    """BadRequest that names everything that does not fit."""
    problems = Problems()
    masters, workers, storage = read_roles(parameters, flavour, scale, level, facts, problems)
    _check_masters(parameters, masters, flavour, facts, problems)
    nodes = node_network_of(parameters, flavour, facts)
    networks = chosen_networks(parameters.master_node, nodes, masters.most + workers.most)
    for name, refusal in network_problems(networks, masters.most + workers.most, facts.node_addresses):
        problems.add(f"{PATH}.master_node.{name}", refusal)
    vip = _checked_vip(parameters, masters, networks, facts, problems)
    problems.raise_if_any()
    point = parameters.master_node.cluster_cp_name
    return CheckedCluster(
        masters=masters,
        workers=workers,
        networks=networks,
        vip=vip,
        vip_port=point if point and _is_in_template(point, flavour, facts) else None,
        floating_ip=floating_ip_of(parameters.master_node, masters, flavour, facts),
        storage=storage,
    )


def read_roles(
    parameters: ClusterParameters,
    flavour: Flavour,
    scale: dict[str, int],
    level: Level | None,
    facts: NetworkFacts,
    problems: Problems,
) -> tuple[NodeRole, NodeRole, str | None]:
    """Masters, workers, and the VDU of the storage server. BadRequest when one of them can't be told."""
    masters = _read_role(parameters.master_node, "master_node", flavour, scale, level, problems)
    workers = _read_role(parameters.worker_node, "worker_node", flavour, scale, level, problems)
    _check_connection_points(parameters.master_node, "master_node", masters, flavour, facts, problems)
    _check_connection_points(parameters.worker_node, "worker_node", workers, flavour, facts, problems)
    nodes_vdus = tuple(role.vdu for role in (masters, workers) if role)
    storage = check_storage(parameters, flavour, flavour.counts(scale, level or Level(name="")), nodes_vdus,
                            has_template=facts.has_template, problems=problems)  # fmt: skip
    problems.raise_if_any()
    assert masters is not None  # noqa: S101 - otherwise there was a problem
    assert workers is not None  # noqa: S101
    if masters.vdu == workers.vdu:
        what = f"masters and workers are both machines of {masters.vdu!a}"
        problems.add(f"{PATH}.worker_node", Refusal(what, "name different VDUs or aspects"))
    return masters, workers, storage


def refuse_master_count(count: int) -> Refusal | None:
    """1 or at least 3: of two etcd members both are needed, so two masters fail more often than one."""
    if count == 2:
        what = "there would be 2 masters, and etcd has no quorum of 2 once one is lost"
        return Refusal(what, "choose a flavour or level with 1 master or with 3 or more")
    if count < 1:
        return Refusal("there would be no master", "choose a flavour or level with 1 master or with 3 or more")
    return None


def _read_role(
    node: NodeParameters, name: str, flavour: Flavour, scale: dict[str, int], level: Level | None, problems: Problems
) -> NodeRole | None:
    try:
        role = role_of(node, flavour, scale, level)
    except NoRole as error:
        problems.add(f"{PATH}.{name}.{error.parameter}", error.refusal)
        return None
    if node.vdu_id and node.aspect_id:
        aspect = flavour.aspects.get(node.aspect_id)
        if aspect is not None and role.vdu not in aspect.deltas:
            what = f"the aspect {node.aspect_id!a} does not scale {role.vdu!a}"
            problems.add(f"{PATH}.{name}.aspect_id", Refusal(what, "name an aspect that scales it, or leave it out"))
    return role


def _check_connection_points(
    node: NodeParameters, name: str, role: NodeRole | None, flavour: Flavour, facts: NetworkFacts, problems: Problems
) -> None:
    for parameter, point in (("ssh_cp_name", node.ssh_cp_name), ("nic_cp_name", node.nic_cp_name)):
        if role is None or point is None:
            continue
        if parameter == "ssh_cp_name" and node.nic_cp_name and _is_in_template(point, flavour, facts):
            continue  # a floating IP
        if parameter == "ssh_cp_name" and _is_in_template(point, flavour, facts):
            own = [one.name for one in flavour.connection_points.values() if one.vdu == role.vdu]
            what = f"{point!a} is no connection point; a floating IP of the template goes with nic_cp_name"
            problems.add(f"{PATH}.{name}.{parameter}", Refusal(what, f"let nic_cp_name be one of: {', '.join(own)}"))
        elif refusal := _refuse_connection_point(point, role.vdu, flavour):
            problems.add(f"{PATH}.{name}.{parameter}", refusal)


def _refuse_connection_point(name: str, vdu: str, flavour: Flavour) -> Refusal | None:
    own = [point.name for point in flavour.connection_points.values() if point.vdu == vdu]
    if name in own:
        return None
    if name not in flavour.connection_points:
        return unknown("connection point", name, own)
    what = f"the connection point {name!a} belongs to {flavour.connection_points[name].vdu!a}, not to {vdu!a}"
    return Refusal(what, f"write one of: {', '.join(own) or '(there is none)'}")


def _check_masters(
    parameters: ClusterParameters, masters: NodeRole, flavour: Flavour, facts: NetworkFacts, problems: Problems
) -> None:
    path = f"{PATH}.master_node"
    if refusal := refuse_master_count(masters.count):
        problems.add(path, refusal)
    point = parameters.master_node.cluster_cp_name
    check_floating_ip(parameters.master_node, masters, flavour, facts, problems)
    if point is not None and _is_in_template(point, flavour, facts):
        if masters.count == 1:
            cure = f"write {parameters.master_node.traffic_cp_name}, leave it out, or take several masters"
            refusal = Refusal("one master is reached at its own address", cure)
            problems.add(f"{path}.cluster_cp_name", refusal)
    elif point is not None:
        if refusal := _refuse_connection_point(point, masters.vdu, flavour):
            problems.add(f"{path}.cluster_cp_name", refusal)
        elif masters.count > 1 and parameters.master_node.cluster_ip is None:
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


def check_floating_ip(
    node: MasterParameters, masters: NodeRole, flavour: Flavour, facts: NetworkFacts, problems: Problems
) -> None:
    if node.cluster_fip_name is None:
        return
    path, port = f"{PATH}.master_node.cluster_fip_name", node.cluster_cp_name
    if not facts.has_template:
        what = f"the package has no template for flavour {flavour.id!a} that would have a floating IP"
        problems.add(path, Refusal(what, "leave it out, or bring a template in BaseHOT"))
    elif masters.count > 1 and not (port and _is_in_template(port, flavour, facts)):
        what = "it leads to a port of the template whose address the masters share, and cluster_cp_name names none"
        problems.add(path, Refusal(what, "name that port by cluster_cp_name"))


def floating_ip_of(node: MasterParameters, masters: NodeRole, flavour: Flavour, facts: NetworkFacts) -> str | None:
    """What is named; of one master that SSH reaches by a floating IP, that one."""
    alone = masters.count == 1 and _is_in_template(node.ssh_cp_name, flavour, facts)
    return node.cluster_fip_name or (node.ssh_cp_name if alone else None)


def _is_in_template(name: str, flavour: Flavour, facts: NetworkFacts) -> bool:
    """As a port or a floating IP that the VNFD does not know; what it is will be seen when the VIM has made it."""
    return facts.has_template and name not in flavour.connection_points


def _checked_vip(
    parameters: ClusterParameters,
    masters: NodeRole,
    networks: ClusterNetworks,
    facts: NetworkFacts,
    problems: Problems,
) -> str | None:
    """The address that several masters share, when it is known already. One master has its own."""
    given = parameters.master_node.cluster_ip
    if masters.count == 1:
        if given is not None:
            refusal = Refusal("one master is reached at its own address", "leave it out, or take several masters")
            problems.add(f"{PATH}.master_node.cluster_ip", refusal)
        return None
    if given and (wrong := vip_problem(given, networks, facts.node_addresses)):
        problems.add(f"{PATH}.master_node.cluster_ip", wrong)
    return given


def node_network_of(parameters: ClusterParameters, flavour: Flavour, facts: NetworkFacts) -> str | None:
    """What the VIM says, else what the VNFD says about the masters' link, else what the request says."""
    point = flavour.connection_points.get(parameters.master_node.traffic_cp_name)
    name = point.virtual_link if point else None
    link = flavour.virtual_links.get(name) if name and name not in facts.managed_links else None
    known = facts.node_network or (link.cidr if link else None) or parameters.proxy.k8s_node_cidr
    return str(ipaddress.ip_network(known, strict=False)) if known else None


def refuse_unsupported_parameters(parameters: ClusterParameters) -> None:
    """Unprocessable that names all of them."""
    found = [f"{PATH}.{name}: {why}." for name, why in (*_of_kubespray(parameters), *_by_script(parameters))]
    if found:
        raise Unprocessable(" ".join(found))


def _of_kubespray(parameters: ClusterParameters) -> Iterator[tuple[str, str]]:
    yield from ((name, OF_KUBESPRAY) for name in BY_KUBESPRAY if getattr(parameters, name))


def _by_script(parameters: ClusterParameters) -> Iterator[tuple[str, str]]:
    if parameters.script_path is None:
        return
    given = {
        "kubernetes_version": parameters.kubernetes_version is not None,
        "cni": parameters.cni != DEFAULT_CNI,
        "image_repository": parameters.image_repository is not None,
        "source": parameters.source != SourceParameters(),
        "master_node.taints": parameters.master_node.taints is not None,
        "worker_node.taints": parameters.worker_node.taints is not None,
    }
    yield from ((name, BY_SCRIPT) for name, is_given in given.items() if is_given)


def named_files(parameters: ClusterParameters) -> Iterator[tuple[str, str]]:
    """(parameter, file). What only the kubespray way uses is not among them."""
    possible = [
        ("script_path", parameters.script_path),
        ("cni", parameters.cni if parameters.cni not in BUILT_IN_CNIS else None),
        ("helm_installation_script_path", parameters.helm_installation_script_path),
        ("helm.path", parameters.helm.path if parameters.helm else None),
        ("source.signing_key_path", parameters.source.signing_key_path),
    ]
    possible += [(f"source.files[{at}].path", one.path) for at, one in enumerate(parameters.source.files)]
    possible += [
        (f"private_registry_connection_info[{at}].certificate_path", one.certificate_path)
        for at, one in enumerate(parameters.private_registry_connection_info)
    ]
    possible += [
        (f"pv_registration_params[{at}].pv_manifest_file_path", one.pv_manifest_file_path)
        for at, one in enumerate(parameters.pv_registration_params)
    ]
    yield from ((parameter, file) for parameter, file in possible if file is not None)


def check_files(parameters: ClusterParameters, files: Collection[str]) -> None:
    """BadRequest that names every file that the package does not have."""
    problems = Problems()
    for parameter, file in named_files(parameters):
        if file not in files:
            refusal = Refusal(f"the package has no file {file}", "name one that it has, or add it to the package")
            problems.add(f"{PATH}.{parameter}", refusal)
    problems.raise_if_any()
