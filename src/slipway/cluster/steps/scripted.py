"""Nodes made by the package's own script: it begins or joins the cluster, and we see that it did."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from slipway.cluster.registry_parameters import HTTP
from slipway.cluster.steps import bootstrap, etcd
from slipway.cluster.steps.arguments import Name, Script
from slipway.cluster.steps.machine import address_of, run
from slipway.cluster.steps.own_script import run_own_script
from slipway.cluster.steps.prepare import introduced
from slipway.cluster.steps.proxy import proxy_variables
from slipway.cluster.steps.registries import registries_of
from slipway.cluster.steps.world import Hands, World
from slipway.kube.bootstrap import ca_hash, cluster_ca, make_token, remove_token
from slipway.kube.seam import KubeApi
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome

SECONDS = 2700.0
SEEN_SECONDS = 60.0
ADMIN = "/etc/kubernetes/admin.conf"
JOB = "node-script"


async def name(world: World, args: Name, ctx: StepContext) -> Outcome:
    """The node is called as its machine is, so the machine is called as we call the node."""
    await run(await world.reach.hands(args.node, ctx), "host_name", args.node.name)
    return await introduced(world, args.node, ctx)


async def script(world: World, args: Script, ctx: StepContext) -> Outcome:
    hands = await world.reach.hands(args.node, ctx)
    try:
        if args.first:
            await _run(world, hands, args, [], ctx)
            await _see_cluster(hands, args)
            async with world.reach.api(args.site, ctx) as api:
                await _see_node(api, args)
        else:
            await _join(world, hands, args, ctx)
    except _NotDone as error:
        await hands.forget(JOB, sudo=True)  # it ended well, as far as it knows: a retry must run it again
        raise StepError(error.detail, cure=error.cure) from None
    return Outcome()


async def _join(world: World, hands: Hands, args: Script, ctx: StepContext) -> None:
    async with world.reach.api(args.site, ctx) as api:
        token = await make_token(api, bootstrap.TICKET_LIFE)
        try:
            ticket = ["-t", token, "-s", ca_hash(await cluster_ca(api)).removeprefix("sha256:")]
            if args.node.master:
                ticket += ["-k", await _certificate_key(world, args, ctx)]
            await _run(world, hands, args, ticket, ctx)
            await _see_node(api, args)
        except (StepError, _NotDone) as error:
            if args.node.master and not (isinstance(error, StepError) and error.temporary):
                await etcd.remove_member(world, args.node, args.site, ctx)  # as in bootstrap.join
            raise
        finally:
            await remove_token(api, token)


async def _certificate_key(world: World, args: Script, ctx: StepContext) -> str:
    """By a master that stands, at whatever version the script gave it."""
    master, site = args.site.masters[0], replace(args.site, version=None)
    shape = await bootstrap.cluster_shape(await world.reach.hands(master, ctx), master, site, ctx)
    return (await bootstrap.uploaded(world, site, shape, ctx)).opened(str)


async def _run(world: World, hands: Hands, args: Script, ticket: list[str], ctx: StepContext) -> None:
    site, node = args.site, args.node
    control = site.masters if node in site.masters else (*site.masters, node)
    masters = [await address_of(one, ctx) for one in control]
    who = ["-m", ",".join(masters)] if node.master else ["-w", await address_of(node, ctx)]
    options = [*who, "-i", site.vip or masters[0], "-p", site.networks.pods, "-a", site.networks.services, *ticket]
    proxy = {key.lower(): value for key, value in (await proxy_variables(args.setup, site, ctx)).items()}
    insecure = [one.server for one in registries_of(args.setup) if one.connection_type == HTTP]
    variables = {**proxy, "ha_flag": str(site.vip is not None), "HTTP_PRIVATE_REGISTRIES": ",".join(insecure)}
    await run_own_script(world, hands, args.path, options, variables, ctx, job=JOB, limit=SECONDS)


class _NotDone(Exception):
    """The script said that all is well, and it is not."""

    def __init__(self, detail: str, cure: str) -> None:
        super().__init__(detail)
        self.detail, self.cure = detail, cure


async def _see_cluster(hands: Hands, args: Script) -> None:
    if await hands.get(ADMIN, sudo=True) is None:
        raise _NotDone(
            f"{args.path} ended well on {args.node.slot}, but began no cluster: there is no {ADMIN}.",
            "let the script end with another code than 0 when it fails, and see what it does on the first master.",
        )


async def _see_node(api: KubeApi, args: Script) -> None:
    end = asyncio.get_running_loop().time() + SEEN_SECONDS
    while True:
        names = [node["metadata"]["name"] for node in await api.list("/api/v1/nodes")]
        if args.node.name in names:
            return
        if asyncio.get_running_loop().time() > end:
            raise _NotDone(
                f"{args.path} ended well on {args.node.slot}, but no node {args.node.name} is in the cluster; "
                f"there are: {', '.join(names) or 'none'}.",
                "let the script join the machine under its host name, and end with another code than 0 when it fails.",
            )
        await asyncio.sleep(1)
