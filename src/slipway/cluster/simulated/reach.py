"""The way to simulated machines and to the API on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from slipway.cluster.simulated.api.client import SimulatedApi
from slipway.cluster.simulated.hands import SimulatedHands
from slipway.cluster.simulated.simulation import Simulation
from slipway.cluster.site import Node, Site
from slipway.cluster.steps.machine import address_of
from slipway.cluster.steps.silence import Silence
from slipway.kube.seam import KubeApi
from slipway.model.action import StepContext
from slipway.remote.target import Target
from slipway.vim.simulated.rules import Target as Slot


class SimulatedReach:
    """`directory` is where the simulated VIMs have their files."""

    def __init__(self, directory: Path) -> None:
        self.simulation = Simulation(directory)

    async def hands(self, node: Node, ctx: StepContext) -> SimulatedHands:
        """Secrets are opened as for a real login, so that one that is missing is missed here too."""
        login = await ctx.reveal({"password": node.login.password, "private_key": node.login.private_key,
                                  "passphrase": node.login.passphrase})  # fmt: skip
        address = await address_of(node, ctx, node.ssh)
        target = Target(address=address, username=node.login.username, port=node.login.port, **login)
        return SimulatedHands(self.simulation, await ctx.connection(), node.machine, _slot(node), target)

    async def host_key(self, node: Node, ctx: StepContext) -> str | None:
        return None

    @asynccontextmanager
    async def api(self, site: Site, ctx: StepContext, within: float | None = None) -> AsyncIterator[KubeApi]:
        async def ask(node: Node) -> KubeApi:
            api = await self._through(node, ctx)
            await api.text("/readyz")
            return api

        what = "No API server of the cluster is ready"
        yield await Silence().first_to_answer(site.masters, ask, what, within=within)

    def close(self) -> None:
        self.simulation.close()

    async def _through(self, node: Node, ctx: StepContext) -> SimulatedApi:
        address = await address_of(node, ctx)
        return SimulatedApi(self.simulation, await ctx.connection(), node.machine, _slot(node), address)


def _slot(node: Node) -> Slot:
    return Slot(node.slot, node.slot.rpartition("-")[0])
