"""A subscriber on loopback: it notes what it is told, and answers as it is told to."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from tests.stream_server import stream_server
from tests.unit.api.world import BASE_URL, World

V1, V2, PACKAGES = "/vnflcm/v1/subscriptions", "/vnflcm/v2/subscriptions", "/vnfpkgm/v1/subscriptions"
VERSION = {"Version": "2.0.0"}


class Subscriber:
    """`answers` are the statuses of the next POSTs, then 204. `silent`: it takes calls and never answers."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[int] = []
        self.silent = False
        self.calls = 0
        self.test_status = 204
        self.port = 0
        self.tokens = 0
        self.token: str | None = None  # instead of token-1, token-2, ...
        self.tokens_for: set[str] | None = None  # the passwords that get one; None: all
        self.scheme = "http"
        self.shown: list[tuple[str, str]] = []  # path, and the name in the certificate that was shown there
        self._news = asyncio.Condition()

    @property
    def uri(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/told"

    async def wait_for(self, count: int, seconds: float = 30) -> list[dict[str, Any]]:
        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(lambda: len(self.told) >= count)
        return self.told

    async def wait_for_calls(self, count: int, seconds: float = 30) -> None:
        async with asyncio.timeout(seconds), self._news:
            await self._news.wait_for(lambda: self.calls >= count)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                method, path, _ = line.decode().split()
                headers = {}
                while (text := (await reader.readline()).decode().strip()) != "":
                    name, _, value = text.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.shown.append((path, _name(writer.get_extra_info("peercert"))))
                status, answer = await self._answer(method, path, headers, body)
                head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\n\r\n"
                writer.write(head.encode() + answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if path == "/token":
            given = base64.b64decode(headers.get("authorization", "").removeprefix("Basic ")).decode()
            if self.tokens_for is not None and given.partition(":")[2] not in self.tokens_for:
                return 401, b"{}"
            self.tokens += 1
            token = f"token-{self.tokens}" if self.token is None else self.token
            return 200, msgspec.json.encode({"access_token": token, "expires_in": 3600})
        async with self._news:
            self.calls += 1
            self._news.notify_all()
        if self.silent:
            await asyncio.sleep(3600)
        if method == "GET":
            return self.test_status, b""
        status = self.answers.pop(0) if self.answers else 204
        if status == 204:
            async with self._news:
                self.told.append(msgspec.json.decode(body))
                self.headers.append(headers)
                self._news.notify_all()
        return status, b""


def _name(certificate: Any) -> str:
    subject = (certificate or {}).get("subject", ())
    return "".join(value for part in subject for key, value in part if key == "commonName")


@asynccontextmanager
async def a_subscriber(tls: ssl.SSLContext | None = None) -> AsyncIterator[Subscriber]:
    subscriber = Subscriber()
    subscriber.scheme = "https" if tls else "http"
    async with stream_server(subscriber.handle, tls=tls) as subscriber.port:
        yield subscriber


async def subscribe(world: World, path: str, subscriber: Subscriber, **more: Any) -> dict[str, Any]:
    headers = VERSION if path == V2 else {}
    answer = await world.call("POST", path, 201, json={"callbackUri": subscriber.uri, **more}, headers=headers)
    shown: dict[str, Any] = answer.json()
    assert answer.headers["location"] == shown["_links"]["self"]["href"] == f"{BASE_URL}{path}/{shown['id']}"
    return shown
