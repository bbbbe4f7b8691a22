"""Connections to machines and to the Kubernetes API on them: SSH, and the API server through it.

So a cluster needs no address that Slipway can reach but those of SSH, and works while its virtual address does not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from slipway.cluster.naming import API_PORT
from slipway.cluster.spec import ClusterSpec, Node, Server
from slipway.cluster.steps.dependencies import Connector, RemoteHost
from slipway.cluster.steps.machine import address_of
from slipway.cluster.steps.unreachable import UnreachableHosts
from slipway.kube.errors import KubeError
from slipway.kube.interface import KubeApi
from slipway.model.action import StepContext
from slipway.model.errors import OutgoingRequestError, StepError
from slipway.outgoing.guard import Guard

if TYPE_CHECKING:
    from slipway.kube.credentials import Credentials
    from slipway.remote.pool import Pool
    from slipway.remote.ssh_host import SshHost
    from slipway.remote.target import SshTarget

ADMIN = "/etc/kubernetes/admin.conf"
MOST_CLUSTERS = 256  # whose administrator's credentials are remembered


async def _close_unused(ready: tuple[KubeApi, AsyncExitStack]) -> None:
    await ready[1].aclose()


class SshConnector:
    """Nothing of SSH or HTTP is loaded before it is needed: the server starts faster.

    `guard`: judges addresses that a VIM names, where others run the VIM.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        self._guard = guard
        self._pool: Pool | None = None
        self._unreachable = UnreachableHosts()
        self._known: dict[str, Credentials] = {}  # by machine id

    async def host(self, node: Node, ctx: StepContext) -> SshHost:
        from slipway.remote.ssh_host import SshHost
        from slipway.remote.target import SshTarget

        machine = await ctx.machine(node.machine)
        login = await ctx.decrypt_secrets({"password": node.login.password, "private_key": node.login.private_key,
                                  "passphrase": node.login.passphrase})  # fmt: skip
        target = SshTarget(
            address=await address_of(node, ctx, node.ssh),
            username=node.login.username,
            port=node.login.port,
            host_key=machine.host_key,
            machine=f"{node.machine}/{machine.resource_id}",  # what a VIM calls a machine may be any text
            **login,
        )
        self._check(node.slot, target.address)
        return SshHost(self._connections(), target)

    async def host_key(self, node: Node, ctx: StepContext) -> str | None:
        known = self._connections().known
        return await known.pinned((await self.host(node, ctx)).target.known_as)

    async def host_at(self, server: Server, ctx: StepContext) -> SshHost:
        from slipway.remote.ssh_host import SshHost

        self._check("the server", server.address)
        return SshHost(self._connections(), await _target(server, ctx))

    async def host_key_at(self, server: Server, ctx: StepContext) -> str | None:
        return server.host_key or await self._connections().known.pinned((await _target(server, ctx)).known_as)

    @asynccontextmanager
    async def api(self, cluster: ClusterSpec, ctx: StepContext, within: float | None = None) -> AsyncIterator[KubeApi]:
        what = "No API server of the cluster is ready"
        api, stack = await self._unreachable.first_to_answer(
            cluster.masters, lambda node: self._ready(node, ctx), what, _close_unused, within
        )
        async with stack:
            yield api

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    def _check(self, name: str, address: str) -> None:
        if self._guard is None:
            return
        try:
            self._guard.check_address(address)
        except OutgoingRequestError as error:
            raise StepError(f"SSH does not go to {name}: {error.detail}") from None

    async def _ready(self, node: Node, ctx: StepContext) -> tuple[KubeApi, AsyncExitStack]:
        remembered = node.machine in self._known
        try:
            return await self._answering(node, ctx)
        except KubeError as error:
            # After a rollback the next try has the same ids: what is remembered is that of a cluster that is gone.
            if not remembered or error.temporary:
                raise
            self._known.pop(node.machine, None)
            return await self._answering(node, ctx)

    async def _answering(self, node: Node, ctx: StepContext) -> tuple[KubeApi, AsyncExitStack]:
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(self._through(node, ctx))
            await api.text("/readyz")
            return api, stack.pop_all()

    @asynccontextmanager
    async def _through(self, node: Node, ctx: StepContext) -> AsyncIterator[KubeApi]:
        from slipway.kube.api import Api

        host = await self.host(node, ctx)
        credentials = await self._credentials(node, host)
        address = await address_of(node, ctx)
        async with (
            host.forwarded(address, API_PORT) as socket,
            Api(credentials, socket=socket, server_name=address) as api,
        ):
            yield api

    async def _credentials(self, node: Node, host: SshHost) -> Credentials:
        from slipway.kube.credentials import from_kubeconfig

        if node.machine not in self._known:
            text = await host.get(ADMIN, sudo=True)
            if text is None:
                raise StepError(f"{node.slot} has no {ADMIN}: it is no master of a cluster yet.", temporary=True)
            if len(self._known) >= MOST_CLUSTERS:
                self._known.clear()
            self._known[node.machine] = from_kubeconfig(text.decode(errors="replace"))
        return self._known[node.machine]

    def _connections(self) -> Pool:
        from slipway.remote.connect import SshLimits
        from slipway.remote.known_hosts import InMemoryKnownHosts
        from slipway.remote.pool import Pool

        if self._pool is None:
            self._pool = Pool(InMemoryKnownHosts(), SshLimits())
        return self._pool


async def _target(server: Server, ctx: StepContext) -> SshTarget:
    from slipway.remote.target import SshTarget

    login = server.login
    secrets = await ctx.decrypt_secrets(
        {"password": login.password, "private_key": login.private_key, "passphrase": login.passphrase}
    )
    return SshTarget(
        address=server.address, username=login.username, port=login.port, host_key=server.host_key, **secrets
    )


class ConnectorByVim:
    """SSH, but for machines of VIM types that have a connector of their own."""

    def __init__(self, ssh: SshConnector, others: Mapping[str, Connector] | None = None) -> None:
        self._ssh = ssh
        self._others = others or {}

    async def host(self, node: Node, ctx: StepContext) -> RemoteHost:
        return await (await self._chosen(ctx)).host(node, ctx)

    async def host_key(self, node: Node, ctx: StepContext) -> str | None:
        return await (await self._chosen(ctx)).host_key(node, ctx)

    async def host_at(self, server: Server, ctx: StepContext) -> RemoteHost:
        return await (await self._for_servers(ctx)).host_at(server, ctx)

    async def host_key_at(self, server: Server, ctx: StepContext) -> str | None:
        return await (await self._for_servers(ctx)).host_key_at(server, ctx)

    @asynccontextmanager
    async def api(self, cluster: ClusterSpec, ctx: StepContext, within: float | None = None) -> AsyncIterator[KubeApi]:
        async with (await self._chosen(ctx)).api(cluster, ctx, within) as api:
            yield api

    async def close(self) -> None:
        for one in (self._ssh, *self._others.values()):
            if isinstance(one, SshConnector):
                await one.close()

    async def _for_servers(self, ctx: StepContext) -> Connector:
        """Their addresses come from requests, so they are always judged, whichever VIM the machines are on."""
        chosen = await self._chosen(ctx)
        return self._ssh if isinstance(chosen, SshConnector) else chosen

    async def _chosen(self, ctx: StepContext) -> Connector:
        return self._others.get((await ctx.connection()).vim_type, self._ssh)
