"""A server of streams on loopback that leaves none open.

Python 3.11 ends a server without waiting for its connections; one that is left to the garbage collector warns, and
warnings are errors: of whichever test runs at that moment.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@asynccontextmanager
async def stream_server(serve: Serve, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Its port. At the end connections that are open are cut."""
    served: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served[asyncio.create_task(serve(reader, writer))] = writer

    server = await asyncio.start_server(accept, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task, writer in served.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*served, *(writer.wait_closed() for writer in served.values()), return_exceptions=True)
        await server.wait_closed()
