"""One watcher for all: the engine and the API say what happens, and it is counted, put into the log and traced."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol
from urllib.parse import urlsplit

from slipway.model.errors import SettingsError
from slipway.model.journal import StepRecord, StepState
from slipway.model.operation import Operation
from slipway.telemetry import exposition
from slipway.telemetry.course import within
from slipway.telemetry.numbers import Collector, Numbers

# A step that ended in no state: a forceful cancel, a lost lease, or the process was told to stop.
BROKEN_OFF = "broken_off"
OUTCOMES = {
    StepState.DONE: "done",
    StepState.FAILED: "failed",
    StepState.UNDONE: "undone",
    StepState.UNDO_FAILED: "undo_failed",
}

Tell = Callable[[StepRecord], None]

log = logging.getLogger("slipway.operations")


def outcome_of(record: StepRecord) -> str:
    return OUTCOMES.get(record.state, BROKEN_OFF)


class Tracer(Protocol):
    """What traces.py gives when traces are wanted."""

    def entered(self, operation: Operation) -> None: ...

    def operation(self, operation: Operation, *, begins: bool) -> AbstractContextManager[None]: ...

    def step(self, operation: Operation, record: StepRecord) -> AbstractContextManager[Tell]: ...

    def close(self) -> None: ...


class Telemetry:
    """`collectors` are asked at every scrape, by name; whoever knows a number that nobody counts adds one."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self.numbers = Numbers()
        self.collectors: dict[str, Collector] = {}
        self.listeners: list[Callable[[], None]] = []  # who want to know that some operation entered a state
        self._tracer = tracer

    def entered(self, operation: Operation) -> None:
        self.numbers.transitions.add(operation.operation, operation.operation_state)
        for listener in self.listeners:
            listener()
        if self._tracer:
            self._tracer.entered(operation)
        with within(instance=operation.vnf_instance_id, operation=operation.id):
            _log(operation)

    @contextmanager
    def operation(self, operation: Operation, *, begins: bool) -> Iterator[None]:
        traced = self._tracer.operation(operation, begins=begins) if self._tracer else nullcontext()
        with within(instance=operation.vnf_instance_id, operation=operation.id), traced:
            yield

    @contextmanager
    def step(self, operation: Operation, record: StepRecord) -> Iterator[Tell]:
        latest = record
        began = time.perf_counter()

        def tell(told: StepRecord) -> None:
            nonlocal latest
            latest = told
            if told.state not in OUTCOMES:
                self.numbers.retries.add(told.action)
            trace(told)

        traced = self._tracer.step(operation, record) if self._tracer else nullcontext(_untraced)
        try:
            with within(step=record.id), traced as trace:
                yield tell
        finally:
            self.numbers.steps.add(time.perf_counter() - began, record.action, outcome_of(latest))

    async def scrape(self) -> bytes:
        return await exposition.scrape(self.numbers, self.collectors)

    def close(self) -> None:
        if self._tracer:
            self._tracer.close()


def _log(operation: Operation) -> None:
    told = f": {operation.error.detail}" if operation.error else ""
    level = logging.WARNING if operation.error else logging.INFO
    log.log(level, "operation %s %s: %s%s", operation.id, operation.operation, operation.operation_state, told)


def _untraced(record: StepRecord) -> None:
    pass


def telemetry_for(traces_endpoint: str | None) -> Telemetry:
    """With traces where they are wanted; SettingsError when they can't be had."""
    if traces_endpoint is None:
        return Telemetry()
    parts = urlsplit(traces_endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            f"traces_endpoint: {traces_endpoint!r} is no URL. Give the collector's, as in http://127.0.0.1:4318/v1/traces."
        )
    try:
        from slipway.telemetry.traces import Traces
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise SettingsError(
            "traces_endpoint is set, but OpenTelemetry is not installed. "
            "Install it with `pip install 'slipway[traces]'`, or remove the setting."
        ) from None
    path = parts.path if parts.path.strip("/") else "/v1/traces"
    return Telemetry(Traces(parts._replace(path=path).geturl()))
