"""Observes operations and steps for the engine: counts, logs and traces them."""

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
from slipway.telemetry.logs import log_context
from slipway.telemetry.metrics import Collector, Metrics

# A step that ended in no state: a forceful cancel, a lost lease, or the process was told to stop.
BROKEN_OFF = "broken_off"
OUTCOMES = {
    StepState.DONE: "done",
    StepState.FAILED: "failed",
    StepState.UNDONE: "undone",
    StepState.UNDO_FAILED: "undo_failed",
}

ReportStep = Callable[[StepRecord], None]  # of each attempt at a step

log = logging.getLogger("slipway.operations")


def outcome_of(record: StepRecord) -> str:
    return OUTCOMES.get(record.state, BROKEN_OFF)


class Tracer(Protocol):
    """`traces.Traces`, where traces are configured."""

    def entered(self, operation: Operation) -> None: ...

    def operation(self, operation: Operation, *, begins: bool) -> AbstractContextManager[None]: ...

    def step(self, operation: Operation, record: StepRecord) -> AbstractContextManager[ReportStep]: ...

    def close(self) -> None: ...


class Telemetry:
    """`collectors` give gauges at every scrape, by name."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self.metrics = Metrics()
        self.collectors: dict[str, Collector] = {}
        self.listeners: list[Callable[[], None]] = []  # called when an operation has entered a state
        self._tracer = tracer

    def entered(self, operation: Operation) -> None:
        self.metrics.transitions.labels(operation.operation, operation.operation_state).inc()
        for listener in self.listeners:
            listener()
        if self._tracer:
            self._tracer.entered(operation)
        with log_context(instance=operation.vnf_instance_id, operation=operation.id):
            _log(operation)

    @contextmanager
    def operation(self, operation: Operation, *, begins: bool) -> Iterator[None]:
        traced = self._tracer.operation(operation, begins=begins) if self._tracer else nullcontext()
        with log_context(instance=operation.vnf_instance_id, operation=operation.id), traced:
            yield

    @contextmanager
    def step(self, operation: Operation, record: StepRecord) -> Iterator[ReportStep]:
        latest = record
        began = time.perf_counter()

        def report(attempt: StepRecord) -> None:
            nonlocal latest
            latest = attempt
            if attempt.state not in OUTCOMES:
                self.metrics.retries.labels(attempt.action).inc()
            trace(attempt)

        traced = self._tracer.step(operation, record) if self._tracer else nullcontext(_untraced)
        try:
            with log_context(step=record.id), traced as trace:
                yield report
        finally:
            self.metrics.step_seconds.labels(record.action, outcome_of(latest)).observe(time.perf_counter() - began)

    async def scrape(self) -> bytes:
        return await self.metrics.scrape(self.collectors)

    def close(self) -> None:
        if self._tracer:
            self._tracer.close()


def _log(operation: Operation) -> None:
    reason = f": {operation.error.detail}" if operation.error else ""
    level = logging.WARNING if operation.error else logging.INFO
    log.log(level, "operation %s %s: %s%s", operation.id, operation.operation, operation.operation_state, reason)


def _untraced(record: StepRecord) -> None:
    pass


def telemetry_for(traces_endpoint: str | None) -> Telemetry:
    """With traces where they are configured; SettingsError when they are not possible."""
    if traces_endpoint is None:
        return Telemetry()
    parts = urlsplit(traces_endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            f"traces_endpoint: {traces_endpoint!r} is not a URL. Give the collector's, as in http://127.0.0.1:4318/v1/traces."
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
