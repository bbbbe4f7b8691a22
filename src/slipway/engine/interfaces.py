"""What the engine needs of others: the handler of its operations (lcm/), and those who observe it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from sqlalchemy import Connection

from slipway.model.action import VimConnection
from slipway.model.instance import VimConnectionInfo
from slipway.model.journal import StepRecord
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.operation import Operation
from slipway.model.package_content import PackageContent
from slipway.model.plan import Plan


class OperationHandler(Protocol):
    """Plans operations, gives their steps what they need, and records how they end (lcm/operation_handler.py)."""

    async def plan(self, operation: Operation, vim: VimConnectionInfo | None) -> Plan:
        """The steps of an accepted operation. A SlipwayError here ends it as ROLLED_BACK: nothing was touched."""
        ...

    def settle(self, connection: Connection, operation: Operation, journal: Sequence[StepRecord]) -> Operation:
        """Make the records say what the journal says, in the transaction in which the operation enters its state.

        Returns the operation with what it changed.
        """
        ...

    def announce(self, connection: Connection, operation: Operation) -> None:
        """Tell those who want to know that the operation enters its state, in the transaction in which it does."""
        ...

    async def connection(self, operation: Operation, vim: VimConnectionInfo | None) -> VimConnection:
        """The operation's VIM with its secrets in clear, as registered now."""
        ...

    async def machine(self, operation: Operation, machine_id: str) -> FoundMachine | None:
        """A machine that the record knew when the operation began."""
        ...

    async def port(self, operation: Operation, name: str) -> FoundPort | None:
        """A port without a machine that the record knew when the operation began."""
        ...

    async def package_file(self, operation: Operation, vnfd_id: str, path: str, digest: str) -> bytes:
        """A file of a package. StepError when it is not there, or is not the one with that digest."""
        ...

    async def package_content(self, operation: Operation, vnfd_id: str, path: str, digest: str) -> PackageContent:
        """The same for a file of any size, read in pieces. That it is another one shows while it is read."""
        ...

    async def decrypt_secrets(self, operation: Operation, document: Any) -> Any:
        """The document with values where references to secrets of the operation's instance were."""
        ...

    def encrypt_secrets(self, connection: Connection, operation: Operation, outcome: Outcome) -> Outcome:
        """The outcome as it may be stored: its secrets kept apart, references in their place."""
        ...


class FaultInjector(Protocol):
    """For tests: called before and after every step, "plan" and "settle", to end the process there.

    `edge` is "before", "worked" (done and not yet written down) or "after".
    """

    def __call__(self, edge: str, step_id: str, /) -> None: ...


class EngineObserver(Protocol):
    """Metrics, logs and traces: called on the event loop, and changes nothing."""

    def entered(self, operation: Operation) -> None:
        """The operation is in this state now, and that is on disk."""
        ...

    def operation(self, operation: Operation, *, begins: bool) -> AbstractContextManager[None]:
        """Around what this worker does of an operation. `begins`: nothing of it was planned before."""
        ...

    def step(self, operation: Operation, record: StepRecord) -> AbstractContextManager[Callable[[StepRecord], None]]:
        """Around the work of a step; what it gives is told the record when it is tried again and when it has ended."""
        ...


class NoObserver:
    """Observes nothing."""

    def entered(self, operation: Operation) -> None:
        pass

    @contextmanager
    def operation(self, operation: Operation, *, begins: bool) -> Iterator[None]:
        yield

    @contextmanager
    def step(self, operation: Operation, record: StepRecord) -> Iterator[Callable[[StepRecord], None]]:
        yield lambda record: None
