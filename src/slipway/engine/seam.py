"""What the engine asks of the layer above it, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from sqlalchemy import Connection as DatabaseConnection

from slipway.model.action import Connection
from slipway.model.instance import VimConnectionInfo
from slipway.model.journal import StepRecord
from slipway.model.machine import FoundMachine, Outcome
from slipway.model.operation import Operation
from slipway.model.plan import Plan


class Lifecycle(Protocol):
    async def plan(self, operation: Operation, vim: VimConnectionInfo | None) -> Plan:
        """The steps of an accepted operation. A SlipwayError here ends it as ROLLED_BACK: nothing was touched."""
        ...

    def settle(self, connection: DatabaseConnection, operation: Operation, journal: Sequence[StepRecord]) -> Operation:
        """Make the records say what the journal says, in the transaction in which the operation enters its state.

        Answers the operation with what it changed.
        """
        ...

    def announce(self, connection: DatabaseConnection, operation: Operation) -> None:
        """Tell those who want to know that the operation enters its state, in the transaction in which it does."""
        ...

    async def connection(self, operation: Operation, vim: VimConnectionInfo | None) -> Connection:
        """The operation's VIM with its secrets in clear, as registered now."""
        ...

    async def machine(self, operation: Operation, machine_id: str) -> FoundMachine | None:
        """A machine that the record knew when the operation began."""
        ...

    async def reveal(self, operation: Operation, document: Any) -> Any:
        """The document with values where references to secrets of the operation's instance were."""
        ...

    def seal(self, connection: DatabaseConnection, operation: Operation, outcome: Outcome) -> Outcome:
        """The outcome as it may be stored: its secrets kept apart, references in their place."""
        ...


class Boundary(Protocol):
    """Called at the edges of every step ("before", "worked", "after"), of "plan" and of "settle".

    Tests end the process here."""

    def __call__(self, edge: str, step_id: str, /) -> None: ...


class Watch(Protocol):
    """Told what happens, on the event loop; it counts, logs and traces, and changes nothing."""

    def entered(self, operation: Operation) -> None:
        """The operation is in this state now, and that is on disk."""
        ...

    def operation(self, operation: Operation, *, begins: bool) -> AbstractContextManager[None]:
        """Around what this worker does of an operation. `begins`: nothing of it was planned before."""
        ...

    def step(self, operation: Operation, record: StepRecord) -> AbstractContextManager[Callable[[StepRecord], None]]:
        """Around the work of a step; what it gives is told the record when it is tried again and when it has ended."""
        ...


class Unwatched:
    """Nobody looks."""

    def entered(self, operation: Operation) -> None:
        pass

    @contextmanager
    def operation(self, operation: Operation, *, begins: bool) -> Iterator[None]:
        yield

    @contextmanager
    def step(self, operation: Operation, record: StepRecord) -> Iterator[Callable[[StepRecord], None]]:
        yield lambda record: None
