"""The cluster becomes a VIM: an account of its own on it, with a token that ends, and its CA."""

from __future__ import annotations

import asyncio
import contextlib

from slipway.cluster.naming import API_PORT, BALANCED_API_PORT, host_and_port
from slipway.cluster.recorded import tells_version
from slipway.cluster.site import Site
from slipway.cluster.steps.arguments import Register, Unregister
from slipway.cluster.steps.machine import address_of
from slipway.cluster.steps.world import ClusterVim, World
from slipway.kube.account import REGISTERED, granted_token, remove_account
from slipway.kube.bootstrap import cluster_ca
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.model.vim import KUBERNETES

KEY = "kubernetes"  # in the instance's vimConnectionInfo
REMOVE_ACCOUNT_TIMEOUT = 15.0  # seconds for a cluster that may be dead


async def register(world: World, args: Register, ctx: StepContext) -> Outcome:
    async with world.reach.api(args.site, ctx) as api:
        token = await granted_token(api, REGISTERED)
        authority = await cluster_ca(api)
        running = (await api.get("/version"))["gitVersion"]
    endpoint = await _endpoint(args.site, ctx)
    vim = ClusterVim(name=args.vim_name, endpoint=endpoint, ca=authority, token=token)
    vim_id = await world.vims.enter(args.site.instance, vim)
    info = {
        "vimType": KUBERNETES,
        "vimId": vim_id,
        "interfaceInfo": {"endpoint": endpoint},
        "accessInfo": None,
    }
    return Outcome(instance={"vimConnectionInfo": {KEY: info}, **tells_version(running)})


async def unregister(world: World, args: Unregister, ctx: StepContext) -> Outcome:
    """With the account go all tokens that were ever granted. A cluster that does not answer is no reason to stay."""
    await world.vims.strike(args.instance)
    if args.site is not None:
        with contextlib.suppress(StepError, TimeoutError):
            async with asyncio.timeout(REMOVE_ACCOUNT_TIMEOUT), world.reach.api(args.site, ctx) as api:
                await remove_account(api)
    return Outcome(instance={"vimConnectionInfo": {KEY: None}})


async def undo_register(world: World, args: Register, ctx: StepContext) -> Outcome:
    return await unregister(world, Unregister(instance=args.site.instance, site=args.site), ctx)


async def _endpoint(site: Site, ctx: StepContext) -> str:
    if site.vip is not None:
        return f"https://{host_and_port(site.vip, BALANCED_API_PORT)}"
    return f"https://{host_and_port(await address_of(site.masters[0], ctx), API_PORT)}"
