"""A way to an API server that can be cut: connections are passed on, or refused and broken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from slipway.kube.credentials import Credentials


class Way:
    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._target = (parts.hostname or "", parts.port or 443)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open = set[asyncio.StreamWriter]()
        self._used = asyncio.Event()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def until_used(self) -> None:
        await asyncio.wait_for(self._used.wait(), 30)

    async def close(self) -> None:
        """Whoever is connected is cut off, and nobody gets through any more."""
        if self._server is None:
            return
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await asyncio.sleep(0)
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._used.set()
        there, back = await asyncio.open_connection(*self._target)
        self._open |= {writer, back}
        try:
            with suppress(OSError):
                await asyncio.gather(_pass(reader, back), _pass(there, writer))
        finally:
            self._open -= {writer, back}
            for end in (writer, back):
                end.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(1 << 16):
        writer.write(piece)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def a_way_to(administrator: Credentials) -> AsyncIterator[Way]:
    way = Way(administrator.server)
    await way.open()
    try:
        yield way
    finally:
        await way.close()
