"""Runs one claimed operation until it ends, fails or is handed back: plan it, run its steps, settle the records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.engine.interfaces import EngineObserver, FaultInjector, NoObserver, OperationHandler
from slipway.engine.journal_writer import JournalWriter
from slipway.engine.plan_executor import PlanExecutor
from slipway.model.action import Action
from slipway.model.errors import LeaseLost, ProblemDetails, SlipwayError
from slipway.model.journal import StepRecord, StepState, error_data
from slipway.model.operation import CancelMode, Event, Operation, State, after, entered
from slipway.model.plan import Plan
from slipway.store import operations, steps
from slipway.store.operations import ClaimedOperation
from slipway.store.poll_loop import DATABASE_UNAVAILABLE

log = logging.getLogger(__name__)

T = TypeVar("T")

INTERRUPTED = {StepState.RUNNING: StepState.FAILED, StepState.UNDOING: StepState.UNDO_FAILED}


class OperationRun:
    """One operation in one worker. `cancel` and `stop` may be called at any time."""

    def __init__(
        self,
        claimed: ClaimedOperation,
        actions: Mapping[str, Action[Any]],
        handler: OperationHandler,
        journal: JournalWriter,
        slots: asyncio.Semaphore,
        fault_injector: FaultInjector | None = None,
        observer: EngineObserver | None = None,
    ) -> None:
        self.claimed = claimed
        self._actions = actions
        self._handler = handler
        self._journal = journal
        self._slots = slots
        self._fault_injector = fault_injector
        self._observer = observer or NoObserver()
        self._entered: Operation | None = None  # the state that the write under way brings, if any
        self._executor: PlanExecutor | None = None
        self._working: asyncio.Task[Any] | None = None
        self._cancelled = claimed.operation.cancel_mode
        self._leaving = False

    def cancel(self, mode: CancelMode) -> None:
        self._cancelled = mode
        if self._executor:
            self._executor.stop(cancelled=mode is CancelMode.FORCEFUL)
        # Once: another cancel would break off what steps do to clean up after the first.
        if self._working and self._must_cancel() and not self._working.cancelling():
            self._working.cancel()

    def stop(self) -> None:
        """Start no further step and release the operation: this worker shuts down."""
        self._leaving = True
        if self._executor:
            self._executor.stop()

    async def run_until_rest(self) -> None:
        """Until the operation ended, waits for a person, or was handed back. LeaseLost when it was taken."""
        try:
            await self._run_until_rest()
        except (LeaseLost, *DATABASE_UNAVAILABLE):
            raise
        except Exception as error:  # an edge: a fault of ours must not leave an operation without a named state
            what = type(error).__name__
            log.exception("unexpected %s in operation %s", what, self.claimed.operation.id)
            await self._write(lambda c: self._store_unexpected_failure(c, what))

    async def _run_until_rest(self) -> None:
        records = await self._begin()
        if records is None:
            return
        self._at("after", "plan")
        operation = self.claimed.operation
        executor = self._executor = PlanExecutor(
            self.claimed,
            records,
            self._actions,
            self._handler,
            self._journal,
            self._slots,
            self._fault_injector,
            self._observer,
        )
        if self._leaving or self._cancelled:
            executor.stop()
        rolling_back = operation.operation_state is State.ROLLING_BACK
        finished = await self._cancellable(executor.roll_back() if rolling_back else executor.execute())
        if finished:
            await self._settle(Event.SUCCEEDED)
        elif self._cancelled:
            await self._settle(Event.CANCELLED, f"Cancelled ({self._cancelled}). {executor.failure()}".strip())
        elif self._leaving and not executor.failure():
            await self._journal.write(lambda c: operations.release(c, operation.id, self.claimed.epoch))
        else:
            await self._settle(Event.STEP_FAILED, executor.failure())

    async def _begin(self) -> list[StepRecord] | None:
        """The journal, planned first where it has to be; None when that already ended the operation."""
        operation = self.claimed.operation
        # What could not even be planned has done nothing that a rollback would have to plan for.
        if self.claimed.planned or operation.operation_state is State.ROLLING_BACK:
            return await self._journal.write(lambda c: steps.journal(c, operation.id))
        plan = await self._cancellable(self._plan())
        if isinstance(plan, Plan):
            return await self._write(lambda c: self._store_plan(c, plan))
        if self._cancelled:
            await self._settle(Event.CANCELLED, self._cancelled_before_start())
        else:
            # MODIFY_INFO begins in PROCESSING, so there it is a failure rather than a refusal.
            refused = Event.REFUSED if operation.operation_state is State.STARTING else Event.STEP_FAILED
            await self._settle(refused, plan)
        return None

    def _cancelled_before_start(self) -> str:
        return f"Cancelled ({self._cancelled}) before anything was touched."

    async def _plan(self) -> Plan | str:
        try:
            return (await self._handler.plan(self.claimed.operation, self.claimed.vim)).checked()
        except SlipwayError as error:
            return error.detail

    def _store_plan(self, connection: Connection, plan: Plan) -> list[StepRecord] | None:
        """From here on steps may run, so a cancel that came before ends the operation here."""
        claimed = operations.fenced(connection, self.claimed.operation.id, self.claimed.epoch)
        operation = claimed.operation
        self._cancelled = operation.cancel_mode or self._cancelled
        if operation.operation_state is State.STARTING:
            if self._cancelled:
                self._settled(connection, Event.CANCELLED, self._cancelled_before_start())
                return None
            operation = entered(operation, after(operation.operation_state, Event.GRANTED))
            operations.save(connection, operation)
            self._handler.announce(connection, operation)
            self._entered = operation
        operations.mark_planned(connection, operation.id)
        self.claimed = ClaimedOperation(operation, claimed.vim, True, claimed.epoch)
        return steps.write_plan(connection, operation.id, plan)

    async def _cancellable(self, work: Any) -> Any:
        """Run work that a cancel may interrupt; None then."""
        if self._must_cancel():
            work.close()
            return None
        self._working = asyncio.create_task(work)
        try:
            return await self._working
        except asyncio.CancelledError:
            if not self._must_cancel():
                raise
            return None
        finally:
            self._working = None

    def _must_cancel(self) -> bool:
        """Steps are interrupted by a forceful cancel, planning by any: it touches nothing, and may wait for an NFVO."""
        return self._cancelled is CancelMode.FORCEFUL or (self._cancelled is not None and self._executor is None)

    async def _settle(self, event: Event, problem: str | None = None) -> None:
        self._at("before", "settle")
        await self._write(lambda c: self._settled(c, event, problem))
        self._at("after", "settle")

    async def _write(self, write: Callable[[Connection], T]) -> T:
        """Write, and tell the state that this brought once it is on disk."""
        self._entered = None
        written = await self._journal.write(write)
        if self._entered:
            self._observer.entered(self._entered)
        return written

    def _at(self, edge: str, what: str) -> None:
        if self._fault_injector:
            self._fault_injector(edge, what)

    def _settled(self, connection: Connection, event: Event, problem: str | None) -> Operation:
        claimed = operations.fenced(connection, self.claimed.operation.id, self.claimed.epoch)
        state = after(claimed.operation.operation_state, event)
        journal = _with_interrupted_steps(connection, claimed.operation.id)
        error = _problem(claimed.operation, event, problem, journal) if problem else None
        operation = replace(entered(claimed.operation, state), error=error)
        operation = self._handler.settle(connection, operation, journal)
        operations.save(connection, operation)
        self._handler.announce(connection, operation)
        self._entered = operation
        return operation

    def _store_unexpected_failure(self, connection: Connection, what: str) -> None:
        """The last resort: the state alone, without the records that could not be settled."""
        claimed = operations.fenced(connection, self.claimed.operation.id, self.claimed.epoch)
        starting = claimed.operation.operation_state is State.STARTING
        state = after(claimed.operation.operation_state, Event.REFUSED if starting else Event.STEP_FAILED)
        error = ProblemDetails(
            status=500,
            title="Internal error",
            detail=f"Unexpected {what}. Look at the server's log; then retry or fail.",
        )
        self._entered = replace(entered(claimed.operation, state), error=error)
        operations.save(connection, self._entered)
        self._handler.announce(connection, self._entered)


def _problem(operation: Operation, event: Event, detail: str, journal: Sequence[StepRecord]) -> ProblemDetails:
    """With what scripts left for the next try: now, or before if they have not run since."""
    before = operation.error.user_script_err_handling_data if operation.error else None
    return ProblemDetails(
        status=500,
        title=f"{operation.operation} {event}",
        detail=detail,
        user_script_err_handling_data=error_data(journal) or before,
    )


def _with_interrupted_steps(connection: Connection, operation_id: str) -> list[StepRecord]:
    """The journal, in which steps that a cancel has interrupted are failed."""
    journal = steps.journal(connection, operation_id)
    for position, record in enumerate(journal):
        if record.state in INTERRUPTED:
            journal[position] = replace(record, state=INTERRUPTED[record.state], error="Stopped by a forceful cancel.")
            steps.note(connection, operation_id, journal[position])
    return journal
