"""A bounded load from one process: keep-alive connections that send prepared requests as fast as they are answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

PATIENCE = 60.0
LARGEST_READ = 4 * 1024 * 1024


async def rate(host: str, port: int, requests: Sequence[bytes], *, clients: int, status: int) -> float:
    """Answered requests a second; every answer must have the status."""
    waiting = iter(requests)
    began = time.perf_counter()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(_client(host, port, waiting, status) for _ in range(clients)))
    return len(requests) / (time.perf_counter() - began)


async def _client(host: str, port: int, waiting: object, status: int) -> None:
    reader, writer = await asyncio.open_connection(host, port, limit=LARGEST_READ)
    try:
        for request in waiting:  # type: ignore[attr-defined]
            writer.write(request)
            await _answer(reader, status)
    finally:
        writer.close()


async def _answer(reader: asyncio.StreamReader, status: int) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if int(head[9:12]) != status:
        raise SystemExit(f"an answer was {head[:40]!r}, not {status}")
    lower = head.lower()
    at = lower.find(b"content-length:")
    if at >= 0:
        await reader.readexactly(int(lower[at + 15 : lower.index(b"\r", at)]))


def request(method: str, path: str, token: str, body: bytes = b"") -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: bench",
        f"X-Auth-Token: {token}",
        "Version: 2.0.0",
        "Accept: application/json",
        *(("Content-Type: application/json", f"Content-Length: {len(body)}") if body else ()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
