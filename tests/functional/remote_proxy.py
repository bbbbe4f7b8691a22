"""A network that misbehaves: a proxy on 127.0.0.1 that can hang, go on, cut its connections and refuse new ones."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.stream_server import stream_server


class Proxy:
    def __init__(self, port: int) -> None:
        self._to = port
        self._flows = asyncio.Event()
        self._flows.set()
        self._left: int | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.accepted = 0
        self.refusing = False

    def hang(self) -> None:
        """Nothing passes any more; connections stay open."""
        self._flows.clear()

    def stop_after(self, size: int) -> None:
        """Hang as soon as this many bytes more have passed."""
        self._left = size

    def resume(self) -> None:
        self._left = None
        self._flows.set()

    def cut(self) -> None:
        """Break every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self.refusing:
            writer.transport.abort()
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, there_writer}
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(16 * 1024):
                await self._flows.wait()
                self._count(len(chunk))
                writer.write(chunk)
                await writer.drain()
        writer.close()

    def _count(self, size: int) -> None:
        if self._left is not None:
            self._left -= size
            if self._left <= 0:
                self.hang()

    async def end(self) -> None:
        self.cut()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        closed = (writer.wait_closed() for writer in self._writers)
        await asyncio.gather(*tasks, *closed, return_exceptions=True)


@asynccontextmanager
async def proxy_to(port: int, at: str = "127.0.0.1") -> AsyncIterator[Proxy]:
    proxy = Proxy(port)
    async with stream_server(proxy.serve, at) as proxy.port:
        try:
            yield proxy
        finally:
            await proxy.end()
