"""A proxy on loopback by which Helm reaches the API server of its VIM, and nothing else.

Helm would look up the server's name by itself. Here the guard does, and the connection goes to an address that it has
checked (outgoing/guard.py). TLS is between Helm and the server; whoever else finds the proxy lacks its password.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from secrets import token_urlsafe
from urllib.parse import urlsplit

from slipway.model.errors import OutgoingRequestError
from slipway.outgoing.addresses import Address
from slipway.outgoing.guard import Guard

USER = "slipway"
REQUEST_SECONDS = 10.0
CONNECT_SECONDS = 20.0
PIECE = 65536


@asynccontextmanager
async def guarded_proxy(guard: Guard, server: str) -> AsyncIterator[str]:
    """Its URL. OutgoingRequestError when the server may not be asked."""
    await guard.check(server)
    password, open_ = token_urlsafe(24), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _serve(guard, server, password, reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # Helm sees that the connection is over, and says so
        finally:
            await _closed(writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Not a coroutine, whose task asyncio would look after: it takes one that is cancelled for a fault."""
        task = asyncio.create_task(serve(reader, writer))
        open_.add(task)
        task.add_done_callback(open_.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, limit=PIECE)
    try:
        yield f"http://{USER}:{password}@127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        for task in open_:
            task.cancel()
        if open_:
            await asyncio.wait(open_)


async def _serve(
    guard: Guard, server: str, password: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    async with asyncio.timeout(REQUEST_SECONDS):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    wanted, *headers = head.split("\r\n")
    parts = urlsplit(server)
    port = parts.port or 443
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    if not _knows(headers, password) or wanted.lower() != f"connect {host}:{port} http/1.1":
        writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        return
    try:
        far_reader, far_writer = await _connected(await guard.check(server), port)
    except (OutgoingRequestError, OSError, TimeoutError):
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        return
    try:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        async with asyncio.TaskGroup() as both:
            both.create_task(_copied(reader, far_writer))
            both.create_task(_copied(far_reader, writer))
    except* OSError:
        pass
    finally:
        await _closed(far_writer)


def _knows(headers: Sequence[str], password: str) -> bool:
    proof = b64encode(f"{USER}:{password}".encode()).decode()
    given = next((one.partition(":")[2] for one in headers if one.lower().startswith("proxy-authorization:")), "")
    return hmac.compare_digest(given.strip().encode(), f"Basic {proof}".encode())


async def _connected(addresses: Sequence[Address], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    *first, last = addresses
    async with asyncio.timeout(CONNECT_SECONDS):
        for address in first:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(str(address), port)
        return await asyncio.open_connection(str(last), port)


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(PIECE):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
