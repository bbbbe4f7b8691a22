"""What is stored of a balancer, and who may change it: one operation at a time, of the cluster or of a CNF on it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.load_balancer.balancer import Balancer
from slipway.load_balancer.routes import Routes
from slipway.model.errors import StepError
from slipway.model.machine import FoundMachine
from slipway.store import load_balancers
from slipway.store.database import Database
from slipway.store.load_balancers import HeldBalancer
from slipway.vim_registry.names import vim_id_of
from slipway.waiting import Backoff

WAIT = 240.0  # seconds for another operation to finish its change


class BalancerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`machine`: the one that balances, as its VIM reported it; None until it was set up once."""

    balancer: Balancer | None = None
    machine: FoundMachine | None = None
    routes: Routes = Routes()


@dataclass
class Held:
    """A balancer that nobody else changes. `revision` is higher than that of any change before."""

    record: BalancerRecord
    revision: int
    saved: BalancerRecord | None = None

    def save(self, record: BalancerRecord) -> None:
        """Once the machine does it: kept when the change ends."""
        self.saved = record


class BalancerRecords:
    def __init__(self, database: Database, wait: float = WAIT) -> None:
        self._database = database
        self._wait = wait
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # steps of one operation

    @asynccontextmanager
    async def changing(self, cluster_id: str, operation_id: str, *, new: bool = False) -> AsyncIterator[Held]:
        """`new`: there may be no record yet. StepError when others do not let go of it in time."""
        if new:
            await self._database.write(load_balancers.ensure, cluster_id, vim_id_of(cluster_id))
        async with self._turns[cluster_id]:
            taken = await self._taken(cluster_id, operation_id)
            held = Held(_record(taken), taken.revision)
            try:
                yield held
            finally:
                await asyncio.shield(self._end(cluster_id, held))

    async def cluster_behind(self, vim_id: str, project: str) -> tuple[str, BalancerRecord] | None:
        """The cluster that is the VIM and its balancer, where both are the project's own."""

        def read(connection: Connection) -> tuple[str, BalancerRecord] | None:
            cluster_id = load_balancers.cluster_behind(connection, vim_id, project)
            if cluster_id is None:
                return None
            return cluster_id, _of_those_there(connection, _read(load_balancers.get(connection, cluster_id)))

        return await self._database.read(read)

    async def get(self, cluster_id: str) -> BalancerRecord | None:
        doc = await self._database.read(load_balancers.get, cluster_id)
        return None if doc is None else _read(doc)

    async def forget(self, cluster_id: str) -> None:
        await self._database.write(load_balancers.delete, cluster_id)

    async def _taken(self, cluster_id: str, operation_id: str) -> HeldBalancer:
        backoff = Backoff(0.1, 1.0, timeout=self._wait)
        while True:
            if taken := await self._database.write(_take, cluster_id, operation_id):
                return taken
            if await self.get(cluster_id) is None:
                raise StepError(
                    f"The cluster {cluster_id} has no load balancer.",
                    cure="heal the whole VNF of the cluster, which sets it up.",
                )
            if not await backoff.pause():
                holder = await self._database.read(load_balancers.holder_of, cluster_id)
                raise StepError(
                    f"timed out after {self._wait:g} s waiting for operation {holder}, which changes the load "
                    f"balancer of cluster {cluster_id}.",
                    temporary=True,
                )

    async def _end(self, cluster_id: str, held: Held) -> None:
        if held.saved is None:
            await self._database.write(load_balancers.release, cluster_id, held.revision)
            return
        doc = msgspec.to_builtins(held.saved)
        if not await self._database.write(load_balancers.save, cluster_id, held.revision, doc):
            raise StepError(
                f"Another operation changed the load balancer of cluster {cluster_id} meanwhile.", temporary=True
            )


def _take(connection: Connection, cluster_id: str, operation_id: str) -> HeldBalancer | None:
    taken = load_balancers.take(connection, cluster_id, operation_id)
    if taken is None:
        return None
    return HeldBalancer(taken.revision, msgspec.to_builtins(_of_those_there(connection, _record(taken))))


def _of_those_there(connection: Connection, record: BalancerRecord) -> BalancerRecord:
    """Without the front-ends of instances that were deleted: those may have left some when an operation failed."""
    there = load_balancers.existing(connection, list(record.routes.exposed))
    exposed = {owner: one for owner, one in record.routes.exposed.items() if owner in there}
    return replace(record, routes=replace(record.routes, exposed=exposed))


def _record(taken: HeldBalancer) -> BalancerRecord:
    return _read(taken.doc)


def _read(doc: dict[str, object] | None) -> BalancerRecord:
    return msgspec.convert(doc or {}, BalancerRecord)
