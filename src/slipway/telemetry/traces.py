"""OpenTelemetry: a span for what one process does of an operation, and below it one for each step.

An operation's trace has the operation's id, so that it is found by it, and so that the parts of several processes, of a
retry or a rollback come together. Imported only when traces are configured; its packages are the extra `traces`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from uuid import UUID

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from slipway import __version__
from slipway.model.journal import StepRecord
from slipway.model.operation import Operation, State
from slipway.telemetry.logs import TRACEPARENT
from slipway.telemetry.telemetry import OUTCOMES, ReportStep, outcome_of

SEND_SECONDS = 5.0  # for one batch, with its retries
SHUTDOWN_SECONDS = 3.0  # at the end of the process
MOST_REQUESTS = 1000

_FAILED = frozenset({State.FAILED_TEMP, State.FAILED})
_first: ContextVar[UUID | None] = ContextVar("operation whose trace begins", default=None)


class Traces:
    def __init__(self, endpoint: str) -> None:
        self._exporter = OTLPSpanExporter(endpoint, timeout=SEND_SECONDS)
        resource = Resource.create({"service.name": "slipway", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, id_generator=_Ids(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("slipway", __version__)
        # Which request asked for an operation, until it begins here; it may as well begin in another process.
        self._asked: OrderedDict[str, SpanContext] = OrderedDict()

    def entered(self, operation: Operation) -> None:
        span = trace.get_current_span()
        if span.is_recording():
            _set_state(span, operation)
        elif caller := TRACEPARENT.get():
            self._ask(operation, caller)

    def _ask(self, operation: Operation, caller: str) -> None:
        """In the caller's own trace: what it asked for, and where to find what came of it."""
        context = TraceContextTextMapPropagator().extract({"traceparent": caller}, context=Context())
        if not trace.get_current_span(context).get_span_context().is_valid:
            return
        name = f"{operation.operation} {operation.operation_state}"
        links = [Link(_trace_of(operation))]
        span = self._tracer.start_span(name, context, trace.SpanKind.PRODUCER, _about(operation), links)
        span.end()
        self._asked[operation.id] = span.get_span_context()
        while len(self._asked) > MOST_REQUESTS:
            self._asked.popitem(last=False)

    @contextmanager
    def operation(self, operation: Operation, *, begins: bool) -> Iterator[None]:
        asked = self._asked.pop(operation.id, None)
        links = [Link(asked)] if asked else []
        if begins:
            context, token = Context(), _first.set(UUID(operation.id))
        else:
            # Not the first part of it: below the one that was, which may have been lost with its process.
            context, token = trace.set_span_in_context(trace.NonRecordingSpan(_trace_of(operation)), Context()), None
        try:
            span = self._tracer.start_span(
                str(operation.operation), context, trace.SpanKind.CONSUMER, _about(operation), links
            )
        finally:
            if token:
                _first.reset(token)
        with trace.use_span(span, end_on_exit=True, record_exception=False):
            yield

    @contextmanager
    def step(self, operation: Operation, record: StepRecord) -> Iterator[ReportStep]:
        attributes: dict[str, str | Sequence[str]] = {
            **_about(operation),
            "slipway.step.id": record.id,
            "slipway.action": record.action,
            "slipway.nodes": record.nodes,
        }
        span = self._tracer.start_span(record.action, attributes=attributes)
        latest = record

        def report(attempt: StepRecord) -> None:
            nonlocal latest
            latest = attempt
            if attempt.state not in OUTCOMES:
                span.add_event("retry", {"slipway.attempt": attempt.attempt, "slipway.error": attempt.error or ""})

        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield report
        finally:
            _set_outcome(span, latest)
            span.end()

    def close(self) -> None:
        """Send the spans that are left, within SHUTDOWN_SECONDS."""
        timer = threading.Timer(SHUTDOWN_SECONDS, self._exporter.shutdown)
        timer.start()
        self._provider.shutdown()
        timer.cancel()


class _Ids(RandomIdGenerator):
    """Random, but for the first span of an operation's trace: its ids are made from the operation's."""

    def generate_trace_id(self) -> int:
        operation = _first.get()
        return operation.int if operation else super().generate_trace_id()

    def generate_span_id(self) -> int:
        operation = _first.get()
        return _span_id(operation) if operation else super().generate_span_id()


def _span_id(operation: UUID) -> int:
    return operation.int & 0xFFFF_FFFF_FFFF_FFFF


def _trace_of(operation: Operation) -> SpanContext:
    number = UUID(operation.id)
    return SpanContext(number.int, _span_id(number), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _about(operation: Operation) -> dict[str, str]:
    return {
        "slipway.instance.id": operation.vnf_instance_id,
        "slipway.operation.id": operation.id,
        "slipway.operation.type": operation.operation.value,
    }


def _set_state(span: Span, operation: Operation) -> None:
    span.set_attribute("slipway.operation.state", operation.operation_state.value)
    if operation.operation_state in _FAILED or operation.error:
        span.set_status(Status(StatusCode.ERROR, operation.error.detail if operation.error else None))


def _set_outcome(span: Span, record: StepRecord) -> None:
    outcome = outcome_of(record)
    span.set_attributes({"slipway.attempt": record.attempt, "slipway.outcome": outcome})
    if record.error and record.state in OUTCOMES:
        span.set_status(Status(StatusCode.ERROR, record.error))
    elif record.state not in OUTCOMES:
        span.set_status(Status(StatusCode.ERROR, "Broken off."))
