"""The way to real machines and to the API on them: SSH, and the API server through it.

So a cluster needs no address that Slipway can reach but those of SSH, and works while its virtual address does not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from slipway.cluster.naming import API_PORT
from slipway.cluster.site import Node, Site
from slipway.cluster.steps.machine import address_of
from slipway.cluster.steps.silence import Silence
from slipway.kube.seam import KubeApi
from slipway.model.action import StepContext
from slipway.model.errors import StepError

if TYPE_CHECKING:
    from slipway.kube.credentials import Credentials
    from slipway.remote.hands import Hands
    from slipway.remote.pool import Pool

ADMIN = "/etc/kubernetes/admin.conf"
MOST_CLUSTERS = 256  # whose administrator's credentials are remembered


async def _too_late(ready: tuple[KubeApi, AsyncExitStack]) -> None:
    await ready[1].aclose()


class SshReach:
    """Nothing of SSH or HTTP is loaded before it is needed: the server starts faster."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._silence = Silence()
        self._known: dict[str, Credentials] = {}  # by machine id, which no other machine ever gets

    async def hands(self, node: Node, ctx: StepContext) -> Hands:
        from slipway.remote.hands import Hands
        from slipway.remote.target import Target

        machine = await ctx.machine(node.machine)
        login = await ctx.reveal({"password": node.login.password, "private_key": node.login.private_key,
                                  "passphrase": node.login.passphrase})  # fmt: skip
        target = Target(
            address=await address_of(node, ctx, node.ssh),
            username=node.login.username,
            port=node.login.port,
            host_key=machine.host_key,
            **login,
        )
        return Hands(self._connections(), target)

    async def host_key(self, node: Node, ctx: StepContext) -> str | None:
        known = self._connections().known
        return await known.pinned((await self.hands(node, ctx)).target.known_as)

    @asynccontextmanager
    async def api(self, site: Site, ctx: StepContext, within: float | None = None) -> AsyncIterator[KubeApi]:
        what = "No API server of the cluster is ready"
        api, stack = await self._silence.first_to_answer(
            site.masters, lambda node: self._ready(node, ctx), what, _too_late, within
        )
        async with stack:
            yield api

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def _ready(self, node: Node, ctx: StepContext) -> tuple[KubeApi, AsyncExitStack]:
        async with AsyncExitStack() as stack:
            api = await stack.enter_async_context(self._through(node, ctx))
            await api.text("/readyz")
            return api, stack.pop_all()

    @asynccontextmanager
    async def _through(self, node: Node, ctx: StepContext) -> AsyncIterator[KubeApi]:
        from slipway.kube.api import Api

        hands = await self.hands(node, ctx)
        credentials = await self._credentials(node, hands)
        address = await address_of(node, ctx)
        async with (
            hands.forwarded(address, API_PORT) as socket,
            Api(credentials, socket=socket, server_name=address) as api,
        ):
            yield api

    async def _credentials(self, node: Node, hands: Hands) -> Credentials:
        from slipway.kube.credentials import from_kubeconfig

        if node.machine not in self._known:
            text = await hands.get(ADMIN, sudo=True)
            if text is None:
                raise StepError(f"{node.slot} has no {ADMIN}: it is no master of a cluster yet.", temporary=True)
            if len(self._known) >= MOST_CLUSTERS:
                self._known.clear()
            self._known[node.machine] = from_kubeconfig(text.decode(errors="replace"))
        return self._known[node.machine]

    def _connections(self) -> Pool:
        from slipway.remote.known_hosts import KnownHere
        from slipway.remote.limits import Limits
        from slipway.remote.pool import Pool

        if self._pool is None:
            self._pool = Pool(KnownHere(), Limits())
        return self._pool
