"""The way to simulated machines and to the API on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from slipway.cluster.spec import ClusterSpec, Node, Server
from slipway.cluster.steps.machine import address_of
from slipway.cluster.steps.unreachable import UnreachableHosts
from slipway.kube.interface import KubeApi
from slipway.model.action import StepContext
from slipway.remote.target import SshTarget
from slipway.simulator.cluster.api.client import SimulatedApi
from slipway.simulator.cluster.simulation import Simulation
from slipway.simulator.cluster.ssh_host import SimulatedSshHost
from slipway.vim.fault_rules import FaultTarget as Slot

SERVER = "ansible-server"  # what fault rules and counters call a server that a request names


class SimulatedConnector:
    """`directory` is where the simulated VIMs have their files."""

    def __init__(self, directory: Path) -> None:
        self.simulation = Simulation(directory)

    async def host(self, node: Node, ctx: StepContext) -> SimulatedSshHost:
        """Secrets are opened as for a real login, so that one that is missing is missed here too."""
        login = await ctx.decrypt_secrets({"password": node.login.password, "private_key": node.login.private_key,
                                  "passphrase": node.login.passphrase})  # fmt: skip
        address = await address_of(node, ctx, node.ssh)
        target = SshTarget(address=address, username=node.login.username, port=node.login.port, **login)
        return SimulatedSshHost(self.simulation, await ctx.connection(), node.machine, _slot(node), target)

    async def host_key(self, node: Node, ctx: StepContext) -> str | None:
        return None

    async def host_at(self, server: Server, ctx: StepContext) -> SimulatedSshHost:
        """There is one at every address."""
        login = await ctx.decrypt_secrets({"password": server.login.password, "private_key": server.login.private_key,
                                  "passphrase": server.login.passphrase})  # fmt: skip
        target = SshTarget(address=server.address, username=server.login.username, port=server.login.port, **login)
        machine, slot = f"server {server.address}", Slot(SERVER, SERVER)
        return SimulatedSshHost(self.simulation, await ctx.connection(), machine, slot, target, always_on=True)

    async def host_key_at(self, server: Server, ctx: StepContext) -> str | None:
        return server.host_key

    @asynccontextmanager
    async def api(self, cluster: ClusterSpec, ctx: StepContext, within: float | None = None) -> AsyncIterator[KubeApi]:
        async def ask(node: Node) -> KubeApi:
            api = await self._through(node, ctx)
            await api.text("/readyz")
            return api

        what = "No API server of the cluster is ready"
        yield await UnreachableHosts().first_to_answer(cluster.masters, ask, what, within=within)

    def close(self) -> None:
        self.simulation.close()

    async def _through(self, node: Node, ctx: StepContext) -> SimulatedApi:
        address = await address_of(node, ctx)
        return SimulatedApi(self.simulation, await ctx.connection(), node.machine, _slot(node), address)


def _slot(node: Node) -> Slot:
    return Slot(node.slot, node.slot.rpartition("-")[0])
