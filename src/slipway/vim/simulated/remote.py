"""A call to the simulated VIM, as one to a real one would be: counted, and subject to its rules.

Without rules a call is one short transaction. A rule's latency is waited for between two transactions, never in one.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from slipway.model.action import Connection
from slipway.model.errors import VimError, VimFault
from slipway.vim.simulated.database import Database
from slipway.vim.simulated.endpoint import file_of
from slipway.vim.simulated.faults import count
from slipway.vim.simulated.rules import Rule, RuleKind, Target

T = TypeVar("T")
Rules = Sequence[Rule]
Work = Callable[[sqlite3.Connection, Rules], T]
_OUTSIDE_WORK = frozenset({RuleKind.LATENCY, RuleKind.ERROR})


class Remote:
    """All simulated VIMs of a driver."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._database = Database(directory)

    @contextmanager
    def behind(self, connection: Connection) -> Iterator[sqlite3.Connection]:
        """The VIM's records themselves: no call, no rules."""
        path = file_of(connection, self.directory)
        with self._database.transaction(path) as db:
            yield db

    async def call(self, connection: Connection, name: str, work: Work[T], target: Target | None = None) -> T:
        """Count the call, do what the rules say, and do the work in one transaction."""
        with self.behind(connection) as db:
            hits = count(db, name, target)
            at_once = not any(rule.kind in _OUTSIDE_WORK for rule in hits)
            answer = _attempt(db, hits, work) if at_once else None
        if answer is None:
            await _suffer(hits, name, target)
            with self.behind(connection) as db:
                answer = _attempt(db, hits, work)
        if isinstance(answer, VimError):
            raise answer
        for rule in hits:
            if rule.kind is RuleKind.TIMEOUT_AFTER_WORK:
                raise VimError(_said(rule, name, target, "no answer in time"), VimFault.TEMPORARY)
        return answer[0]

    def close(self) -> None:
        self._database.close()


def _attempt(db: sqlite3.Connection, hits: Rules, work: Work[T]) -> tuple[T] | VimError:
    """Do the work or leave no trace of it; the count of the call stays either way."""
    db.execute("SAVEPOINT work")
    try:
        return (work(db, hits),)
    except VimError as refused:
        db.execute("ROLLBACK TO work")
        return refused


async def _suffer(hits: Rules, name: str, target: Target | None) -> None:
    for rule in hits:
        if rule.kind is RuleKind.LATENCY:
            await asyncio.sleep(rule.seconds + random.uniform(0, rule.jitter))  # noqa: S311 (no secret hangs on it)
    for rule in hits:
        if rule.kind is RuleKind.ERROR:
            raise VimError(_said(rule, name, target, f"{rule.fault} error by a rule"), rule.fault)


def _said(rule: Rule, name: str, target: Target | None, otherwise: str) -> str:
    what = name if target is None else f"{name} {target.name}"
    return f"The simulated VIM answered {what} with: {rule.message or otherwise}."
