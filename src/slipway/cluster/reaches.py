"""Which way leads to a machine: to those of a simulated VIM another one than to all others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slipway.cluster.reach import SshReach
from slipway.cluster.simulated.reach import SimulatedReach
from slipway.cluster.site import Node, Site
from slipway.cluster.steps.world import Hands
from slipway.kube.seam import KubeApi
from slipway.model.action import StepContext
from slipway.model.vim import SIMULATED


class ReachByVim:
    def __init__(self, real: SshReach, simulated: SimulatedReach) -> None:
        self._real = real
        self.simulated = simulated

    async def hands(self, node: Node, ctx: StepContext) -> Hands:
        return await (await self._chosen(ctx)).hands(node, ctx)

    async def host_key(self, node: Node, ctx: StepContext) -> str | None:
        return await (await self._chosen(ctx)).host_key(node, ctx)

    @asynccontextmanager
    async def api(self, site: Site, ctx: StepContext, within: float | None = None) -> AsyncIterator[KubeApi]:
        async with (await self._chosen(ctx)).api(site, ctx, within) as api:
            yield api

    async def close(self) -> None:
        """The connections, which need the event loop for that. What is simulated has a `close` of its own."""
        await self._real.close()

    async def _chosen(self, ctx: StepContext) -> SshReach | SimulatedReach:
        return self.simulated if (await ctx.connection()).vim_type == SIMULATED else self._real
