"""A periodic look at what others have done to VNFs on their VIMs: told in the log and by a metric, not overwritten."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from prometheus_client import Metric
from sqlalchemy import Connection, select

from slipway.model.errors import RequestError, StepError
from slipway.store import tables
from slipway.store.database import Database
from slipway.store.filter_sql import condition
from slipway.store.filters import Filter, Operator
from slipway.store.poll_loop import DATABASE_UNAVAILABLE, PollLoop
from slipway.store.resources import RESOURCES
from slipway.telemetry.metrics import gauge

log = logging.getLogger(__name__)

AT_ONCE = 4  # VNFs that are looked at
LOOK_SECONDS = 120.0  # for one of them
Look = Callable[[str], Awaitable[tuple[str, ...] | None]]


class DriftWatch:
    """Runs beside the worker. Two at once do no harm: both look, and both report."""

    def __init__(self, database: Database, look: Look, vim_types: Sequence[str], every: float) -> None:
        """`look`: what is not as the record of this instance has it. `vim_types`: of VIMs that can tell."""
        self._database, self._look, self._vim_types = database, look, vim_types
        self._rounds = PollLoop(every)
        self._every = every
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._found: dict[str, tuple[str, ...]] = {}  # by instance

    async def serve(self) -> None:
        """Until `shut_down` is called. Not at once: a process that has just started has other work to take up."""
        if self._every and self._vim_types:
            await asyncio.sleep(min(self._every, LOOK_SECONDS))
            await self._rounds.run(self._round)

    def shut_down(self) -> None:
        self._rounds.end()

    async def metrics(self) -> list[Metric]:
        drifted = sum(bool(problems) for problems in self._found.values())
        return [gauge("slipway_vnfs_drifted", "VNFs that others have changed, at the last look.", {(): drifted})]

    async def _round(self) -> None:
        try:
            await self.look_once()
        except DATABASE_UNAVAILABLE:
            raise
        except Exception:  # an edge: this task is not awaited, and there is a next round
            log.exception("nobody looks for what others have changed in this round")

    async def look_once(self) -> None:
        there = await self._database.read(_idle_instances, self._vim_types)
        self._found = {id_: self._found.get(id_, ()) for id_ in there}
        await asyncio.gather(*(self._one(id_) for id_ in there))

    async def _one(self, instance_id: str) -> None:
        try:
            async with self._slots, asyncio.timeout(LOOK_SECONDS):
                problems = await self._look(instance_id) or ()
        except (StepError, RequestError) as error:
            problems = (f"it can't be looked at: {error.detail}",)
        except TimeoutError:
            problems = (f"its VIM does not tell within {LOOK_SECONDS:g} s what it has.",)
        except DATABASE_UNAVAILABLE:
            raise
        except Exception:  # an edge: what one VIM answers ends nobody else's look
            log.exception("VNF instance %s can't be looked at", instance_id)
            return
        before, self._found[instance_id] = self._found.get(instance_id, ()), problems
        for problem in problems:
            if problem not in before:
                log.warning("VNF instance %s: %s", instance_id, problem)
        if before and not problems:
            log.info("VNF instance %s is as it was made again", instance_id)


def _idle_instances(connection: Connection, vim_types: Sequence[str]) -> list[str]:
    """Instances on such VIMs that no operation is working on."""
    of_type = Filter(Operator.IN, ("vimConnectionInfo", "vimType"), tuple(vim_types))
    fits = condition(RESOURCES[tables.instances.name], [of_type], connection.dialect)
    busy = select(tables.operations.c.instance_id).where(tables.HOLDS_INSTANCE)
    query = select(tables.instances.c.id).where(tables.instances.c.id.not_in(busy))
    return [str(id_) for id_ in connection.scalars(query if fits is None else query.where(fits))]
