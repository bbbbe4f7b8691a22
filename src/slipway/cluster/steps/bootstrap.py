"""The first master begins the cluster, others enter it. Each gets its own ticket, which is void once it is in."""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta

from slipway.cluster.kubeadm_config import (
    ClusterShape,
    JoinTicket,
    NodeShape,
    as_yaml,
    init_documents,
    join_documents,
    upload_documents,
)
from slipway.cluster.site import Node, Site
from slipway.cluster.steps import etcd
from slipway.cluster.steps.arguments import Init, Join
from slipway.cluster.steps.facts import facts_of, kubernetes_version
from slipway.cluster.steps.machine import address_of, if_passing, run, run_named
from slipway.cluster.steps.world import Hands, World
from slipway.cluster.values import Secret
from slipway.cluster.versions import Version
from slipway.kube import paths
from slipway.kube.bootstrap import ca_hash, cluster_ca, make_token, new_token, remove_token
from slipway.kube.drain import Policy, drain
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

log = logging.getLogger(__name__)

CONFIG = "/etc/kubernetes/slipway.yaml"
INIT_SECONDS = 900.0
JOIN_SECONDS = 900.0
UNJOIN_SECONDS = 120.0
TICKET_LIFE = timedelta(hours=2)


async def init(world: World, args: Init, ctx: StepContext) -> Outcome:
    """A second call finds the job of the first, running or done."""
    hands = await world.reach.hands(args.node, ctx)
    shape = await cluster_shape(hands, args.node, args.site, ctx)
    ticket = JoinTicket(token=Secret(new_token()), ca_cert_hashes=())
    documents = init_documents(shape, await _node_shape(args.node, ctx), ticket)
    await hands.put(CONFIG, as_yaml(documents), sudo=True)
    await run_named(hands, "init", CONFIG, limit=INIT_SECONDS)
    return Outcome()


async def join(world: World, args: Join, ctx: StepContext) -> Outcome:
    hands = await world.reach.hands(args.node, ctx)
    async with world.reach.api(args.site, ctx) as api:
        shape = await cluster_shape(hands, args.node, args.site, ctx)
        token = await make_token(api, TICKET_LIFE)
        try:
            ticket = JoinTicket(
                token=Secret(token),
                ca_cert_hashes=(ca_hash(await cluster_ca(api)),),
                certificate_key=await uploaded(world, args.site, shape, ctx) if args.node.master else None,
            )
            shaped = await _node_shape(args.node, ctx)
            documents = join_documents(shape, shaped, ticket, control_plane=args.node.master)
            await hands.put(CONFIG, as_yaml(documents), sudo=True)
            await run_named(hands, "join", CONFIG, limit=JOIN_SECONDS)
        except StepError as error:
            if args.node.master and not error.temporary:
                # A member that never came up counts against the quorum, and the next try would be a second one.
                await etcd.remove_member(world, args.node, args.site, ctx)
            raise if_passing(error) from None
        finally:
            await remove_token(api, token)
    return Outcome()


async def unjoin(world: World, args: Join, ctx: StepContext) -> Outcome:
    """Out of a cluster that stays: pods first, then etcd, then the Node object. The machine goes in the next step."""
    if not args.kept:
        return Outcome()
    async with world.reach.api(args.site, ctx) as api:
        dead = not await world.liveness.answers(args.node, args.site, ctx)
        await drain(api, args.node.name, Policy(timeout=UNJOIN_SECONDS, force=True), log.info, dead=dead)
        if args.node.master:
            await etcd.remove_member(world, args.node, args.site, ctx)
        await api.delete(paths.node(args.node.name))
    return Outcome()


async def cluster_shape(hands: Hands, node: Node, site: Site, ctx: StepContext) -> ClusterShape:
    first = await address_of(site.masters[0], ctx)
    chosen: Version = kubernetes_version(await facts_of(hands, await address_of(node, ctx)), site, node)
    return ClusterShape(
        name=site.name,
        version=chosen,
        address=site.vip or first,
        balanced=site.vip is not None,
        networks=site.networks,
        image_repository=site.image_repository,
        further_names=tuple(dict.fromkeys([await address_of(one, ctx, one.ssh) for one in site.masters])),
    )


async def _node_shape(node: Node, ctx: StepContext) -> NodeShape:
    return NodeShape(name=node.name, address=await address_of(node, ctx), taints=node.taints)


async def uploaded(world: World, site: Site, shape: ClusterShape, ctx: StepContext) -> Secret:
    """The masters' shared certificates, put into the cluster under a new key."""
    key = Secret(secrets.token_hex(32))
    master = await etcd.living_master(world, site, ctx)
    path = "/etc/kubernetes/slipway-certificates.yaml"
    await master.put(path, as_yaml(upload_documents(shape, key)), sudo=True)
    await run(master, "upload_certificates", path)
    return key
