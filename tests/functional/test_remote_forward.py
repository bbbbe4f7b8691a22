"""A forward through a real sshd: what passes, who may use it, what is left behind, and how it breaks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from slipway.model.errors import StepError
from slipway.remote.connect import SshLimits
from slipway.remote.ssh_host import SshHost
from tests.functional.remote_proxy import proxy_to
from tests.functional.remote_sshd import Sshd, pooled, running_sshd, ssh_host_on
from tests.stream_server import stream_server


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with running_sshd(tmp_path / "sshd") as sshd:
        yield sshd


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """A server that gives back what it gets."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1024):
            writer.write(chunk)
        writer.close()

    async with stream_server(serve) as port:
        yield port


async def exchanged(path: Path, text: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(text)
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


async def test_many_connections_pass_and_nothing_is_left(sshd: Sshd) -> None:
    async with echo() as port, ssh_host_on(sshd.target()) as host:
        async with host.forwarded("127.0.0.1", port) as path:
            assert path.is_socket()
            assert path.parent.stat().st_mode & 0o777 == 0o700
            texts = [f"text {number}".encode() for number in range(50)]
            assert await asyncio.gather(*(exchanged(path, text) for text in texts)) == texts
        assert not path.parent.exists()


async def test_an_error_inside_is_passed_on_and_nothing_is_left(sshd: Sshd) -> None:
    async with echo() as port, ssh_host_on(sshd.target()) as host:
        with pytest.raises(KeyError):
            async with host.forwarded("127.0.0.1", port) as path:
                raise KeyError
        assert not path.parent.exists()


async def test_open_forwards_take_no_place_from_commands_and_keep_the_connection(sshd: Sshd) -> None:
    """Else as many steps as there are places, each with a forward and a command to run, would wait for each other."""
    limits = SshLimits(commands_per_host=1, idle=0.01)
    async with echo() as port, proxy_to(sshd.port) as proxy, pooled(limits) as pool, asyncio.timeout(10):
        host = SshHost(pool, sshd.target(port=proxy.port))
        async with host.forwarded("127.0.0.1", port) as one, host.forwarded("127.0.0.1", port) as two:
            assert (await host.run(["echo", "through"])).text == "through"
            await asyncio.sleep(0.1)
            assert await exchanged(one, b"one") == b"one"
            assert await exchanged(two, b"two") == b"two"
        assert proxy.accepted == 1
        while pool.open:  # noqa: ASYNC110 - a timer of the pool's own
            await asyncio.sleep(0.01)


async def test_nobody_there_is_temporary_and_says_where(sshd: Sshd) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with ssh_host_on(sshd.target()) as host:
            with pytest.raises(StepError, match=rf"could not forward to 127\.0\.0\.1:{port}: .*refused") as caught:
                async with host.forwarded("127.0.0.1", port):
                    pass
    assert caught.value.temporary


async def test_an_sshd_that_forbids_it_is_a_permanent_error_with_a_cure(sshd: Sshd, tmp_path: Path) -> None:
    keys = tmp_path / "sshd" / "authorized_keys"
    keys.write_text(f"no-port-forwarding {keys.read_text()}")
    async with echo() as port, ssh_host_on(sshd.target()) as host:
        with pytest.raises(StepError, match=r"does not forward to .* Cure: set AllowTcpForwarding") as caught:
            async with host.forwarded("127.0.0.1", port):
                pass
    assert not caught.value.temporary


async def test_a_lost_connection_closes_the_socket_and_the_next_forward_connects_anew(sshd: Sshd) -> None:
    async with echo() as port, proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port)) as host:
        async with host.forwarded("127.0.0.1", port) as path:
            reader, writer = await asyncio.open_unix_connection(path)
            proxy.cut()
            async with asyncio.timeout(5):
                assert await reader.read() == b""
            writer.close()
            with pytest.raises(OSError, match=r"refused|No such file"):
                await exchanged(path, b"late")
        async with host.forwarded("127.0.0.1", port) as path:
            assert await exchanged(path, b"back") == b"back"


async def test_a_connection_that_is_lost_while_it_opens_is_temporary(sshd: Sshd) -> None:
    async with echo() as port, proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port)) as host:
        await host.run(["true"])
        proxy.hang()
        opening = asyncio.create_task(host.forwarded("127.0.0.1", port).__aenter__())
        await asyncio.wait([opening], timeout=0.1)
        proxy.cut()
        with pytest.raises(StepError, match=r"was lost during 'forward to") as caught:
            await opening
    assert caught.value.temporary


async def test_no_answer_is_temporary_and_bounded(sshd: Sshd) -> None:
    limits = SshLimits(connect=0.5)
    async with echo() as port, proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port), limits) as host:
        await host.run(["true"])
        proxy.hang()
        with pytest.raises(StepError, match=r"timed out after 0\.5 s waiting for .* to forward to") as caught:
            async with host.forwarded("127.0.0.1", port):
                pass
    assert caught.value.temporary
