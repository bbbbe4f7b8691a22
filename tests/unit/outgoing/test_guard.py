"""Which addresses may be asked, by which names, and that nothing of this machine goes along."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

import pytest

from slipway.model.errors import OutgoingRequestError
from slipway.outgoing.guard import Guard
from slipway.outgoing.responses import read_limited
from tests.unit.outgoing.guards import PUBLIC, answering, ok, settings_with
from tests.unit.outgoing.loopback_server import Answer, serving


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
        ("http://files.example:0/", "not a port"),
        ("http://files.example:65536/", r"not a (port|URL)"),
        ("http://files.example:-1/", "not a port"),
        ("http://0251.0376.0251.0376/", "not a URL"),
        ("http://0177.0.0.1/", "not a URL"),
        ("http://files.example:22/", "not HTTP"),
        ("http://files.example:25/", "not HTTP"),
        ("http://files.example:6379/", "not HTTP"),
        ("http://[fe80::1%25eth0]/", "(interface|not a URL)"),
        ("http://[::1%25lo]/", "(interface|not a URL)"),
        ("http://[::1/", "not a URL"),
        ("http://a\nb/", "not a URL"),
        ("http://a\x00b/", "not a URL"),
    ],
)
async def test_an_address_that_can_not_be_one_is_refused(url: str, why: str) -> None:
    with pytest.raises(OutgoingRequestError, match=why) as refused:
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
    with pytest.raises(OutgoingRequestError, match="never allowed") as refused:
        await guard.check(f"http://{host}/latest/meta-data")
    assert host.strip("[]")[:4] in refused.value.detail


LOOPBACKS = [
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.1", "127.255.255.254",
    "localhost",
    "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[::127.0.0.1]",
]  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACKS)
async def test_loopback_is_refused_in_every_spelling_unless_it_is_allowed(host: str) -> None:
    with pytest.raises(OutgoingRequestError, match=r"loopback .* allowed_networks"):
        await Guard().check(f"http://{host}:8080/")
    assert await Guard(loopback=True).check(f"http://{host}:8080/")


@pytest.mark.parametrize("host", ["10.1.2.3", "192.168.0.1", "172.16.0.1", "100.127.255.1", "[fd12::1]", "8.8.8.8",
                                  "[2606:4700::1111]", "[64:ff9b::8.8.8.8]"])  # fmt: skip
async def test_public_and_private_addresses_are_allowed(host: str) -> None:
    assert await Guard().check(f"https://{host}/")


async def test_with_allowed_networks_only_those() -> None:
    guard = settings_with(allowed_networks=["10.0.0.0/8", "fd12::/16"])
    for inside in ("10.1.2.3", "[fd12::1]", "[::ffff:10.1.2.3]"):
        assert await guard.check(f"https://{inside}/")
    for outside in ("8.8.8.8", "192.168.0.1", "[fd13::1]", "[::ffff:8.8.8.8]", "127.0.0.1"):
        with pytest.raises(OutgoingRequestError, match="allowed_networks"):
            await guard.check(f"https://{outside}/")


async def test_one_bad_address_among_good_ones_is_enough() -> None:
    guard = Guard(resolver=answering(mixed_example=[PUBLIC, "169.254.169.254"]))
    with pytest.raises(OutgoingRequestError, match=r"mixed\.example \(169\.254\.169\.254\) is a link-local"):
        await guard.check("https://mixed.example/")


async def test_a_name_that_nobody_knows_may_be_known_later() -> None:
    with pytest.raises(OutgoingRequestError, match=r"gone\.example is not known") as refused:
        await Guard(resolver=answering()).check("https://gone.example/")
    assert refused.value.temporary


async def test_a_name_server_that_does_not_answer_is_not_waited_for() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(OutgoingRequestError, match=r"not resolved within 0\.01 s"):
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
        with pytest.raises(OutgoingRequestError, match="link-local"):  # though a connection stands open
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
            with pytest.raises(OutgoingRequestError, match="larger than 10 bytes"):
                await read_limited(response, 10)
        async with client.stream("GET", server.url("/gzip")) as response:
            with pytest.raises(OutgoingRequestError, match="compressed"):
                await read_limited(response, 10)


@pytest.mark.parametrize("text", ["nowhere.example", "10.0.0", "", "fe80::1%eth0"])
def test_a_machine_is_reached_at_an_ip_address_and_nothing_else(text: str) -> None:
    with pytest.raises(OutgoingRequestError, match=r"no IP address|names an interface"):
        Guard().check_address(text)
