"""The proxy leads to one server, for one who knows the password, by addresses that the guard has checked."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from slipway.model.errors import OutgoingRequestError
from slipway.outgoing.guard import Guard
from slipway.vim.kubernetes.helm.guarded_proxy import guarded_proxy


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(100):
            writer.write(piece.upper())
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def guard(*answers: str) -> Guard:
    """Whose names resolve to the answers, one after another; the last one stays."""
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return [left.pop(0) if len(left) > 1 else left[0]]

    return Guard(loopback=True, resolver=resolve)


async def asked(proxy: str, authority: str, *, password: str | None = None) -> tuple[str, str]:
    """The status, and what comes back for "hello"."""
    url = urlsplit(proxy)
    proof = b64encode(f"{url.username}:{password or url.password}".encode()).decode()
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    head = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nProxy-Authorization: Basic {proof}\r\n\r\n"
    writer.write(head.encode())
    status = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
    if status == "200":
        writer.write(b"hello")
        writer.write_eof()
    came = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return status, came


async def test_it_leads_to_the_server() -> None:
    async with echo() as port, guarded_proxy(guard("127.0.0.1"), f"https://api.example:{port}") as proxy:
        assert await asked(proxy, f"api.example:{port}") == ("200", "HELLO")


async def test_it_leads_nowhere_else_and_only_with_the_password() -> None:
    async with echo() as port, guarded_proxy(guard("127.0.0.1"), f"https://api.example:{port}") as proxy:
        assert (await asked(proxy, f"127.0.0.1:{port}"))[0] == "403"
        assert (await asked(proxy, f"api.example:{port}", password="guessed"))[0] == "403"


async def test_a_name_that_answers_differently_the_next_time_gains_nothing() -> None:
    answers = guard("127.0.0.1", "169.254.169.254")
    async with guarded_proxy(answers, "https://api.example:6443") as proxy:
        assert (await asked(proxy, "api.example:6443"))[0] == "502"


async def test_a_server_that_may_not_be_asked_has_no_proxy() -> None:
    with pytest.raises(OutgoingRequestError, match="never allowed"):
        async with guarded_proxy(guard("169.254.169.254"), "https://api.example:6443"):
            pass


async def test_connections_that_are_open_when_helm_has_ended_are_no_fault_in_the_log() -> None:
    told: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: told.append(str(context["message"])))
    async with echo() as port:
        async with guarded_proxy(guard("127.0.0.1"), f"https://api.example:{port}") as proxy:
            url = urlsplit(proxy)
            proof = b64encode(f"{url.username}:{url.password}".encode()).decode()
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            writer.write(f"CONNECT api.example:{port} HTTP/1.1\r\nProxy-Authorization: Basic {proof}\r\n\r\n".encode())
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0)
        writer.close()
    assert told == []
