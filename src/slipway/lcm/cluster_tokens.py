"""Tokens of clusters that are registered as VIMs: each is replaced when half of its time is over."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import msgspec
from sqlalchemy import Connection

from slipway.kube.account import REGISTERED, Token
from slipway.lcm.clusters import told_of, vim_id_of
from slipway.lcm.vim_registry import VimRegistry
from slipway.model.errors import RequestError, StepError
from slipway.model.vim import KUBERNETES, Vim, is_made_here
from slipway.store import tables, vims
from slipway.store.database import Database
from slipway.store.filters import Filter, Operator
from slipway.store.paging import list_documents
from slipway.store.rounds import DATABASE_AWAY, Rounds

log = logging.getLogger(__name__)

EVERY = 600.0  # seconds between two looks
AT_ONCE = 8


class Clusters(Protocol):
    """Where tokens come from: slipway.lcm.standing_clusters.StandingClusters."""

    async def token(self, instance_id: str, lifetime: timedelta) -> Token: ...


class ClusterTokens:
    """Runs beside the worker. Two at once do no harm: the second finds a fresh token, or makes another."""

    def __init__(self, database: Database, registry: VimRegistry, clusters: Clusters) -> None:
        self._database = database
        self._registry = registry
        self._clusters = clusters
        self._rounds = Rounds(EVERY)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._makers: dict[str, str] = {}  # by VIM, so that each is looked for once

    async def serve(self) -> None:
        """Until `leave` is called."""
        await self._rounds.run(self._round)

    def leave(self) -> None:
        self._rounds.end()

    async def _round(self) -> None:
        try:
            await self.renew_due()
        except DATABASE_AWAY:
            raise
        except Exception:  # an edge: nobody awaits this task, and there is a next round
            log.exception("tokens of clusters are not renewed in this round")

    async def renew_due(self, now: datetime | None = None) -> None:
        due = await self._database.read(_due, now or datetime.now(UTC))
        await asyncio.gather(*(self._renew(vim) for vim in due))

    async def _renew(self, vim: Vim) -> None:
        try:
            async with self._slots:
                instance_id = await self._maker(vim.id)
                if instance_id is None:
                    return
                told = told_of(await self._clusters.token(instance_id, REGISTERED))
            await self._registry.renew(vim.id, told["accessInfo"], told["extra"])
        except (StepError, RequestError) as error:
            log.warning("the token of VIM %s is not renewed: %s", vim.name, error.detail)
        except Exception:  # an edge: one cluster's fault is not the others'
            log.exception("the token of VIM %s is not renewed", vim.name)

    async def _maker(self, vim_id: str) -> str | None:
        if vim_id not in self._makers and (maker := await self._database.read(_maker, vim_id)):
            self._makers[vim_id] = maker
        return self._makers.get(vim_id)


def _due(connection: Connection, now: datetime) -> list[Vim]:
    """Registered clusters of our own with less than half of a token's time left."""
    return [
        vim
        for vim in vims.list_all(connection)
        if vim.vim_type == KUBERNETES and is_made_here(vim.id) and _ends_soon(vim, now)
    ]


def _ends_soon(vim: Vim, now: datetime) -> bool:
    """Also when nobody knows."""
    try:
        return datetime.fromisoformat(vim.extra["tokenExpires"]) - now < REGISTERED / 2
    except (KeyError, TypeError, ValueError):
        return True


def _maker(connection: Connection, vim_id: str) -> str | None:
    """The instance that is this VIM. It reads all instances."""
    on_it = (Filter(Operator.EQ, ("vimConnectionInfo", "vimId"), (vim_id,)),)
    for document in list_documents(connection, tables.instances, on_it, limit=None).items:
        instance_id: str = msgspec.json.decode(document, type=dict[str, Any])["id"]
        if vim_id_of(instance_id) == vim_id:
            return instance_id
    return None
