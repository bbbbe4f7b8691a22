from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv6Network, ip_address, ip_network
from pathlib import Path

import httpx
import pytest

from slipway.model.errors import OutsideError, SettingsError
from slipway.outside.addresses import Address
from slipway.outside.guard import Guard, Resolver, read_limited
from slipway.outside.own_addresses import FRESH, OwnAddresses
from slipway.settings import load_settings
from tests.unit.outside.certificates import Authority, Pair
from tests.unit.outside.loopback_server import Answer, Asked, serving

PUBLIC = "203.0.113.7"


def answering(**names: Sequence[str]) -> Resolver:
    """A name server that knows these; dots are written as underscores."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        try:
            return names[host.replace(".", "_")]
        except KeyError:
            raise OSError("Name or service not known") from None

    return resolve


def settings_with(**values: object) -> Guard:
    return Guard.from_settings(load_settings(overrides=values, environment={}))


def ok(asked: Asked) -> Answer:
    return Answer(body=b"here")


# What may not be asked for


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://files.example/x", "scheme must be one of: http, https; it is 'ftp'"),
        ("files.example:8080/x", "scheme must be one of: http, https; it is 'files.example'"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://files.example/", "scheme"),
        ("//files.example/x", "no scheme"),
        ("nonsense", "no scheme"),
        ("", "no scheme"),
        ("http://", "no host"),
        ("http:///x", "no host"),
        ("http://user:secret@files.example/", "user or a password"),
        ("http://user@files.example/", "user or a password"),
        ("http://files.example:0/", "no port"),
        ("http://files.example:65536/", r"no (port|URL)"),
        ("http://files.example:-1/", "no port"),
        ("http://0251.0376.0251.0376/", "no URL"),
        ("http://0177.0.0.1/", "no URL"),
        ("http://files.example:22/", "not HTTP"),
        ("http://files.example:25/", "not HTTP"),
        ("http://files.example:6379/", "not HTTP"),
        ("http://[fe80::1%25eth0]/", "(interface|no URL)"),
        ("http://[::1%25lo]/", "(interface|no URL)"),
        ("http://[::1/", "no URL"),
        ("http://a\nb/", "no URL"),
        ("http://a\x00b/", "no URL"),
    ],
)
async def test_an_address_that_can_not_be_one_is_refused(url: str, why: str) -> None:
    with pytest.raises(OutsideError, match=why) as refused:
        await Guard(loopback=True, resolver=answering(files_example=[PUBLIC])).check(url)
    assert "secret" not in refused.value.detail


@pytest.mark.parametrize("host", [
    "169.254.169.254", "169.254.0.1", "2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "025177524776",
    "169.254.43518",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::169.254.169.254]", "[2002:a9fe:a9fe::1]",
    "[::169.254.169.254]", "[64:ff9b:1::a9fe:a9fe]", "[fe80::1]", "[febf::1]", "[fd00:ec2::254]", "[fd20:ce::254]",
    "100.100.100.200", "[::ffff:100.100.100.200]", "192.0.0.192", "168.63.129.16",
    "224.0.0.1", "239.255.255.250", "[ff02::1]", "0.0.0.0", "0", "0.1.2.3", "[::]", "[::ffff:0.0.0.0]",  # noqa: S104
    "255.255.255.255", "240.0.0.1", "[64:ff9b::255.255.255.255]", "[fec0::1]", "[4000::1]",
    "[2001:0:a9fe:a9fe::5601:5601]",
])  # fmt: skip
@pytest.mark.parametrize("guard", [
    Guard(loopback=True), Guard((ip_network("0.0.0.0/0"), ip_network("::/0"), ip_network("169.254.0.0/16")), True),
], ids=["all", "named"])  # fmt: skip
async def test_metadata_and_addresses_of_no_server_are_refused_in_every_spelling(host: str, guard: Guard) -> None:
    with pytest.raises(OutsideError, match="never allowed") as refused:
        await guard.check(f"http://{host}/latest/meta-data")
    assert host.strip("[]")[:4] in refused.value.detail


LOOPBACKS = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.1", "127.255.255.254",
    "localhost",
    "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[::127.0.0.1]",
]  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACKS)
async def test_loopback_is_refused_in_every_spelling_unless_it_is_allowed(host: str) -> None:
    with pytest.raises(OutsideError, match=r"loopback .* allowed_networks"):
        await Guard().check(f"http://{host}:8080/")
    assert await Guard(loopback=True).check(f"http://{host}:8080/")


@pytest.mark.parametrize("host", ["10.1.2.3", "192.168.0.1", "172.16.0.1", "100.64.0.1", "[fd12::1]", "8.8.8.8",
                                  "[2606:4700::1111]", "[64:ff9b::8.8.8.8]"])  # fmt: skip
async def test_public_and_private_addresses_are_allowed(host: str) -> None:
    assert await Guard().check(f"https://{host}/")


async def test_with_allowed_networks_only_those() -> None:
    guard = settings_with(allowed_networks=["10.0.0.0/8", "fd12::/16"])
    for inside in ("10.1.2.3", "[fd12::1]", "[::ffff:10.1.2.3]"):
        assert await guard.check(f"https://{inside}/")
    for outside in ("8.8.8.8", "192.168.0.1", "[fd13::1]", "[::ffff:8.8.8.8]", "127.0.0.1"):
        with pytest.raises(OutsideError, match="allowed_networks"):
            await guard.check(f"https://{outside}/")


# What makes loopback allowed


@pytest.mark.parametrize(("values", "allowed"), [
    ({"host": "127.0.0.1"}, True),
    ({"host": "::1"}, True),
    ({"host": "localhost"}, True),
    ({"host": "0.0.0.0"}, False),  # noqa: S104
    ({"host": "10.0.0.5"}, False),
    ({"host": "10.0.0.5", "allowed_networks": ["0.0.0.0/0"]}, False),
    ({"host": "10.0.0.5", "allowed_networks": ["0.0.0.0/0", "127.0.0.0/8"]}, True),
    ({"host": "10.0.0.5", "allowed_networks": ["127.0.0.1"]}, True),
    ({"host": "127.0.0.1", "allowed_networks": ["10.0.0.0/8"]}, False),
])  # fmt: skip
async def test_loopback_is_allowed_to_who_listens_there_or_names_it(values: dict[str, object], allowed: bool) -> None:
    guard = settings_with(**values)
    if allowed:
        assert await guard.check("http://127.0.0.1:8080/")
    else:
        with pytest.raises(OutsideError):
            await guard.check("http://127.0.0.1:8080/")


OWN = {"10.0.0.5", "fd12::5"}


def is_own(address: Address) -> bool:
    return str(address) in OWN


@pytest.mark.parametrize(
    ("values", "allowed"),
    [
        ({}, True),
        ({"base_url": "http://localhost:8080"}, True),
        ({"base_url": "https://[::1]/slipway"}, True),
        ({"base_url": "https://slipway.example"}, False),
        ({"base_url": "https://10.0.0.5"}, False),
        ({"host": "0.0.0.0"}, False),  # noqa: S104
        ({"host": "10.0.0.5"}, False),
        ({"base_url": "https://slipway.example", "allowed_networks": ["0.0.0.0/0", "::/0"]}, False),
        ({"base_url": "https://slipway.example", "allowed_networks": ["10.0.0.0/30", "fd12::/126"]}, False),
    ],
)
async def test_this_machine_is_allowed_only_while_nobody_else_reaches_the_api(
    values: dict[str, object], allowed: bool
) -> None:
    guard = replace(settings_with(**values), is_own=is_own)
    for host in ("127.0.0.1", "[::1]", "10.0.0.5", "[fd12::5]", "[::ffff:10.0.0.5]", "[64:ff9b::10.0.0.5]"):
        if allowed:
            assert await guard.check(f"http://{host}:8080/")
        else:
            with pytest.raises(OutsideError, match="allowed"):
                await guard.check(f"http://{host}:8080/")


async def test_an_own_address_can_be_named_by_itself() -> None:
    named = settings_with(base_url="https://slipway.example", allowed_networks=["10.0.0.0/8", "10.0.0.5/32"])
    assert await replace(named, is_own=is_own).check("https://10.0.0.5/")
    guard = replace(settings_with(base_url="https://slipway.example"), is_own=is_own)
    with pytest.raises(OutsideError, match=r"10\.0\.0\.5 is an address of the machine .* 10\.0\.0\.5/32 added"):
        await guard.check("https://10.0.0.5/")
    assert await guard.check("https://10.0.0.6/")
    behind = replace(guard, resolver=answering(me_example=[PUBLIC, "10.0.0.5"]))
    with pytest.raises(OutsideError, match=r"me\.example \(10\.0\.0\.5\) is an address of the machine"):
        await behind.check("https://me.example/")


def test_own_addresses_are_those_that_the_kernel_routes_here(tmp_path: Path) -> None:
    (tmp_path / "fib_trie").write_text(TRIE)
    (tmp_path / "ipv6_route").write_text(ROUTES)
    own = OwnAddresses(tmp_path)
    for text in ("127.0.0.1", "127.8.9.10", "192.0.2.2", "192.0.2.3", "10.99.7.7", "::1", "fd00::2", "fd99::abcd"):
        assert own(ip_address(text)), text
    for text in ("192.0.2.0", "192.0.2.1", "192.0.2.255", "10.98.0.1", "8.8.8.8", "fd00::1", "fd98::1", "2001:db8::1"):
        assert not own(ip_address(text)), text


def test_the_addresses_of_this_very_machine_are_found() -> None:
    own = OwnAddresses()
    assert own(ip_address("127.0.0.1"))
    assert not own(ip_address("8.8.8.8"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("127.0.0.1", 9))  # sends nothing
        assert own(ip_address(probe.getsockname()[0]))


def test_addresses_that_come_are_seen_after_a_while(tmp_path: Path) -> None:
    now = [0.0]
    own = OwnAddresses(tmp_path, clock=lambda: now[0])
    assert not own(ip_address("192.0.2.2"))
    (tmp_path / "fib_trie").write_text(TRIE)
    now[0] += FRESH
    assert own(ip_address("192.0.2.2"))


TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 10.99.0.0
        /16 host LOCAL
     +-- 127.0.0.0/8 2 0 2
        +-- 127.0.0.0/31 1 0 0
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     +-- 192.0.2.0/24 2 0 2
        +-- 192.0.2.0/30 2 0 2
           |-- 192.0.2.0
              /24 link UNICAST
           |-- 192.0.2.2
              /32 host LOCAL
           |-- 192.0.2.3
              /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
"""
_ROUTE = (
    "{} {} 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000003 00000000 {} eth0\n"
)
ROUTES = "".join(
    _ROUTE.format(network.network_address.packed.hex(), f"{network.prefixlen:02x}", flags)
    for network, flags in (
        (IPv6Network("fd00::/64"), "00000001"),
        (IPv6Network("::1/128"), "80200001"),
        (IPv6Network("fd00::2/128"), "80200001"),
        (IPv6Network("fd99::/64"), "80000001"),
        (IPv6Network("::/0"), "00000003"),
    )
)


async def test_a_worker_listens_nowhere() -> None:
    guard = Guard.from_settings(load_settings(environment={}), listens=False)
    with pytest.raises(OutsideError, match="loopback"):
        await guard.check("http://127.0.0.1:8080/")


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match=r"allowed_networks: '10\.0\.0\.0/64'"):
        settings_with(allowed_networks=["10.0.0.0/64"])
    several = load_settings(environment={"SLIPWAY_ALLOWED_NETWORKS": "10.0.0.0/8,192.168.0.1/16"})
    assert len(Guard.from_settings(several).networks) == 2


# Names


async def test_one_bad_address_among_good_ones_is_enough() -> None:
    guard = Guard(resolver=answering(mixed_example=[PUBLIC, "169.254.169.254"]))
    with pytest.raises(OutsideError, match=r"mixed\.example \(169\.254\.169\.254\) is a link-local"):
        await guard.check("https://mixed.example/")


async def test_a_name_that_nobody_knows_may_be_known_later() -> None:
    with pytest.raises(OutsideError, match=r"gone\.example is not known") as refused:
        await Guard(resolver=answering()).check("https://gone.example/")
    assert refused.value.temporary


async def test_a_name_server_that_does_not_answer_is_not_waited_for() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(OutsideError, match=r"not resolved within 0\.01 s"):
        await Guard(resolver=never, resolving=0.01).check("https://slow.example/")


async def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    """The name answers well once, and badly ever after: who resolves again would connect elsewhere."""
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    calls: list[str] = []

    async def turning(host: str, port: int) -> Sequence[str]:
        calls.append(host)
        return answers.pop(0)

    async with serving(ok) as server, Guard(loopback=True, resolver=turning).client(timeout=5) as client:
        response = await client.get(server.url("/x", host="turning.example"))
        assert (response.content, calls) == (b"here", ["turning.example"])
        assert server.asked[0].headers["host"] == f"turning.example:{server.port}"
        with pytest.raises(OutsideError, match="link-local"):  # though a connection stands open
            await client.get(server.url("/x", host="turning.example"))
    assert len(server.asked) == 1


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with serving(ok) as server:
        guard = Guard(loopback=True, resolver=answering(two_example=["127.0.0.2", "::1", "127.0.0.1"]))
        async with guard.client(timeout=5) as client:
            response = await client.post(server.url(host="two.example"), content=b"body")
    assert response.content == b"here"
    assert server.asked[0].body == b"body"


async def test_two_names_of_one_address_share_no_connection() -> None:
    names = answering(one_example=["127.0.0.1"], two_example=["127.0.0.1"])
    async with serving(ok) as server, Guard(loopback=True, resolver=names).client(timeout=5) as client:
        for host in ("one.example", "two.example", "one.example"):
            await client.get(server.url(host=host))
    assert [asked.connection for asked in server.asked] == [1, 2, 1]


# Redirects


def leading(where: str, status: int = 302) -> Answer:
    return Answer(status, {"Location": where})


async def test_redirects_are_not_followed_unasked() -> None:
    async with serving(lambda asked: leading("/there")) as server, Guard(loopback=True).client(timeout=5) as client:
        assert (await client.get(server.url())).status_code == 302
    assert len(server.asked) == 1


@pytest.mark.parametrize("where", [
    "http://169.254.169.254/latest", "//169.254.169.254/latest", "http://[::ffff:169.254.169.254]/", "http://2852039166/",
    "http://10.0.0.1:22/", "ftp://files.example/", "http://a:b@files.example/", "http://[", "file:///etc/passwd",
])  # fmt: skip
async def test_a_redirect_is_judged_like_the_address_itself(where: str) -> None:
    async with (
        serving(lambda asked: leading(where)) as server,
        Guard(loopback=True).client(timeout=5, redirects=3) as client,
    ):
        with pytest.raises(OutsideError):
            await client.get(server.url())
    assert len(server.asked) == 1


async def test_redirects_are_followed_as_often_as_asked_for() -> None:
    def further(asked: Asked) -> Answer:
        number = int(asked.path[1:])
        return leading(f"/{number + 1}") if number < 3 else ok(asked)

    async with serving(further) as server:
        async with Guard(loopback=True).client(timeout=5, redirects=3) as client:
            assert (await client.get(server.url("/0"))).content == b"here"
        async with Guard(loopback=True).client(timeout=5, redirects=2) as client:
            with pytest.raises(OutsideError, match="more than 2 times"):
                await client.get(server.url("/0"))


async def test_a_redirected_post_is_not_sent_again() -> None:
    async with (
        serving(lambda asked: leading("/there", 307)) as server,
        Guard(loopback=True).client(timeout=5, redirects=3) as client,
    ):
        assert (await client.post(server.url(), content=b"x")).status_code == 307
    assert len(server.asked) == 1


async def test_credentials_stay_with_the_server_they_are_for() -> None:
    secret = {"X-Auth-Token": "secret", "Cookie": "a=b", "X-Anything": "secret", "Accept": "text/plain"}
    async with serving(ok) as stranger:

        def lead(asked: Asked) -> Answer:
            return leading("/again") if asked.path == "/" else leading(stranger.url("/theirs"))

        async with (
            serving(lead) as home,
            Guard(loopback=True).client(timeout=5, redirects=5, auth=("me", "secret")) as client,
        ):
            await client.get(home.url("/"), headers=secret)
    for asked in home.asked:
        assert asked.headers["x-auth-token"] == "secret"
        assert asked.headers["authorization"].startswith("Basic ")
    (theirs,) = stranger.asked
    assert "secret" not in str(theirs.headers)
    assert not {"authorization", "cookie", "x-auth-token"} & theirs.headers.keys()
    assert theirs.headers["accept"] == "text/plain"
    assert theirs.headers["host"] == f"127.0.0.1:{stranger.port}"


# Nothing from here goes along


async def test_neither_proxies_nor_netrc_nor_cookies_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with serving(ok) as proxy, serving(lambda asked: Answer(200, {"Set-Cookie": "a=b"})) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        monkeypatch.setenv("ALL_PROXY", proxy.url())
        async with Guard(loopback=True).client(timeout=5) as client:
            await client.get(server.url())
            await client.get(server.url())
    assert not proxy.asked
    assert len(server.asked) == 2
    assert not {"authorization", "cookie"} & server.asked[1].headers.keys()


async def test_an_answer_is_taken_up_to_a_limit() -> None:
    packed = Answer(200, {"Content-Encoding": "gzip"}, b"\x1f\x8b")
    bodies = {"/10": Answer(body=b"x" * 10), "/11": Answer(body=b"x" * 11), "/gzip": packed}
    async with serving(lambda asked: bodies[asked.path]) as server, Guard(loopback=True).client(timeout=5) as client:
        async with client.stream("GET", server.url("/10")) as response:
            assert await read_limited(response, 10) == b"x" * 10
        async with client.stream("GET", server.url("/11")) as response:
            with pytest.raises(OutsideError, match="larger than 10 bytes"):
                await read_limited(response, 10)
        async with client.stream("GET", server.url("/gzip")) as response:
            with pytest.raises(OutsideError, match="packed"):
                await read_limited(response, 10)


# TLS


def tls_of(pair: Pair, directory: Path, clients: str | None = None) -> ssl.SSLContext:
    file = directory / "server.pem"
    file.write_text(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if clients:
        context.load_verify_locations(cadata=clients)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


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
        with pytest.raises(OutsideError, match="away from https"):
            await client.get(server.url())
    assert not plain.asked


def test_broken_certificates_are_named() -> None:
    pair, other = Authority().vouch_for("me"), Authority().vouch_for("me")
    with pytest.raises(OutsideError, match="CA can't be read"):
        Guard().client(verify="nonsense")
    with pytest.raises(OutsideError, match="does not go with its key"):
        Guard().client(cert=(pair.certificate, other.key))


async def test_a_server_that_never_finishes_its_handshake_leaves_no_open_socket() -> None:
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            pass
        ended.set()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Guard(loopback=True).client(timeout=None, verify=False) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.get(f"https://127.0.0.1:{port}/")
        async with asyncio.timeout(5):
            await ended.wait()
