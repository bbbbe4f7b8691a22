"""TLS of outgoing requests: names, client certificates, redirects, handshakes without end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from slipway.model.errors import OutgoingRequestError
from slipway.outgoing.guard import Guard
from tests.stream_server import stream_server
from tests.unit.outgoing.certificates import Authority
from tests.unit.outgoing.guards import answering, ok, tls_of
from tests.unit.outgoing.loopback_server import Answer, Asked, serving
from tests.unit.outgoing.test_guard_redirects import leading


async def test_the_certificate_must_be_for_the_name_and_not_for_the_address(tmp_path: Path) -> None:
    authority = Authority()
    context = tls_of(authority.vouch_for("named.example"), tmp_path)
    names = answering(named_example=["127.0.0.1"], other_example=["127.0.0.1"])
    guard = Guard(loopback=True, resolver=names)
    async with serving(ok, tls=context) as server:
        async with guard.client(timeout=5, verify=authority.certificate) as client:
            assert (await client.get(server.url(host="named.example"))).content == b"here"
            for wrong in ("other.example", "127.0.0.1"):
                with pytest.raises(httpx.ConnectError, match="certificate"):
                    await client.get(server.url(host=wrong))
        async with guard.client(timeout=5) as client:
            with pytest.raises(httpx.ConnectError, match="certificate"):
                await client.get(server.url(host="named.example"))
        async with guard.client(timeout=5, verify=False) as client:
            assert (await client.get(server.url(host="other.example"))).content == b"here"


async def test_a_client_certificate_is_shown_to_nobody_whom_a_redirect_names(tmp_path: Path) -> None:
    authority, shown = Authority(), []
    mine = authority.vouch_for("me")

    context = tls_of(authority.vouch_for("one.example", "two.example"), tmp_path, authority.certificate)
    context.sni_callback = lambda connection, name, _: shown.append((name, connection))
    names = answering(one_example=["127.0.0.1"], two_example=["127.0.0.1"])
    guard = Guard(loopback=True, resolver=names)

    def lead(asked: Asked) -> Answer:
        return leading(f"https://two.example:{server.port}/") if "one" in asked.headers["host"] else ok(asked)

    async with serving(lead, tls=context) as server:
        cert = (mine.certificate, mine.key)
        async with guard.client(timeout=5, verify=authority.certificate, cert=cert, redirects=1) as client:
            assert (await client.get(server.url(host="one.example"))).content == b"here"
    certified = [(name, bool(connection.getpeercert())) for name, connection in shown]
    assert certified == [("one.example", True), ("two.example", False)]


async def test_a_redirect_never_leads_away_from_https(tmp_path: Path) -> None:
    authority = Authority()
    context = tls_of(authority.vouch_for("127.0.0.1"), tmp_path)
    async with (
        serving(ok) as plain,
        serving(lambda asked: leading(plain.url()), tls=context) as server,
        Guard(loopback=True).client(timeout=5, verify=authority.certificate, redirects=3) as client,
    ):
        with pytest.raises(OutgoingRequestError, match="away from https"):
            await client.get(server.url())
    assert not plain.asked


def test_broken_certificates_are_named() -> None:
    pair, other = Authority().vouch_for("me"), Authority().vouch_for("me")
    with pytest.raises(OutgoingRequestError, match="CA can't be read"):
        Guard().client(verify="nonsense")
    with pytest.raises(OutgoingRequestError, match="does not go with its key"):
        Guard().client(cert=(pair.certificate, other.key))


async def test_a_server_that_never_finishes_its_handshake_leaves_no_open_socket() -> None:
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            pass
        ended.set()
        writer.close()

    async with stream_server(silent) as port, Guard(loopback=True).client(timeout=None, verify=False) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.get(f"https://127.0.0.1:{port}/")
        async with asyncio.timeout(5):
            await ended.wait()
