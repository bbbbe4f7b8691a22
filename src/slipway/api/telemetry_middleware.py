"""Counts requests, gives each an id, and puts the id into the log context. Around the whole application."""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import Any

from prometheus_client import Counter, Histogram

from slipway.telemetry.logs import LOG_CONTEXT, TRACEPARENT
from slipway.telemetry.metrics import Metrics

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_ROUTE = "(none)"
REQUEST_ID = b"x-request-id"

log = logging.getLogger(__name__)
_PLAIN = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


class TelemetryMiddleware:
    """An ASGI application around another."""

    def __init__(self, app: Any, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._series: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}  # `labels` takes 2 µs each

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = _set_context(scope["headers"])
        status = 0

        async def send_with_id(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (REQUEST_ID, request_id)]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            self._count(scope, status, time.perf_counter() - began)

    def _count(self, scope: Any, status: int, seconds: float) -> None:
        method: str = scope["method"] if scope["method"] in METHODS else "other"
        route: str = scope.get("path_template") or NO_ROUTE
        labels = (route, method, f"{status // 100}xx" if status else "none")
        if (series := self._series.get(labels)) is None:
            durations = self._metrics.request_seconds.labels(route, method)
            series = self._series[labels] = self._metrics.requests.labels(*labels), durations
        series[0].inc()
        series[1].observe(seconds)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s %s %s in %.1f ms", scope["method"], scope["path"], status, seconds * 1000)


def _set_context(headers: list[tuple[bytes, bytes]]) -> bytes:
    """The request's id: the caller's where it is short and plain, else a new one. The log has it from here on.

    Each request is a task of its own, so nothing has to be put back afterwards.
    """
    request_id = b""
    for name, value in headers:
        if name == REQUEST_ID and _PLAIN.fullmatch(value):
            request_id = value
        elif name == b"traceparent":
            TRACEPARENT.set(value.decode("latin-1"))
    if not request_id:
        request_id = secrets.token_hex(8).encode()
    LOG_CONTEXT.set({"request": request_id.decode()})
    return request_id
