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

from slipway.model.action import VimConnection
from slipway.model.errors import StepError, VimError, VimFault
from slipway.simulator.vim.database import SimulatedVimDatabase
from slipway.simulator.vim.endpoint import file_of
from slipway.simulator.vim.faults import count
from slipway.vim.fault_rules import FaultTarget, Rule, RuleKind

T = TypeVar("T")
Rules = Sequence[Rule]
Work = Callable[[sqlite3.Connection, Rules], T]
Explain = Callable[[Rule, str], StepError]  # what a rule's fault is to the caller; the text says what was called
_OUTSIDE_WORK = frozenset({RuleKind.LATENCY, RuleKind.ERROR})


class Calls:
    """All simulated VIMs of a driver."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._database = SimulatedVimDatabase(directory)

    @contextmanager
    def behind(self, connection: VimConnection) -> Iterator[sqlite3.Connection]:
        """The VIM's records themselves: no call, no rules."""
        path = file_of(connection, self.directory)
        with self._database.transaction(path) as db:
            yield db

    async def call(
        self,
        connection: VimConnection,
        name: str,
        work: Work[T],
        target: FaultTarget | None = None,
        *,
        asked: str = "",
        explain: Explain | None = None,
    ) -> T:
        """Count the call, do what the rules say, and do the work in one transaction."""
        fault = explain or _vim_fault
        with self.behind(connection) as db:
            hits = count(db, name, target, asked)
            at_once = not any(rule.kind in _OUTSIDE_WORK for rule in hits)
            answer = _attempt(db, hits, work) if at_once else None
        what = name if target is None else f"{name} {target.name}"
        if answer is None:
            await _wait_or_fail(hits, what, fault)
            with self.behind(connection) as db:
                answer = _attempt(db, hits, work)
        if isinstance(answer, StepError):
            raise answer
        for rule in hits:
            if rule.kind is RuleKind.TIMEOUT_AFTER_WORK:
                raise fault(rule, what)
        return answer[0]

    def close(self) -> None:
        self._database.close()


def _attempt(db: sqlite3.Connection, hits: Rules, work: Work[T]) -> tuple[T] | StepError:
    """Do the work or leave no trace of it; the count of the call stays either way."""
    db.execute("SAVEPOINT work")
    try:
        return (work(db, hits),)
    except StepError as refused:
        db.execute("ROLLBACK TO work")
        return refused


async def _wait_or_fail(hits: Rules, what: str, fault: Explain) -> None:
    """What latency and error rules do before the work."""
    for rule in hits:
        if rule.kind is RuleKind.LATENCY:
            await asyncio.sleep(rule.seconds + random.uniform(0, rule.jitter))  # noqa: S311 (no secret hangs on it)
    for rule in hits:
        if rule.kind is RuleKind.ERROR:
            raise fault(rule, what)


def _vim_fault(rule: Rule, what: str) -> VimError:
    late = rule.kind is RuleKind.TIMEOUT_AFTER_WORK
    fault = VimFault.TEMPORARY if late else rule.fault
    otherwise = "no answer in time" if late else f"{rule.fault} error by a rule"
    return VimError(f"The simulated VIM answered {what} with: {rule.message or otherwise}.", fault)
