"""HAProxy and keepalived on a master: the way to all API servers, at an address that one of the masters holds."""

from __future__ import annotations

import hashlib

from slipway.cluster.load_balancer import Member, VirtualAddress, haproxy_config, keepalived_config
from slipway.cluster.naming import virtual_router_id
from slipway.cluster.steps.arguments import Balance
from slipway.cluster.steps.facts import facts_of
from slipway.cluster.steps.machine import address_of, install, run
from slipway.cluster.steps.world import World
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome


async def balance(world: World, args: Balance, ctx: StepContext) -> Outcome:
    """Writes what is new and reloads only then: connections that stand are not cut."""
    site, node = args.site, args.node
    if site.vip is None:
        raise StepError("A cluster without a virtual address has no balancer.")
    hands = await world.reach.hands(node, ctx)
    members = [Member(name=one.name, address=await address_of(one, ctx)) for one in site.masters]
    facts = await facts_of(hands, await address_of(node, ctx))
    if facts.interface is None:
        raise StepError(
            f"{node.slot} has no interface with its address {await address_of(node, ctx)}.",
            cure="name the connection point of the cluster's traffic in nic_cp_name.",
        )
    virtual = VirtualAddress(address=site.vip, prefix=facts.prefix, router_id=virtual_router_id(site.instance))
    files = {
        "/etc/haproxy/haproxy.cfg": haproxy_config(members),
        "/etc/keepalived/keepalived.conf": keepalived_config(
            virtual, members, node.name, facts.interface, _password(site.instance)
        ),
    }
    await run(hands, "balance", *await install(hands, files, mode=0o600))
    return Outcome()


def _password(instance_id: str) -> str:
    """Keeps clusters on one network apart by mistake, not by force: VRRP sends it in clear."""
    return hashlib.sha256(f"vrrp {instance_id}".encode()).hexdigest()[:8]
