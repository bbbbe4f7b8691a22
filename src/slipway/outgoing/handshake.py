"""httpx leaves a socket open when its TLS handshake is cancelled; this closes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Trace = Callable[[str, dict[str, Any]], Awaitable[None]]

OPENED = ("connection.connect_tcp.complete", "connection.connect_unix_socket.complete")
ESTABLISHED = ("connection.start_tls.complete", "http11.send_request_headers.started")  # the latter without TLS


@asynccontextmanager
async def closed_if_cancelled() -> AsyncIterator[Trace]:
    """For the extension "trace" of one request by httpx."""
    opening: list[Any] = []

    async def trace(event: str, info: dict[str, Any]) -> None:
        if event in OPENED:
            opening.append(info["return_value"])
        elif event in ESTABLISHED:
            opening.clear()

    try:
        yield trace
    finally:
        for stream in opening:
            await stream.aclose()
