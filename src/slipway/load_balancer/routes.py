"""What a load balancer does, as data: the API servers behind one port, and a front-end for each port that is exposed.

The routes belong to the cluster's instance. Front-ends are those of other instances, the CNFs on the cluster; each
instance has its own, so that nobody can take away or change what another one exposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

API_FRONT_END = 8383  # where the balancer offers the cluster's API
API_FRONT_END_NAME = "kubernetes-apiserver"


class Server(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A node of the cluster, where the balancer reaches it."""

    name: str
    address: str
    master: bool = False


class FrontEnd(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A port of the balancer that leads to the same port of every node: a NodePort of a Service."""

    port: int
    namespace: str
    service: str

    @property
    def name(self) -> str:
        """Unlike any other's, for its port is."""
        return f"{self.namespace}_{self.service}_{self.port}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.service} port {self.port}"


class Exposed(msgspec.Struct, frozen=True, kw_only=True):
    """The front-ends of one instance. `former` are those from before `operation`, for its rollback."""

    front_ends: tuple[FrontEnd, ...] = ()
    former: tuple[FrontEnd, ...] = ()
    operation: str = ""


class Routes(msgspec.Struct, frozen=True, kw_only=True):
    """All that a balancer does: the same routes are always the same configuration."""

    servers: tuple[Server, ...] = ()
    exposed: dict[str, Exposed] = {}  # by the instance that exposes it

    @property
    def masters(self) -> tuple[Server, ...]:
        return tuple(server for server in self.servers if server.master)

    @property
    def front_ends(self) -> tuple[FrontEnd, ...]:
        """Of all instances, in the order of their ports."""
        return tuple(sorted(one for exposed in self.exposed.values() for one in exposed.front_ends))

    def to(self, servers: Iterable[Server]) -> Routes:
        """To these nodes and no others; the front-ends stay."""
        return replace(self, servers=tuple(sorted(servers)))

    def with_servers(self, servers: Iterable[Server]) -> Routes:
        """A node that was there already gets its new address."""
        new = tuple(servers)
        return self.to((*self._others({one.name for one in new}), *new))

    def without_servers(self, names: Iterable[str]) -> Routes:
        return self.to(self._others(set(names)))

    def exposing(self, owner: str, front_ends: Iterable[FrontEnd], operation: str) -> Routes:
        """What the instance exposes from now on. What it exposed before the operation is kept for its rollback."""
        now = self.exposed.get(owner, Exposed())
        former = now.former if now.operation == operation else now.front_ends
        entry = Exposed(front_ends=tuple(sorted(front_ends)), former=former, operation=operation)
        others = {name: one for name, one in self.exposed.items() if name != owner}
        return replace(self, exposed={**others, owner: entry} if entry.front_ends or entry.former else others)

    def taken_back(self, owner: str, operation: str) -> Routes:
        """As the instance had it before the operation."""
        now = self.exposed.get(owner)
        if now is None or now.operation != operation:
            return self
        back = self.exposing(owner, now.former, operation)
        return back if now.former else replace(back, exposed={k: v for k, v in back.exposed.items() if k != owner})

    def taken_by_others(self, owner: str, front_ends: Iterable[FrontEnd]) -> Iterator[tuple[FrontEnd, str]]:
        """Those whose port the balancer has given away already, and what has it."""
        held = {API_FRONT_END: "the cluster's API"}
        for name, exposed in self.exposed.items():
            if name != owner:
                held |= {one.port: f"{one} of VNF instance {name}" for one in exposed.front_ends}
        yield from ((one, held[one.port]) for one in front_ends if one.port in held)

    def _others(self, names: set[str]) -> tuple[Server, ...]:
        return tuple(server for server in self.servers if server.name not in names)
