"""Logins to clusters that are registered as VIMs: each is replaced when half of its time is over. In the same rounds
receivers of credentials are told what Cluster API has renewed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection

from slipway.cluster.cluster_api.steps import KEY
from slipway.cluster.steps.dependencies import VimAccess
from slipway.kube.account import VIM_TOKEN_LIFETIME, ServiceAccountToken
from slipway.model.errors import RequestError, StepError
from slipway.model.vim import KUBERNETES, Vim, is_made_here
from slipway.store import tables, vims
from slipway.store.database import Database
from slipway.store.filters import Filter, Operator
from slipway.store.paging import list_documents
from slipway.store.poll_loop import DATABASE_UNAVAILABLE, PollLoop
from slipway.vim_registry.clusters import CERTIFICATE_EXPIRES, TOKEN_EXPIRES, access_attributes
from slipway.vim_registry.names import vim_id_of
from slipway.vim_registry.registry import VimRegistry

log = logging.getLogger(__name__)

EVERY = 600.0  # seconds between two looks
CERTIFICATE_LIFETIME = timedelta(days=365)  # of those that Cluster API makes, which it renews after half of it
AT_ONCE = 8


class TokenSource(Protocol):
    """Where tokens come from: slipway.cluster_access.clusters.RunningClusters."""

    async def token(self, instance_id: str, lifetime: timedelta) -> ServiceAccountToken: ...


class AccessSource(Protocol):
    """The same of workload clusters: slipway.cluster_access.workload_clusters.WorkloadAccess."""

    async def renewed(self, instance_id: str, vim: Vim) -> VimAccess: ...

    async def send_changed(self) -> None: ...


class ClusterTokens:
    """Runs beside the worker. Two at once do no harm: the second finds a fresh token, or makes another."""

    def __init__(
        self,
        database: Database,
        registry: VimRegistry,
        clusters: TokenSource,
        workload_clusters: AccessSource | None = None,
    ) -> None:
        self._database = database
        self._registry = registry
        self._clusters = clusters
        self._workload_clusters = workload_clusters
        self._rounds = PollLoop(EVERY)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._instances: dict[str, _Maker] = {}  # by VIM, so that each is looked for once

    async def serve(self) -> None:
        """Until `shut_down` is called."""
        await self._rounds.run(self.look_once)

    def shut_down(self) -> None:
        self._rounds.end()

    async def look_once(self) -> None:
        await _round(self.renew_due, "tokens of clusters are not renewed in this round")
        if self._workload_clusters:
            send = self._workload_clusters.send_changed
            await _round(send, "credentials that have changed are not sent in this round")

    async def renew_due(self, now: datetime | None = None) -> None:
        due = await self._database.read(_due, now or datetime.now(UTC))
        await asyncio.gather(*(self._renew(vim) for vim in due))

    async def _renew(self, vim: Vim) -> None:
        try:
            async with self._slots:
                maker = await self._maker_of(vim.id)
                if maker is None:
                    return
                attributes = access_attributes(await self._access(maker, vim))
            ends = attributes["extra"].get(CERTIFICATE_EXPIRES)
            if ends is None or ends != vim.extra.get(CERTIFICATE_EXPIRES):  # else Cluster API has no other one yet
                await self._registry.renew(vim.id, attributes["accessInfo"], attributes["extra"])
        except (StepError, RequestError) as error:
            log.warning("the token of VIM %s is not renewed: %s", vim.name, error.detail)
        except Exception:  # an edge: one cluster's fault is not the others'
            log.exception("the token of VIM %s is not renewed", vim.name)

    async def _access(self, maker: _Maker, vim: Vim) -> VimAccess:
        if maker.by_cluster_api and self._workload_clusters:
            return await self._workload_clusters.renewed(maker.instance_id, vim)
        return await self._clusters.token(maker.instance_id, VIM_TOKEN_LIFETIME)

    async def _maker_of(self, vim_id: str) -> _Maker | None:
        if vim_id not in self._instances and (maker := await self._database.read(_maker_of, vim_id)):
            self._instances[vim_id] = maker
        return self._instances.get(vim_id)


async def _round(work: Callable[[], Awaitable[None]], failed: str) -> None:
    try:
        await work()
    except DATABASE_UNAVAILABLE:
        raise
    except Exception:  # an edge: this task is not awaited, and there is a next round
        log.exception(failed)


@dataclass(frozen=True)
class _Maker:
    """The instance that is a VIM."""

    instance_id: str
    by_cluster_api: bool


def _due(connection: Connection, now: datetime) -> list[Vim]:
    """Registered clusters of our own with less than half of a login's time left."""
    return [
        vim
        for vim in vims.list_all(connection)
        if vim.vim_type == KUBERNETES and is_made_here(vim.id) and _ends_soon(vim, now)
    ]


def _ends_soon(vim: Vim, now: datetime) -> bool:
    """Also when its end is not known."""
    by_certificate = CERTIFICATE_EXPIRES in vim.extra
    name, lifetime = (
        (CERTIFICATE_EXPIRES, CERTIFICATE_LIFETIME) if by_certificate else (TOKEN_EXPIRES, VIM_TOKEN_LIFETIME)
    )
    try:
        return datetime.fromisoformat(vim.extra[name]) - now < lifetime / 2
    except (KeyError, TypeError, ValueError):
        return True


def _maker_of(connection: Connection, vim_id: str) -> _Maker | None:
    """The instance that is this VIM. It reads all instances."""
    on_it = (Filter(Operator.EQ, ("vimConnectionInfo", "vimId"), (vim_id,)),)
    for document in list_documents(connection, tables.instances, on_it, limit=None).items:
        found = msgspec.json.decode(document, type=dict[str, Any])
        if vim_id_of(found["id"]) == vim_id:
            return _Maker(found["id"], KEY in found["vimConnectionInfo"])
    return None
