"""One claimed operation from where it stands to its next resting state: plan it, run it, settle it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection

from slipway.engine.interpreter import Interpreter
from slipway.engine.journal import Journal
from slipway.engine.seam import Boundary, Lifecycle, Unwatched, Watch
from slipway.model.action import Action
from slipway.model.errors import LeaseLost, ProblemDetails, SlipwayError
from slipway.model.journal import StepRecord, StepState, error_data
from slipway.model.operation import CancelMode, Event, Operation, State, after, entered
from slipway.model.plan import Plan
from slipway.store import operations, steps
from slipway.store.operations import Held
from slipway.store.rounds import DATABASE_AWAY

log = logging.getLogger(__name__)

T = TypeVar("T")

BROKEN_OFF = {StepState.RUNNING: StepState.FAILED, StepState.UNDOING: StepState.UNDO_FAILED}


class Run:
    """A worker's hold on one operation. `cancel` and `leave` may come from outside at any time."""

    def __init__(
        self,
        held: Held,
        actions: Mapping[str, Action[Any]],
        lifecycle: Lifecycle,
        journal: Journal,
        slots: asyncio.Semaphore,
        boundary: Boundary | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.held = held
        self._actions = actions
        self._lifecycle = lifecycle
        self._journal = journal
        self._slots = slots
        self._boundary = boundary
        self._watch = watch or Unwatched()
        self._entered: Operation | None = None  # the state that the write under way brings, if any
        self._interpreter: Interpreter | None = None
        self._working: asyncio.Task[Any] | None = None
        self._cancelled = held.operation.cancel_mode
        self._leaving = False

    def cancel(self, mode: CancelMode) -> None:
        self._cancelled = mode
        if self._interpreter:
            self._interpreter.stop()
        if self._working and self._breaks_off():
            self._working.cancel()

    def leave(self) -> None:
        """Begin nothing new and hand the operation back: this worker is going away."""
        self._leaving = True
        if self._interpreter:
            self._interpreter.stop()

    async def to_rest(self) -> None:
        """Until the operation ended, waits for a person, or was handed back. LeaseLost when it was taken."""
        try:
            await self._to_rest()
        except (LeaseLost, *DATABASE_AWAY):
            raise
        except Exception as error:  # an edge: a fault of ours must not leave an operation without a named state
            what = type(error).__name__
            log.exception("unexpected %s in operation %s", what, self.held.operation.id)
            await self._write(lambda c: self._given_up(c, what))

    async def _to_rest(self) -> None:
        records = await self._begin()
        if records is None:
            return
        self._at("after", "plan")
        operation = self.held.operation
        interpreter = self._interpreter = Interpreter(
            self.held, records, self._actions, self._lifecycle, self._journal, self._slots, self._boundary, self._watch
        )
        if self._leaving or self._cancelled:
            interpreter.stop()
        rolling_back = operation.operation_state is State.ROLLING_BACK
        finished = await self._breakable(interpreter.backward() if rolling_back else interpreter.forward())
        if finished:
            await self._settle(Event.SUCCEEDED)
        elif self._cancelled:
            await self._settle(Event.CANCELLED, f"Cancelled ({self._cancelled}). {interpreter.failure()}".strip())
        elif self._leaving and not interpreter.failure():
            await self._journal.write(lambda c: operations.release(c, operation.id, self.held.epoch))
        else:
            await self._settle(Event.BROKE, interpreter.failure())

    async def _begin(self) -> list[StepRecord] | None:
        """The journal, planned first where it has to be; None when that already ended the operation."""
        operation = self.held.operation
        if self.held.planned:
            return await self._journal.write(lambda c: steps.journal(c, operation.id))
        plan = await self._breakable(self._plan())
        if isinstance(plan, Plan):
            return await self._write(lambda c: self._store_plan(c, plan))
        if self._cancelled:
            await self._settle(Event.CANCELLED, self._cancel_told())
        else:
            # MODIFY_INFO begins in PROCESSING, so there it is a failure rather than a refusal.
            refused = Event.REFUSED if operation.operation_state is State.STARTING else Event.BROKE
            await self._settle(refused, plan)
        return None

    def _cancel_told(self) -> str:
        return f"Cancelled ({self._cancelled}) before anything was touched."

    async def _plan(self) -> Plan | str:
        try:
            return (await self._lifecycle.plan(self.held.operation, self.held.vim)).checked()
        except SlipwayError as error:
            return error.detail

    def _store_plan(self, connection: Connection, plan: Plan) -> list[StepRecord] | None:
        """From here on steps may run, so a cancel that came before ends the operation here."""
        held = operations.fenced(connection, self.held.operation.id, self.held.epoch)
        operation = held.operation
        self._cancelled = operation.cancel_mode or self._cancelled
        if operation.operation_state is State.STARTING:
            if self._cancelled:
                self._settled(connection, Event.CANCELLED, self._cancel_told())
                return None
            operation = entered(operation, after(operation.operation_state, Event.GRANTED))
            operations.save(connection, operation)
            self._lifecycle.announce(connection, operation)
            self._entered = operation
        operations.mark_planned(connection, operation.id)
        self.held = Held(operation, held.vim, True, held.epoch)
        return steps.write_plan(connection, operation.id, plan)

    async def _breakable(self, work: Any) -> Any:
        """Run work that a cancel may break off; None then."""
        if self._breaks_off():
            work.close()
            return None
        self._working = asyncio.create_task(work)
        try:
            return await self._working
        except asyncio.CancelledError:
            if not self._breaks_off():
                raise
            return None
        finally:
            self._working = None

    def _breaks_off(self) -> bool:
        """What a forceful cancel finds, and planning in any case: that touches nothing, and may wait for an NFVO."""
        return self._cancelled is CancelMode.FORCEFUL or (self._cancelled is not None and self._interpreter is None)

    async def _settle(self, event: Event, problem: str | None = None) -> None:
        self._at("before", "settle")
        await self._write(lambda c: self._settled(c, event, problem))
        self._at("after", "settle")

    async def _write(self, write: Callable[[Connection], T]) -> T:
        """Write, and tell the state that this brought once it is on disk."""
        self._entered = None
        written = await self._journal.write(write)
        if self._entered:
            self._watch.entered(self._entered)
        return written

    def _at(self, edge: str, what: str) -> None:
        if self._boundary:
            self._boundary(edge, what)

    def _settled(self, connection: Connection, event: Event, problem: str | None) -> Operation:
        held = operations.fenced(connection, self.held.operation.id, self.held.epoch)
        state = after(held.operation.operation_state, event)
        journal = _broken_off(connection, held.operation.id)
        error = _problem(held.operation, event, problem, journal) if problem else None
        operation = replace(entered(held.operation, state), error=error)
        operation = self._lifecycle.settle(connection, operation, journal)
        operations.save(connection, operation)
        self._lifecycle.announce(connection, operation)
        self._entered = operation
        return operation

    def _given_up(self, connection: Connection, what: str) -> None:
        """The last resort: the state alone, without the records that could not be settled."""
        held = operations.fenced(connection, self.held.operation.id, self.held.epoch)
        starting = held.operation.operation_state is State.STARTING
        state = after(held.operation.operation_state, Event.REFUSED if starting else Event.BROKE)
        error = ProblemDetails(
            status=500,
            title="Internal error",
            detail=f"Unexpected {what}. Look at the server's log; then retry or fail.",
        )
        self._entered = replace(entered(held.operation, state), error=error)
        operations.save(connection, self._entered)
        self._lifecycle.announce(connection, self._entered)


def _problem(operation: Operation, event: Event, detail: str, journal: Sequence[StepRecord]) -> ProblemDetails:
    """With what scripts left for the next try: now, or before if they have not run since."""
    before = operation.error.user_script_err_handling_data if operation.error else None
    return ProblemDetails(
        status=500,
        title=f"{operation.operation} {event}",
        detail=detail,
        user_script_err_handling_data=error_data(journal) or before,
    )


def _broken_off(connection: Connection, operation_id: str) -> list[StepRecord]:
    """The journal, where a step that was broken off in the middle says so."""
    journal = steps.journal(connection, operation_id)
    for position, record in enumerate(journal):
        if record.state in BROKEN_OFF:
            journal[position] = replace(
                record, state=BROKEN_OFF[record.state], error="Broken off by a forceful cancel."
            )
            steps.note(connection, operation_id, journal[position])
    return journal
