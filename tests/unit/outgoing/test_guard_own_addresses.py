"""When requests to this machine's own addresses are allowed, and which addresses these are."""

from __future__ import annotations

import socket
from dataclasses import replace
from ipaddress import IPv6Network, ip_address
from pathlib import Path

import pytest

from slipway.model.errors import OutgoingRequestError, SettingsError
from slipway.outgoing.addresses import Address
from slipway.outgoing.guard import Guard
from slipway.outgoing.own_addresses import FRESH, OwnAddresses
from slipway.settings import load_settings
from tests.unit.outgoing.guards import PUBLIC, answering, settings_with


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
        with pytest.raises(OutgoingRequestError):
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
            with pytest.raises(OutgoingRequestError, match="allowed"):
                await guard.check(f"http://{host}:8080/")


async def test_an_own_address_can_be_named_by_itself() -> None:
    named = settings_with(base_url="https://slipway.example", allowed_networks=["10.0.0.0/8", "10.0.0.5/32"])
    assert await replace(named, is_own=is_own).check("https://10.0.0.5/")
    guard = replace(settings_with(base_url="https://slipway.example"), is_own=is_own)
    with pytest.raises(OutgoingRequestError, match=r"10\.0\.0\.5 is an address of the machine .* 10\.0\.0\.5/32 added"):
        await guard.check("https://10.0.0.5/")
    assert await guard.check("https://10.0.0.6/")
    behind = replace(guard, resolver=answering(me_example=[PUBLIC, "10.0.0.5"]))
    with pytest.raises(OutgoingRequestError, match=r"me\.example \(10\.0\.0\.5\) is an address of the machine"):
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
    with pytest.raises(OutgoingRequestError, match="loopback"):
        await guard.check("http://127.0.0.1:8080/")


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(SettingsError, match=r"allowed_networks: '10\.0\.0\.0/64'"):
        settings_with(allowed_networks=["10.0.0.0/64"])
    several = load_settings(environment={"SLIPWAY_ALLOWED_NETWORKS": "10.0.0.0/8,192.168.0.1/16"})
    assert len(Guard.from_settings(several).networks) == 2
