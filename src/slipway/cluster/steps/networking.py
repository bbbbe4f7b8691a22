"""The pods' network, built in or of the package; HAProxy and keepalived in front of the API servers of all masters."""

from __future__ import annotations

import hashlib
from typing import Any

import yaml

from slipway.cluster.flannel import flannel_manifests
from slipway.cluster.load_balancer import Backend, VirtualAddress, haproxy_config, keepalived_config
from slipway.cluster.naming import virtual_router_id
from slipway.cluster.steps.arguments import Balance, InstallNetwork
from slipway.cluster.steps.dependencies import Dependencies
from slipway.cluster.steps.machine import address_of, facts_of, install, run
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

LARGEST = 1 << 20


async def network(deps: Dependencies, args: InstallNetwork, ctx: StepContext) -> Outcome:
    if args.cni == "none":
        return Outcome()
    if args.cni == "flannel":
        manifests = flannel_manifests(args.cluster.networks.pods, args.cluster.image_repository)
    else:
        manifests = _manifests(args.cni, await deps.files.read(ctx.instance_id, args.cni))
    async with deps.connector.api(args.cluster, ctx) as api:
        for manifest in manifests:
            await api.apply(manifest)
    return Outcome()


def _manifests(path: str, text: bytes) -> list[dict[str, Any]]:
    if len(text) > LARGEST:
        raise StepError(f"{path} is larger than {LARGEST >> 20} MiB.")
    try:
        found = [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError:
        raise StepError(
            f"{path} in the package is not valid YAML.", cure="correct the manifest in the package."
        ) from None
    if not all(isinstance(one, dict) and one.get("kind") and one.get("apiVersion") for one in found):
        raise StepError(
            f"{path} has a document that is not a Kubernetes manifest.",
            cure="give apiVersion and kind in each document of the file.",
        )
    return found


async def balance(deps: Dependencies, args: Balance, ctx: StepContext) -> Outcome:
    """Writes what is new and reloads only then: connections that stand are not cut."""
    cluster, node = args.cluster, args.node
    if cluster.vip is None:
        raise StepError("A cluster without a virtual address has no balancer.")
    host = await deps.connector.host(node, ctx)
    members = [Backend(name=one.name, address=await address_of(one, ctx)) for one in cluster.masters]
    facts = await facts_of(host, await address_of(node, ctx))
    if facts.interface is None:
        raise StepError(
            f"{node.slot} has no interface with its address {await address_of(node, ctx)}.",
            cure="name the connection point of the cluster's traffic in nic_cp_name.",
        )
    virtual = VirtualAddress(address=cluster.vip, prefix=facts.prefix, router_id=virtual_router_id(cluster.instance))
    files = {
        "/etc/haproxy/haproxy.cfg": haproxy_config(members),
        "/etc/keepalived/keepalived.conf": keepalived_config(
            virtual, members, node.name, facts.interface, _password(cluster.instance)
        ),
    }
    await run(host, "balance", *await install(host, files, mode=0o600))
    return Outcome()


def _password(instance_id: str) -> str:
    """Keeps clusters on one network apart by mistake, not by force: VRRP sends it in clear."""
    return hashlib.sha256(f"vrrp {instance_id}".encode()).hexdigest()[:8]
