"""httpx leaves a socket open whose TLS handshake is cancelled. Here it is remembered until it stands, and closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Trace = Callable[[str, dict[str, Any]], Awaitable[None]]

OPENED = ("connection.connect_tcp.complete", "connection.connect_unix_socket.complete")
STANDS = ("connection.start_tls.complete", "http11.send_request_headers.started")  # the latter without TLS


@asynccontextmanager
async def closed_if_cancelled() -> AsyncIterator[Trace]:
    """What httpx is to tell the events of one request to, as its extension "trace"."""
    opening: list[Any] = []

    async def trace(event: str, info: dict[str, Any]) -> None:
        if event in OPENED:
            opening.append(info["return_value"])
        elif event in STANDS:
            opening.clear()

    try:
        yield trace
    finally:
        for stream in opening:
            await stream.aclose()
