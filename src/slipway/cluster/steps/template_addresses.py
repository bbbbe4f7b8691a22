"""Addresses that only the VIM's template has, known once the VIM has made them.

The masters may share that of a port, and a floating IP may lead to that port, or to the only master.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable

from msgspec.structs import replace

from slipway.cluster.networks import vip_problem
from slipway.cluster.parameters import PATH
from slipway.cluster.spec import ClusterSpec, Node
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import FoundPort

PARAMETER = f"{PATH}.master_node.cluster_cp_name"
CLUSTER_IP = f"{PATH}.master_node.cluster_ip"
FLOATING_IP = f"{PATH}.master_node.cluster_fip_name"


async def with_template_addresses(cluster: ClusterSpec, ctx: StepContext) -> ClusterSpec:
    """What could not be checked with the request is checked here, in the first step that has to know it."""
    if cluster.vip_port is not None:
        port = await _shared_port(cluster.vip_port, cluster, ctx)
        return replace(cluster, vip=port.address, outside=_outside(cluster.floating_ip, [port]))
    if cluster.floating_ip is None or not cluster.masters:
        return cluster
    try:
        master = await ctx.machine(cluster.masters[0].machine)
    except StepError:  # it is made later in the same operation
        return cluster
    return replace(cluster, outside=_outside(cluster.floating_ip, master.ports))


async def refuse_shared_address(node: Node, shared: str | None, ctx: StepContext) -> None:
    """StepError when the VIM gave a machine the masters' address: contacted there, it would be now one, now another."""
    if shared is None:
        return
    wanted, machine = ipaddress.ip_address(shared), await ctx.machine(node.machine)
    for port in machine.ports:
        if any(one.ip and ipaddress.ip_address(one.ip) == wanted for one in port.addresses):
            raise StepError(
                f"{CLUSTER_IP}: the VIM gave {node.slot} the address {shared} at {port.name}, and the masters are to "
                "share it.",
                cure="roll back, and give an address that the VIM gives no machine: outside its network's allocation "
                "pool, or one of a port that is kept for it.",
            )


async def _shared_port(name: str, cluster: ClusterSpec, ctx: StepContext) -> FoundPort:
    try:
        port = await ctx.port(name)
    except StepError as error:
        raise StepError(
            f"{PARAMETER}: {error.detail}",
            cure="name a port of the template itself, not of a nested one, that no machine has; or give cluster_ip.",
        ) from None
    if port.address is None:
        raise StepError(f"{PARAMETER}: the port {port.name!r} has no address.", cure="give it one in the template.")
    await _check(port, port.address, cluster, ctx)
    return port


def _outside(floating_ip: str | None, ports: Iterable[FoundPort]) -> str | None:
    if floating_ip is None:
        return None
    known = {name: ip for port in ports for name, ip in port.floating.items()}
    if floating_ip not in known:
        names = ", ".join(port.name for port in ports)
        raise StepError(
            f"{FLOATING_IP}: no floating IP {floating_ip!r} leads to {names}; those that do: "
            f"{', '.join(known) or 'none'}.",
            cure="give the template an OS::Neutron::FloatingIP of that name with this port as its port_id.",
        )
    return known[floating_ip]


async def _check(port: FoundPort, address: str, cluster: ClusterSpec, ctx: StepContext) -> None:
    if cluster.vip and ipaddress.ip_address(cluster.vip) != ipaddress.ip_address(address):
        raise StepError(
            f"{PARAMETER}: the port {port.name!r} has the address {address}, and cluster_ip is {cluster.vip}.",
            cure="leave cluster_ip out, or give the port that address in the template.",
        )
    ports = [(node, found) for node in cluster.masters if (found := await _port_of(node, ctx))]
    if wrong := vip_problem(address, cluster.networks, [one.address for _, one in ports if one.address]):
        raise StepError(f"{PARAMETER}: {wrong.what}.", cure=f"for the port {port.name!r}, {wrong.cure}.")
    for node, its in ports:
        if port.network and its.network and port.network != its.network:
            raise StepError(
                f"{PARAMETER}: the port {port.name!r} is on the network {port.network}, {node.slot} on {its.network}.",
                cure=f"put it on the network of {node.nic} in the template.",
            )


async def _port_of(node: Node, ctx: StepContext) -> FoundPort | None:
    """Of the cluster's traffic. None of a master that is made later in the same operation."""
    with contextlib.suppress(StepError):
        return next((port for port in (await ctx.machine(node.machine)).ports if port.name == node.nic), None)
    return None
