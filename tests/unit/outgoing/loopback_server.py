"""A real HTTP server on loopback whose answers a test writes, with TLS if it has a certificate."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from tests.stream_server import stream_server


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    connection: int = 0  # which one it came on


@dataclass(frozen=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def document(body: object, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"Content-Type": "application/json", **named}, json.dumps(body).encode())


Handler = Callable[[Asked], Answer | Awaitable[Answer]]


@dataclass
class LoopbackServer:
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    scheme: str = "http"

    def url(self, path: str = "", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


@asynccontextmanager
async def serving(
    handler: Handler, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[LoopbackServer]:
    known = LoopbackServer(scheme="https" if tls else "http")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        known.connections += 1
        number = known.connections
        try:
            while (request := await _read(reader, number)) is not None:
                known.asked.append(request)
                answer = handler(request)
                _write(writer, answer if isinstance(answer, Answer) else await answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async with stream_server(serve, host, tls) as known.port:
        yield known


async def _read(reader: asyncio.StreamReader, connection: int) -> Asked | None:
    first = (await reader.readline()).decode().split()
    if len(first) != 3:
        return None
    headers: dict[str, str] = {}
    while line := (await reader.readline()).decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(first[0], first[1], headers, body, connection)


def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    headers = {"Content-Length": str(len(answer.body)), **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + answer.body)
