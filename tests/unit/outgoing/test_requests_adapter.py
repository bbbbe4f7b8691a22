"""SDKs that block go out by the same guard: the names, the certificates, the bounds."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from slipway.model.errors import OutgoingRequestError
from slipway.outgoing.guard import Guard
from slipway.outgoing.requests_adapter import AnswerLimits, GuardedAdapter, LoopThread, guarded_session
from tests.stream_server import stream_server
from tests.unit.outgoing.certificates import Authority
from tests.unit.outgoing.guards import answering, ok, tls_of
from tests.unit.outgoing.loopback_server import Answer, Asked, serving
from tests.unit.outgoing.test_guard_redirects import leading

Ask = Callable[..., Awaitable[requests.Response]]


def tight(_: requests.PreparedRequest) -> AnswerLimits:
    return AnswerLimits(largest=10, most_values=3)


@asynccontextmanager
async def asking(guard: Guard | None = None, **options: Any) -> AsyncIterator[Ask]:
    """Asks in a thread: the server runs in the test's."""
    loop = LoopThread()
    session = guarded_session(GuardedAdapter(guard or Guard(loopback=True), loop, **options))

    async def ask(method: str, url: str, **more: Any) -> requests.Response:
        return await asyncio.to_thread(session.request, method, url, **more)

    try:
        yield ask
    finally:
        session.close()
        await asyncio.to_thread(loop.close)


async def test_an_answer_is_that_of_requests() -> None:
    headers = {"Content-Type": "application/json", "X-Openstack-Request-Id": "req-1"}
    path = "/a%2Fb?c=d%20e"
    async with serving(lambda _: Answer(404, headers, b'{"a": "\xc3\xa4"}')) as server, asking() as ask:
        response = await ask("POST", server.url(path), json={"x": 1}, headers={"X-Auth-Token": "t"})
    assert (response.status_code, response.reason, response.json()) == (404, "Not Found", {"a": "ä"})
    assert (response.headers["x-openstack-request-id"], response.url) == ("req-1", server.url(path))
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", path, b'{"x": 1}')
    assert asked.headers["user-agent"] == "slipway"
    assert asked.headers["accept-encoding"] == "identity"
    assert (asked.headers["x-auth-token"], asked.headers["content-length"]) == ("t", "8")


async def test_the_guard_refuses_before_anybody_is_asked() -> None:
    async with serving(ok) as server, asking(Guard()) as ask:
        with pytest.raises(OutgoingRequestError, match="loopback"):
            await ask("GET", server.url())
    assert not server.connections


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    answers = [["127.0.0.1"], ["169.254.169.254"]]

    async def turning(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    async with serving(ok) as server, asking(Guard(loopback=True, resolver=turning)) as ask:
        assert (await ask("GET", server.url(host="turning.example"))).content == b"here"
        assert server.asked[0].headers["host"] == f"turning.example:{server.port}"
        with pytest.raises(OutgoingRequestError, match="link-local"):
            await ask("GET", server.url(host="turning.example"))
    assert len(server.asked) == 1


async def test_the_certificate_must_be_for_the_name(tmp_path: Path) -> None:
    authority, shown = Authority(), []
    context = tls_of(authority.vouch_for("named.example"), tmp_path)
    context.sni_callback = lambda _, name, __: shown.append(name)
    guard = Guard(loopback=True, resolver=answering(named_example=["127.0.0.1"], other_example=["127.0.0.1"]))
    trusting = ssl.create_default_context(cadata=authority.certificate)
    async with serving(ok, tls=context) as server:
        async with asking(guard) as ask:
            with pytest.raises(requests.exceptions.SSLError, match="certificate"):  # whatever the session says
                await ask("GET", server.url(host="named.example"), verify=False)
        async with asking(guard, verify=trusting) as ask:
            for unlike in ("other.example", "127.0.0.1"):
                with pytest.raises(requests.exceptions.SSLError, match="certificate"):
                    await ask("GET", server.url(host=unlike))
            assert (await ask("GET", server.url(host="named.example"))).content == b"here"
    assert shown[-1] == "named.example"


async def test_redirects_are_followed_only_if_asked_for_and_with_a_token_only_at_home() -> None:
    token = {"X-Auth-Token": "secret"}
    async with serving(ok) as stranger:

        def lead(asked: Asked) -> Answer:
            where = {"/home": "/there", "/away": stranger.url("/theirs")}
            return leading(where[asked.path]) if asked.path in where else ok(asked)

        async with serving(lead) as server, asking() as ask:
            assert (await ask("GET", server.url("/home"), allow_redirects=False)).status_code == 302
        async with serving(lead) as server, asking(redirects=1) as ask:
            assert (await ask("GET", server.url("/home"), headers=token)).content == b"here"
            assert server.asked[-1].headers["x-auth-token"] == "secret"
            await ask("GET", server.url("/away"), headers=token)
    assert "secret" not in str(stranger.asked[0].headers)


async def test_answers_are_bounded_in_bytes() -> None:
    async with serving(lambda asked: Answer(body=b"x" * int(asked.path[1:]))) as server, asking(limits=tight) as ask:
        assert len((await ask("GET", server.url("/10"))).content) == 10
        with pytest.raises(OutgoingRequestError, match="larger than 10 bytes"):
            await ask("GET", server.url("/11"))


async def test_answers_are_bounded_in_values() -> None:
    async with serving(lambda asked: Answer(body=b"[" + b"," * int(asked.path[1:]) + b"]")) as server:
        async with asking() as ask:
            assert len((await ask("GET", server.url("/499000"))).content) == 499_002
            with pytest.raises(OutgoingRequestError, match="more than 500000 values"):
                await ask("GET", server.url("/500001"))
        async with asking(limits=tight) as ask:
            with pytest.raises(OutgoingRequestError, match="more than 3 values"):
                await ask("GET", server.url("/4"))


async def test_a_request_is_bounded_as_a_whole() -> None:
    """Bytes that keep coming, each in time, don't make it longer."""
    ended = asyncio.Semaphore(0)

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-Header: ")
        await reader.readuntil(b"\r\n\r\n")
        gone = asyncio.create_task(reader.read())
        while not gone.done():
            writer.write(b"a")
            await asyncio.sleep(0.02)
        writer.close()
        ended.release()

    async with stream_server(trickle) as port, asking(seconds=0.3) as ask:
        url = f"http://127.0.0.1:{port}/"
        with pytest.raises(requests.ReadTimeout, match=r"not answered within 0\.3 s"):
            await ask("GET", url)
        with pytest.raises(requests.ReadTimeout, match=r"not answered within 0\.2 s"):
            await ask("GET", url, timeout=0.2)
        for _ in range(2):
            await ended.acquire()


async def test_nobody_listening_is_a_connection_error() -> None:
    async with serving(ok) as server:
        pass
    async with asking() as ask:
        with pytest.raises(requests.ConnectionError):
            await ask("GET", server.url())


async def test_a_body_is_read_while_it_is_sent() -> None:
    content = bytes(range(256)) * 10_000
    async with serving(ok) as server, asking(seconds=5) as ask:
        await ask("PUT", server.url(), data=io.BytesIO(content))
    assert server.asked[0].body == content
    assert server.asked[0].headers["content-length"] == str(len(content))


async def test_neither_proxies_nor_netrc_nor_cookies_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving(ok) as proxy, serving(lambda _: Answer(200, {"Set-Cookie": "a=b"})) as server, asking() as ask:
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        await ask("GET", server.url())
        await ask("GET", server.url(), proxies={"http": proxy.url()})
    assert not proxy.asked
    assert not {"authorization", "cookie"} & server.asked[1].headers.keys()


async def test_closing_ends_requests_that_wait() -> None:
    asked, released = asyncio.Event(), asyncio.Event()

    async def later(_: Asked) -> Answer:
        asked.set()
        await released.wait()
        return Answer()

    loop = LoopThread()
    session = guarded_session(GuardedAdapter(Guard(loopback=True), loop))
    async with serving(later) as server:
        waiting = asyncio.create_task(asyncio.to_thread(session.get, server.url()))
        await asked.wait()
        await asyncio.to_thread(loop.close)
        with pytest.raises(requests.ConnectionError, match="about to stop"):
            await waiting
        with pytest.raises(requests.ConnectionError, match="about to stop"):
            await asyncio.to_thread(session.get, server.url())
        released.set()
