"""Runs the steps of a plan in their order, or undoes them in reverse order for a rollback.

A step begins when its start is on disk, and counts as done when its end is. A step that fails stops only what comes
after it; the rest goes on, so that a retry has only the failed nodes left to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.engine.interfaces import EngineObserver, FaultInjector, NoObserver, OperationHandler
from slipway.engine.journal_writer import JournalWriter
from slipway.engine.retry import run_with_retries
from slipway.model.action import Action, StepContext, VimConnection
from slipway.model.errors import StepError
from slipway.model.failure_groups import Failure, grouped, listed
from slipway.model.journal import UNTOUCHED, StepRecord, StepState
from slipway.model.machine import FoundMachine, FoundPort, Outcome
from slipway.model.package_content import PackageContent
from slipway.store import operations, steps
from slipway.store.operations import ClaimedOperation

CONNECTION_FRESH = 10.0  # seconds
MOST_CAUSES = 5  # that an operation's error tells


class PlanExecutor:
    """Runs the plan of one operation for as long as this worker holds it."""

    def __init__(
        self,
        claimed: ClaimedOperation,
        journal: list[StepRecord],
        actions: Mapping[str, Action[Any]],
        handler: OperationHandler,
        writes: JournalWriter,
        slots: asyncio.Semaphore,
        fault_injector: FaultInjector | None = None,
        observer: EngineObserver | None = None,
    ) -> None:
        self._claimed = claimed
        self._operation = claimed.operation
        self._records = {record.id: record for record in journal}
        self._actions = actions
        self._handler = handler
        self._writes = writes
        self._slots = slots
        self._fault_injector = fault_injector
        self._observer = observer or NoObserver()
        self._stopping = asyncio.Event()
        self.cancelled = False  # by a person, forcefully
        self._unsaved: set[asyncio.Future[None]] = set()
        # As the latest step left them; those that the record knew are added when they are asked for.
        self._machines: dict[str, FoundMachine] = {}
        self._recorded: set[str] = set()  # of those, whom the record was asked about
        self._ports: dict[str, FoundPort] = {}  # that no machine holds, by name
        for record in sorted(journal, key=lambda record: record.ended_at or 0.0):
            self._remember(record)
        self._connection: VimConnection | None = None
        self._connection_until = 0.0

    @property
    def journal(self) -> list[StepRecord]:
        return sorted(self._records.values(), key=lambda record: record.position)

    async def connection(self) -> VimConnection:
        """The operation's VIM, looked up again now and then: credentials change while operations run."""
        now = time.monotonic()
        if self._connection is None or now >= self._connection_until:
            self._connection = await self._handler.connection(self._operation, self._claimed.vim)
            self._connection_until = now + CONNECTION_FRESH
        return self._connection

    async def machine(self, machine_id: str) -> FoundMachine:
        found = self._machines.get(machine_id)
        if found is None or (found.host_key is None and machine_id not in self._recorded):
            known = await self._handler.machine(self._operation, machine_id)
            found = self._machines.get(machine_id, known)
            if found is None:
                raise StepError(f"No step made machine {machine_id}, and the record does not know it.")
            self._recorded.add(machine_id)
            self._machines[machine_id] = _with_key_of(known, found)
        return self._machines[machine_id]

    async def port(self, name: str) -> FoundPort:
        if name not in self._ports:
            known = await self._handler.port(self._operation, name)
            if known is None:
                raise StepError(f"The VIM has no port {name!r} beside those of machines.")
            self._ports.setdefault(name, known)
        return self._ports[name]

    def stop(self, *, cancelled: bool = False) -> None:
        """Begin no further step. Those under way go on to their end, unless a person has `cancelled` them."""
        self.cancelled = self.cancelled or cancelled
        self._stopping.set()

    async def execute(self) -> bool:
        """Run all steps that are not done. True when all are."""
        await self._run_graph(
            {r.id: frozenset(r.after) for r in self._records.values()},
            finished={r.id for r in self._records.values() if r.state is StepState.DONE},
            work=self._do,
        )
        return all(record.state is StepState.DONE for record in self._records.values())

    async def roll_back(self) -> bool:
        """Undo all steps that were begun, newest first. True when all are undone."""
        followers: dict[str, set[str]] = {name: set() for name in self._records}
        for record in self._records.values():
            for before in record.after:
                followers[before].add(record.id)
        await self._run_graph(
            {name: frozenset(names) for name, names in followers.items()},
            finished={r.id for r in self._records.values() if r.state in UNTOUCHED},
            work=self._undo,
        )
        return all(record.state in UNTOUCHED for record in self._records.values())

    async def _run_graph(
        self, order: Mapping[str, frozenset[str]], finished: set[str], work: Callable[[StepRecord], Awaitable[bool]]
    ) -> None:
        """Run the steps that are not finished, each once all before it are, as many at once as there are slots."""
        waiting = {name: set(before) - finished for name, before in order.items() if name not in finished}
        running: dict[asyncio.Task[bool], str] = {}
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            while True:
                if not self._stopping.is_set():
                    for name in [name for name, before in waiting.items() if not before]:
                        del waiting[name]
                        running[asyncio.create_task(self._in_slot(self._records[name], work), name=name)] = name
                if not running:
                    break
                done, _ = await asyncio.wait({*running, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if stopped in done:
                    done = (await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED))[0]
                for task in done:
                    name = running.pop(task)
                    if task.result():
                        for before in waiting.values():
                            before.discard(name)
            await asyncio.gather(*self._unsaved)
        finally:
            for task in (stopped, *running):
                task.cancel()
            await asyncio.gather(stopped, *running, *self._unsaved, return_exceptions=True)

    async def _in_slot(self, record: StepRecord, work: Callable[[StepRecord], Awaitable[bool]]) -> bool:
        async with self._slots:
            return False if self._stopping.is_set() else await work(record)

    async def _do(self, record: StepRecord) -> bool:
        action = self._action(record)
        return await self._run(record, action, action.run, StepState.RUNNING, StepState.DONE, StepState.FAILED)

    async def _undo(self, record: StepRecord) -> bool:
        action = self._action(record)
        function = action.undo or _nothing_to_undo
        return await self._run(record, action, function, StepState.UNDOING, StepState.UNDONE, StepState.UNDO_FAILED)

    async def _run(
        self,
        record: StepRecord,
        action: Action[Any],
        function: Callable[[Any, StepContext], Awaitable[Outcome]],
        doing: StepState,
        done: StepState,
        failed: StepState,
    ) -> bool:
        began = replace(record, state=doing, attempt=record.attempt + 1, started_at=time.time(), ended_at=None)
        await self._save(began)
        self._at("before", record)

        limit = action.timeout if record.timeout is None else record.timeout
        with self._observer.step(self._operation, began) as tell:

            async def tried(number: int, error: StepError) -> None:
                again = replace(began, attempt=record.attempt + number + 1, error=error.detail)
                tell(again)
                await self._save(again)

            try:
                outcome = await run_with_retries(action, function, record.args, limit, _Context(self, record.id), tried)
                latest = self._records[record.id]
                ended = replace(latest, state=done, ended_at=time.time(), error=None, outcome=outcome, progress=None)
            except StepError as error:
                latest = self._records[record.id]
                ended = replace(latest, state=failed, ended_at=time.time(), error=error.detail, progress=None)
                if error.data:
                    ended = replace(ended, outcome=replace(latest.outcome or Outcome(), data=error.data))
            tell(ended)
        self._at("worked", record)
        saved = self._save(ended)
        if self._fault_injector:
            await saved
            self._at("after", record)
        # Not waited for: the start of whatever comes next is written behind it, most often in the same transaction.
        return ended.state is done

    def _save(self, record: StepRecord) -> asyncio.Future[None]:
        self._records[record.id] = record
        self._remember(record)
        saved = self._writes.write(partial(self._note, record=record))
        self._unsaved.add(saved)
        saved.add_done_callback(self._saved)
        return saved

    def _note(self, connection: Connection, record: StepRecord) -> None:
        operations.fence(connection, self._operation.id, self._claimed.epoch)
        if record.outcome is not None:
            record = replace(record, outcome=self._handler.encrypt_secrets(connection, self._operation, record.outcome))
        steps.note(connection, self._operation.id, record)

    def _remember(self, record: StepRecord) -> None:
        for machine in record.outcome.machines if record.outcome else ():
            self._machines[machine.id] = _with_key_of(self._machines.get(machine.id), machine)
        for port in record.outcome.ports if record.outcome else ():
            self._ports[port.name] = port

    def _saved(self, saved: asyncio.Future[None]) -> None:
        # A failed write stays in the set, so that the walk ends with its error.
        if not saved.cancelled() and saved.exception() is None:
            self._unsaved.discard(saved)
        else:
            self._stopping.set()

    def _at(self, edge: str, record: StepRecord) -> None:
        if self._fault_injector:
            self._fault_injector(edge, record.id)

    def _action(self, record: StepRecord) -> Action[Any]:
        return self._actions[record.action]

    def failure(self) -> str:
        """All that went wrong, for a person: which steps, on which nodes, what came back. The same cause once."""
        broken = {r.id: r for r in self.journal if r.error and r.state is not StepState.DONE}
        groups = grouped(Failure(r.id, f"{r.state}: {r.error}", r.nodes) for r in broken.values())
        told = [_describe_group([broken[failure.who] for failure in group]) for group in groups[:MOST_CAUSES]]
        more = sum(len(group) for group in groups[MOST_CAUSES:])
        return " ".join([*told, *([f"And {more} more steps."] if more else [])])


def _describe_group(records: Sequence[StepRecord]) -> str:
    """One sentence for steps that failed with the same error."""
    first, *others = records
    where = f" on {listed(first.nodes)}" if first.nodes else ""
    undoing = "Undoing step" if first.state is StepState.UNDO_FAILED else "Step"
    told = f"{undoing} '{first.id}'{where} failed (attempt {first.attempt}): {first.error}"
    return f"{told} The same on {listed(_place_of(other) for other in others)}." if others else told


def _place_of(record: StepRecord) -> str:
    return listed(record.nodes) if record.nodes else repr(record.id)


async def _nothing_to_undo(args: Any, context: StepContext) -> Outcome:
    return Outcome()


class _Context:
    """A step's view of the operation it belongs to."""

    def __init__(self, executor: PlanExecutor, step_id: str) -> None:
        self._executor, self._step_id = executor, step_id

    @property
    def operation_id(self) -> str:
        return self._executor._operation.id

    @property
    def instance_id(self) -> str:
        return self._executor._operation.vnf_instance_id

    @property
    def cancelled(self) -> bool:
        return self._executor.cancelled

    async def connection(self) -> VimConnection:
        return await self._executor.connection()

    async def machine(self, machine_id: str) -> FoundMachine:
        return await self._executor.machine(machine_id)

    async def port(self, name: str) -> FoundPort:
        return await self._executor.port(name)

    async def package_file(self, vnfd_id: str, path: str, digest: str) -> bytes:
        return await self._executor._handler.package_file(self._executor._operation, vnfd_id, path, digest)

    async def package_content(self, vnfd_id: str, path: str, digest: str) -> PackageContent:
        return await self._executor._handler.package_content(self._executor._operation, vnfd_id, path, digest)

    async def decrypt_secrets(self, document: Any) -> Any:
        return await self._executor._handler.decrypt_secrets(self._executor._operation, document)

    def arguments(self, step_id: str) -> dict[str, Any]:
        record = self._executor._records.get(step_id)
        if record is None:
            raise StepError(f"The plan has no step {step_id!r} to go on from.")
        return record.args

    def outcome(self, step_id: str) -> Outcome | None:
        record = self._executor._records.get(step_id)
        return record.outcome if record else None

    def progress(self, text: str) -> None:
        self._executor._save(replace(self._executor._records[self._step_id], progress=text))


def _with_key_of(known: FoundMachine | None, machine: FoundMachine) -> FoundMachine:
    return machine.with_learnt_key(known.resource_id, known.host_key) if known else machine
