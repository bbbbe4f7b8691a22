"""Uvicorn in our event loop: it prints when it is ready, leaves signals to us, and has time limits.

A connection is limited before it is authenticated: in the bytes of a request's line and headers, and in the time they
take to arrive. Bodies are limited where they are read (api/request_body.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, ClassVar

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from slipway.model.errors import ProblemDetails

LARGEST_HEAD = 64 * 1024  # bytes of a request's line and headers
HEAD_SECONDS = 20.0  # for them to arrive
REST_SECONDS = 20.0  # for the rest of a body after the response


class HttpServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(config)
        self._ready = ready
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.ssl = self._tls  # ours: uvicorn's would ask a terminal for the passphrase of a key
        await super().startup(sockets)
        print(self._ready, flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class BoundedProtocol(HttpToolsProtocol):
    """With limits for the head of a request, which neither httptools nor uvicorn has."""

    head_seconds: ClassVar[float] = HEAD_SECONDS
    rest_seconds: ClassVar[float] = REST_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._pending = 0  # bytes since the last that were of a body: of a head, or of what stands around pieces
        self._in_head = False
        self._head_too_large = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._pending += len(data)
        super().data_received(data)
        if self._pending > LARGEST_HEAD:
            self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._pending = 0
        self._in_head = True
        self._wait(self.head_seconds)

    def on_headers_complete(self) -> None:
        self._wait(None)
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > LARGEST_HEAD:
            self._head_too_large = True
            raise ValueError  # which ends in send_400_response
        self._in_head = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._pending = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._pending = 0
        if self._is_answered():
            self._wait(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body and self.cycle.response_complete:
            self._wait(self.rest_seconds)

    def send_400_response(self, msg: str) -> None:
        if self._head_too_large:
            self._refuse_head()
        else:
            self._refuse(HTTPStatus.BAD_REQUEST, "The request is not valid HTTP/1.1.")

    def _wait(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait(self.head_seconds)  # the head is that of the next request; this one has its answer first
        else:
            detail = f"The request's line and headers did not arrive within {self.head_seconds:g} s."
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, detail)

    def _refuse_head(self) -> None:
        detail = f"The request's line and headers are larger than the {LARGEST_HEAD} bytes that are accepted."
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Close the connection; with a response when a request has begun and no other response is due."""
        if self._in_head and not self.transport.is_closing() and (self.cycle is None or self._is_answered()):
            body = msgspec.json.encode(ProblemDetails(status=status, title=status.phrase, detail=detail))
            head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/problem+json\r\n"
            head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
        self.transport.close()

    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete
