"""Parameters of a cluster by kubespray, against themselves and the flavour: what can't be is refused at the request."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from slipway.cluster.checks import (
    CheckedCluster,
    NetworkFacts,
    check_floating_ip,
    floating_ip_of,
    node_network_of,
    read_roles,
    refuse_master_count,
)
from slipway.cluster.networks import POD_DEFAULTS, SERVICE_DEFAULTS, chosen_networks, network_problems
from slipway.cluster.parameters import (
    PATH,
    AnsibleParameters,
    ClusterParameters,
    MasterParameters,
    NodeParameters,
)
from slipway.cluster.roles import NodeRole
from slipway.cluster.schema import Problems, Refusal
from slipway.cluster.source_parameters import SourceParameters
from slipway.model.descriptor import Flavour, Level
from slipway.model.errors import BadRequest, Unprocessable

POD_NETWORKS = ("10.233.64.0/18", *POD_DEFAULTS)  # kubespray's own, unless it overlaps what is known
SERVICE_NETWORKS = ("10.233.0.0/18", *SERVICE_DEFAULTS)
BUILT_IN_PLUGINS = ("flannel", "none")  # of `cni`, as kubespray calls them too
_PATH = re.compile(r"(?:/[A-Za-z0-9_.@+-]+)+")
_OWN = re.compile(r"(?:/\.slipway|\A/var/lib/slipway)(?:/|\Z)")  # runs: remote/jobs.py


def check_kubespray_cluster(
    parameters: ClusterParameters,
    flavour: Flavour,
    scale: dict[str, int],
    level: Level | None = None,
    facts: NetworkFacts = NetworkFacts(),  # noqa: B008 - frozen
) -> CheckedCluster:
    """BadRequest that names everything that does not fit."""
    problems = Problems()
    masters, workers, storage = read_roles(parameters, flavour, scale, level, facts, problems)
    if refusal := refuse_kubespray_masters(masters.count):
        problems.add(f"{PATH}.master_node", refusal)
    _check_cluster_address(parameters.master_node, masters, problems)
    check_floating_ip(parameters.master_node, masters, flavour, facts, problems)
    nodes = node_network_of(parameters, flavour, facts)
    most = masters.most + workers.most
    networks = chosen_networks(parameters.master_node, nodes, most, POD_NETWORKS, SERVICE_NETWORKS)
    for name, refusal in network_problems(networks, most, facts.node_addresses):
        problems.add(f"{PATH}.master_node.{name}", refusal)
    problems.raise_if_any()
    return CheckedCluster(
        masters=masters,
        workers=workers,
        networks=networks,
        floating_ip=floating_ip_of(parameters.master_node, masters, flavour, facts),
        storage=storage,
    )


def refuse_kubespray_masters(count: int) -> Refusal | None:
    """kubespray wants an odd number of etcd members, and each master has one."""
    if refusal := refuse_master_count(count):
        return refusal
    if count % 2 == 0:
        what = f"there would be {count} masters, and kubespray wants an odd number of etcd members"
        return Refusal(what, "choose a flavour or level with 1, 3 or 5 masters")
    return None


def _check_cluster_address(node: MasterParameters, masters: NodeRole, problems: Problems) -> None:
    """Nodes reach the masters through a proxy of kubespray's on each node, and others by the load balancer."""
    path = f"{PATH}.master_node"
    if node.cluster_ip is not None:
        what = "a cluster by kubespray has no virtual address"
        cure = "leave it out; external_lb_param gives the cluster one address for all masters"
        problems.add(f"{path}.cluster_ip", Refusal(what, cure))
    if node.cluster_cp_name is not None and node.cluster_cp_name != (used := node.traffic_cp_name):
        what = "a master of kubespray's is reached where the cluster's traffic is"
        problems.add(f"{path}.cluster_cp_name", Refusal(what, f"write {used}, or leave it out"))
    if node.cluster_fip_name is not None and masters.count > 1:
        what = "several masters of kubespray's share no address that a floating IP could lead to"
        problems.add(f"{path}.cluster_fip_name", Refusal(what, "leave it out, or take external_lb_param"))


def ansible_parameters(parameters: ClusterParameters) -> AnsibleParameters:
    """BadRequest when they are missing or can't be used."""
    ansible, problems = parameters.ansible, Problems()
    if ansible is None:
        raise BadRequest(
            f"{PATH}.ansible: is missing, and kubespray is run by Ansible on a server; name its ip_address, username, "
            "password or private_key, and kubespray_root_path."
        )
    if refusal := _refuse_address(ansible.ip_address):
        problems.add(f"{PATH}.ansible.ip_address", refusal)
    if ansible.kubespray_root_path is None:
        cure = "give the directory of kubespray on the Ansible server, like /opt/kubespray"
        problems.add(f"{PATH}.ansible.kubespray_root_path", Refusal("it is missing", cure))
    for name in ("kubespray_root_path", "transferring_inventory_path"):
        path = getattr(ansible, name)
        if path is not None and (not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/"))):
            refusal = Refusal("it is not an absolute path", "write it like /opt/kubespray, without . or .. or spaces")
            problems.add(f"{PATH}.ansible.{name}", refusal)
    if ansible.transferring_inventory_path and _OWN.search(ansible.transferring_inventory_path):
        refusal = Refusal("Slipway's own files are there, of all VNFs", "name a directory for this VNF alone")
        problems.add(f"{PATH}.ansible.transferring_inventory_path", refusal)
    if ansible.transferring_inventory_path and ansible.transferring_inventory_path == ansible.kubespray_root_path:
        refusal = Refusal("it is kubespray's own directory", "name a directory for this VNF alone, or leave it out")
        problems.add(f"{PATH}.ansible.transferring_inventory_path", refusal)
    problems.raise_if_any()
    return ansible


def _refuse_address(text: str) -> Refusal | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return Refusal("it is not an address", "write it like 10.10.0.5 or fd00::5")
    if "%" in text:  # behind it anything may stand
        return Refusal("it has a zone, which counts on one machine only", "write it without, like fd00::5")
    if address.is_unspecified or address.is_multicast:
        return Refusal(f"{address} is the address of no machine", "give that of the Ansible server")
    return None


def refuse_what_kubespray_lacks(parameters: ClusterParameters) -> None:
    """Unprocessable that names every parameter that a cluster by kubespray does nothing about."""
    found = [f"{PATH}.{name}: {why}." for name, why in _unused(parameters)]
    if found:
        raise Unprocessable(" ".join(found))


def _unused(parameters: ClusterParameters) -> Iterator[tuple[str, str]]:
    by_kubespray = "kubespray decides this; leave it out"
    if parameters.script_path is not None:
        yield "script_path", "kubespray makes the nodes, and no script; leave it out"
    if parameters.source != SourceParameters():
        yield "source", by_kubespray
    if parameters.cni not in BUILT_IN_PLUGINS:
        yield (
            "cni",
            f"kubespray has its own manifests; write {' or '.join(BUILT_IN_PLUGINS)}, or leave it out for calico",
        )
    if parameters.helm is not None:
        yield "helm", by_kubespray
    if parameters.helm_installation_script_path is not None:
        yield "helm_installation_script_path", by_kubespray
    roles: tuple[tuple[str, NodeParameters], ...] = (
        ("master_node", parameters.master_node),
        ("worker_node", parameters.worker_node),
    )
    for role, node in roles:
        if node.passphrase is not None:
            yield f"{role}.passphrase", "Ansible can't be asked for it; give a private_key without one, or a password"
