"""The three networks of a cluster - nodes, pods, Services - and the rules between them.

Networks that overlap build a cluster in which some addresses can't be reached, and nothing says why. So they are
refused, and those that a request leaves open are chosen around what is known.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Iterator

import msgspec

from slipway.cluster.parameters import MasterParameters
from slipway.cluster.schema import Refusal
from slipway.cluster.values import InstallNetwork

POD_DEFAULTS = ("192.168.0.0/16", "10.244.0.0/16", "172.20.0.0/16", "fd00:10:244::/56", "fd00:20:244::/56")
SERVICE_DEFAULTS = ("10.96.0.0/12", "172.28.0.0/14", "10.240.0.0/14", "fd00:10:96::/112", "fd00:20:96::/112")

# By IP version. What kubeadm and the API server accept for Services, and how pods' networks are shared out to nodes.
SERVICE_PREFIXES = {4: (12, 28), 6: (108, 124)}
USUAL_NODE_PREFIX = {4: 24, 6: 64}
LONGEST_NODE_PREFIX = {4: 28, 6: 124}
LARGEST_SHARE = 16  # bits between the pods' network and a node's part of it
MOST_PODS = 110


class ClusterNetworks(msgspec.Struct, frozen=True, kw_only=True):
    """`node_prefix` is the size of each node's part of the pods' network."""

    pods: str
    services: str
    nodes: str | None = None
    node_prefix: int
    max_pods: int = MOST_PODS


def chosen_networks(
    masters: MasterParameters,
    nodes: str | None,
    node_count: int,
    pod_defaults: tuple[str, ...] = POD_DEFAULTS,
    service_defaults: tuple[str, ...] = SERVICE_DEFAULTS,
) -> ClusterNetworks:
    """What the request says; otherwise the first default of the nodes' IP version that overlaps nothing known."""
    given = [ipaddress.ip_network(one) for one in (masters.pod_cidr, masters.cluster_cidr, nodes) if one]
    ip_version = given[-1].version if given else 4
    services = masters.cluster_cidr or _free(service_defaults, given, ip_version)
    pods = masters.pod_cidr or _free(pod_defaults, [*given, ipaddress.ip_network(services)], ip_version)
    prefix = node_prefix(ipaddress.ip_network(pods), node_count)
    return ClusterNetworks(
        pods=pods, services=services, nodes=nodes, node_prefix=prefix, max_pods=_pods_in(prefix, ip_version)
    )


def node_prefix(pods: InstallNetwork, node_count: int) -> int:
    """Small enough that every node gets a part, the usual size where that is possible."""
    bits = math.ceil(math.log2(max(node_count, 1)))
    usual = USUAL_NODE_PREFIX[pods.version]
    prefix = usual if pods.prefixlen + bits <= usual else pods.prefixlen + bits
    return min(prefix, pods.prefixlen + LARGEST_SHARE)


def network_problems(
    networks: ClusterNetworks, node_count: int, node_addresses: Iterable[str] = ()
) -> Iterator[tuple[str, Refusal]]:
    """(parameter of master_node, what is wrong with it)"""
    pods, services = ipaddress.ip_network(networks.pods), ipaddress.ip_network(networks.services)
    nodes = ipaddress.ip_network(networks.nodes) if networks.nodes else None
    if services.version != pods.version:
        yield "cluster_cidr", Refusal("pods and Services have different IP versions", "give both the same version")
    if nodes and nodes.version != pods.version:
        yield "pod_cidr", Refusal(f"the nodes' network {nodes} has another IP version", "give pods the nodes' version")
    if _overlap(pods, services):
        cure = "choose two networks that share no address"
        yield "cluster_cidr", Refusal(f"the Services' network {services} overlaps the pods' {pods}", cure)
    for name, what, one in (("pod_cidr", "pods'", pods), ("cluster_cidr", "Services'", services)):
        if nodes and _overlap(one, nodes):
            cure = "choose another one that shares no address with the nodes"
            yield name, Refusal(f"the {what} network {one} overlaps the nodes' {nodes}", cure)
        elif taken := next((node for node in node_addresses if ipaddress.ip_address(node) in one), None):
            yield name, Refusal(f"the {what} network {one} holds {taken}, a node's address", "choose another one")
    shortest, longest = SERVICE_PREFIXES[services.version]
    if not shortest <= services.prefixlen <= longest:
        cure = f"give it a size from /{shortest} to /{longest}"
        yield "cluster_cidr", Refusal(f"Kubernetes can't use a Services' network of size /{services.prefixlen}", cure)
    if (
        networks.node_prefix > LONGEST_NODE_PREFIX[pods.version]
        or 2 ** (networks.node_prefix - pods.prefixlen) < node_count
    ):
        cure = f"choose a larger one, like {POD_DEFAULTS[0] if pods.version == 4 else POD_DEFAULTS[3]}"
        yield "pod_cidr", Refusal(f"the pods' network {pods} is too small for {node_count} nodes", cure)


def vip_problem(vip: str, networks: ClusterNetworks, node_addresses: Iterable[str]) -> Refusal | None:
    """The virtual address must be in the nodes' network, and no node's own."""
    address = ipaddress.ip_address(vip)
    for what, one in (("pods'", networks.pods), ("Services'", networks.services)):
        if address in ipaddress.ip_network(one):
            return Refusal(f"{address} is in the {what} network {one}", "choose one of the nodes' network")
    if networks.nodes:
        network = ipaddress.ip_network(networks.nodes)
        if address not in network:
            return Refusal(
                f"the cluster's address {address} is outside the nodes' network {network}", "choose one in it"
            )
        if network.num_addresses > 2 and address in (network.network_address, network.broadcast_address):
            return Refusal(f"{address} is no address for a machine in {network}", "choose another one in it")
    if any(ipaddress.ip_address(one) == address for one in node_addresses):
        return Refusal(f"the cluster's address {address} is a node's own", "choose one that no machine has")
    return None


def no_proxy(networks: ClusterNetworks, endpoint: str, asked: str | None) -> tuple[str, ...]:
    """What is reached without a proxy: what the request says, and everything inside the cluster, as networks."""
    said = [one.strip() for one in (asked or "").split(",")]
    own = ["127.0.0.1", "::1", "localhost", endpoint, networks.pods, networks.services, networks.nodes or ""]
    return tuple(dict.fromkeys(one for one in (*said, *own, ".svc", ".cluster.local") if one))


def _free(defaults: Iterable[str], taken: Iterable[InstallNetwork], ip_version: int) -> str:
    possible = [one for one in defaults if ipaddress.ip_network(one).version == ip_version]
    busy = list(taken)
    free = (one for one in possible if not any(_overlap(ipaddress.ip_network(one), other) for other in busy))
    return next(free, possible[0])


def _overlap(one: InstallNetwork, other: InstallNetwork) -> bool:
    return one.version == other.version and one.overlaps(other)


def _pods_in(prefix: int, ip_version: int) -> int:
    """Addresses of a node's part, without its network, gateway and broadcast address; not more than usual."""
    bits = max((32 if ip_version == 4 else 128) - prefix, 0)
    return max(1, min(MOST_PODS, (1 << bits) - 3))
