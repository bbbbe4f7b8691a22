"""Tokens of clusters that are registered as VIMs: each is replaced when half of its time is over."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection

from slipway.kube.account import VIM_TOKEN_LIFETIME, ServiceAccountToken
from slipway.model.errors import RequestError, StepError
from slipway.model.vim import KUBERNETES, Vim, is_made_here
from slipway.store import tables, vims
from slipway.store.database import Database
from slipway.store.filters import Filter, Operator
from slipway.store.paging import list_documents
from slipway.store.poll_loop import DATABASE_UNAVAILABLE, PollLoop
from slipway.vim_registry.clusters import token_attributes
from slipway.vim_registry.names import vim_id_of
from slipway.vim_registry.registry import VimRegistry

log = logging.getLogger(__name__)

EVERY = 600.0  # seconds between two looks
AT_ONCE = 8


class TokenSource(Protocol):
    """Where tokens come from: slipway.cluster_access.clusters.RunningClusters."""

    async def token(self, instance_id: str, lifetime: timedelta) -> ServiceAccountToken: ...


class ClusterTokens:
    """Runs beside the worker. Two at once do no harm: the second finds a fresh token, or makes another."""

    def __init__(self, database: Database, registry: VimRegistry, clusters: TokenSource) -> None:
        self._database = database
        self._registry = registry
        self._clusters = clusters
        self._rounds = PollLoop(EVERY)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._instances: dict[str, str] = {}  # by VIM, so that each is looked for once

    async def serve(self) -> None:
        """Until `shut_down` is called."""
        await self._rounds.run(self._round)

    def shut_down(self) -> None:
        self._rounds.end()

    async def _round(self) -> None:
        try:
            await self.renew_due()
        except DATABASE_UNAVAILABLE:
            raise
        except Exception:  # an edge: this task is not awaited, and there is a next round
            log.exception("tokens of clusters are not renewed in this round")

    async def renew_due(self, now: datetime | None = None) -> None:
        due = await self._database.read(_due, now or datetime.now(UTC))
        await asyncio.gather(*(self._renew(vim) for vim in due))

    async def _renew(self, vim: Vim) -> None:
        try:
            async with self._slots:
                instance_id = await self._instance_of(vim.id)
                if instance_id is None:
                    return
                attributes = token_attributes(await self._clusters.token(instance_id, VIM_TOKEN_LIFETIME))
            await self._registry.renew(vim.id, attributes["accessInfo"], attributes["extra"])
        except (StepError, RequestError) as error:
            log.warning("the token of VIM %s is not renewed: %s", vim.name, error.detail)
        except Exception:  # an edge: one cluster's fault is not the others'
            log.exception("the token of VIM %s is not renewed", vim.name)

    async def _instance_of(self, vim_id: str) -> str | None:
        if vim_id not in self._instances and (instance := await self._database.read(_instance_of, vim_id)):
            self._instances[vim_id] = instance
        return self._instances.get(vim_id)


def _due(connection: Connection, now: datetime) -> list[Vim]:
    """Registered clusters of our own with less than half of a token's time left."""
    return [
        vim
        for vim in vims.list_all(connection)
        if vim.vim_type == KUBERNETES and is_made_here(vim.id) and _ends_soon(vim, now)
    ]


def _ends_soon(vim: Vim, now: datetime) -> bool:
    """Also when its end is not known."""
    try:
        return datetime.fromisoformat(vim.extra["tokenExpires"]) - now < VIM_TOKEN_LIFETIME / 2
    except (KeyError, TypeError, ValueError):
        return True


def _instance_of(connection: Connection, vim_id: str) -> str | None:
    """The instance that is this VIM. It reads all instances."""
    on_it = (Filter(Operator.EQ, ("vimConnectionInfo", "vimId"), (vim_id,)),)
    for document in list_documents(connection, tables.instances, on_it, limit=None).items:
        instance_id: str = msgspec.json.decode(document, type=dict[str, Any])["id"]
        if vim_id_of(instance_id) == vim_id:
            return instance_id
    return None
