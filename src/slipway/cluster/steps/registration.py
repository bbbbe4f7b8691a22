"""The cluster becomes a VIM: an account of its own on it, with a token that ends, and its CA."""

from __future__ import annotations

import asyncio
import contextlib

from slipway.cluster.naming import API_PORT, BALANCED_API_PORT, host_and_port
from slipway.cluster.recorded import record_reported_version
from slipway.cluster.steps.arguments import Register, Unregister
from slipway.cluster.steps.dependencies import ClusterVim, Dependencies
from slipway.cluster.steps.machine import address_of
from slipway.kube.account import VIM_TOKEN_LIFETIME, issue_token, remove_account
from slipway.kube.bootstrap import cluster_ca
from slipway.model.action import StepContext
from slipway.model.errors import StepError
from slipway.model.machine import Outcome
from slipway.model.vim import KUBERNETES

KEY = "kubernetes"  # in the instance's vimConnectionInfo
REMOVE_ACCOUNT_TIMEOUT = 15.0  # seconds for a cluster that may be dead


async def register(deps: Dependencies, args: Register, ctx: StepContext) -> Outcome:
    async with deps.connector.api(args.cluster, ctx) as api:
        token = await issue_token(api, VIM_TOKEN_LIFETIME)
        authority = await cluster_ca(api)
        running = (await api.get("/version"))["gitVersion"]
    endpoint = await _endpoint(args, ctx)
    vim = ClusterVim(name=args.vim_name, endpoint=endpoint, ca=authority, access=token)
    vim_id = await deps.vims.register(args.cluster.instance, vim)
    info = {
        "vimType": KUBERNETES,
        "vimId": vim_id,
        "interfaceInfo": {"endpoint": endpoint},
        "accessInfo": None,
    }
    return Outcome(instance={"vimConnectionInfo": {KEY: info}, **record_reported_version(running)})


async def unregister(deps: Dependencies, args: Unregister, ctx: StepContext) -> Outcome:
    """With the account go all tokens that were ever granted. A cluster that does not answer is no reason to stay."""
    await deps.vims.unregister(args.instance)
    if args.cluster is not None:
        with contextlib.suppress(StepError, TimeoutError):
            async with asyncio.timeout(REMOVE_ACCOUNT_TIMEOUT), deps.connector.api(args.cluster, ctx) as api:
                await remove_account(api)
    return Outcome(instance={"vimConnectionInfo": {KEY: None}})


async def undo_register(deps: Dependencies, args: Register, ctx: StepContext) -> Outcome:
    return await unregister(deps, Unregister(instance=args.cluster.instance, cluster=args.cluster), ctx)


async def _endpoint(args: Register, ctx: StepContext) -> str:
    """By the floating IP where there is one: who calls the cluster is not on its network."""
    if args.at is not None:
        return f"https://{host_and_port(await address_of(args.at, ctx, args.at.ssh), args.port or API_PORT)}"
    cluster = args.cluster
    address = cluster.outside or cluster.vip or await address_of(cluster.masters[0], ctx)
    return f"https://{host_and_port(address, BALANCED_API_PORT if cluster.balanced else API_PORT)}"
