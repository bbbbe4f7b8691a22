"""The cluster becomes a VIM: an account of its own on it, with a token that ends, and its CA."""

from __future__ import annotations

from datetime import timedelta

from slipway.cluster.naming import API_PORT, BALANCED_API_PORT, host_and_port
from slipway.cluster.recorded import tells_version
from slipway.cluster.site import Site
from slipway.cluster.steps.arguments import Register, Unregister
from slipway.cluster.steps.machine import address_of
from slipway.cluster.steps.world import ClusterVim, World
from slipway.kube.account import ensure_account, request_token
from slipway.kube.bootstrap import cluster_ca
from slipway.model.action import StepContext
from slipway.model.machine import Outcome
from slipway.model.vim import KUBERNETES

KEY = "kubernetes"  # in the instance's vimConnectionInfo
TOKEN_LIFE = timedelta(days=365)


async def register(world: World, args: Register, ctx: StepContext) -> Outcome:
    async with world.reach.api(args.site, ctx) as api:
        await ensure_account(api)
        token = await request_token(api, TOKEN_LIFE)
        authority = await cluster_ca(api)
        running = (await api.get("/version"))["gitVersion"]
    endpoint = await _endpoint(args.site, ctx)
    vim_id = await world.vims.enter(
        args.site.instance, ClusterVim(name=args.vim_name, endpoint=endpoint, ca=authority, token=token.value)
    )
    info = {
        "vimType": KUBERNETES,
        "vimId": vim_id,
        "interfaceInfo": {"endpoint": endpoint},
        "accessInfo": None,
        "extra": {"tokenExpires": token.expires.isoformat()},
    }
    return Outcome(instance={"vimConnectionInfo": {KEY: info}, **tells_version(running)})


async def unregister(world: World, args: Unregister, ctx: StepContext) -> Outcome:
    await world.vims.strike(args.instance)
    return Outcome(instance={"vimConnectionInfo": {KEY: None}})


async def undo_register(world: World, args: Register, ctx: StepContext) -> Outcome:
    return await unregister(world, Unregister(instance=args.site.instance), ctx)


async def _endpoint(site: Site, ctx: StepContext) -> str:
    if site.vip is not None:
        return f"https://{host_and_port(site.vip, BALANCED_API_PORT)}"
    return f"https://{host_and_port(await address_of(site.masters[0], ctx), API_PORT)}"
