"""The addresses of this machine, as the kernel routes them: what is sent there never leaves it.

Read from /proc, where all of them are: further ones of an interface, those of bridges and tunnels, whole networks that
are routed to this machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from slipway.outgoing.addresses import Address, Network

FRESH = 5.0  # seconds
_LEAF = re.compile(r"\|-- ([0-9.]+)\n((?:\s+/[0-9]+ .*\n?)+)")
_LOCAL = re.compile(r"/([0-9]+) \S+ LOCAL")
_FLAGS = 0x80000000 | 0x00100000  # of a route in IPv6: local, anycast


class OwnAddresses:
    def __init__(self, proc: Path = Path("/proc/net"), clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._known: tuple[Network, ...] = ()
        self._until = float("-inf")

    def __call__(self, address: Address) -> bool:
        if self._clock() >= self._until:
            self._known = (*_ipv4(self._read_proc("fib_trie")), *_ipv6(self._read_proc("ipv6_route")))
            self._until = self._clock() + FRESH
        return any(address in network for network in self._known)

    def _read_proc(self, name: str) -> str:
        try:
            return (self._proc / name).read_text()
        except FileNotFoundError:  # a kernel without IPv6
            return ""


def _ipv4(trie: str) -> set[IPv4Network]:
    leaves = ((match[1], _LOCAL.findall(match[2])) for match in _LEAF.finditer(trie))
    return {IPv4Network(f"{address}/{length}", strict=False) for address, lengths in leaves for length in lengths}


def _ipv6(routes: str) -> set[IPv6Network]:
    found: set[IPv6Network] = set()
    for line in routes.splitlines():
        fields = line.split()
        if len(fields) >= 10 and int(fields[8], 16) & _FLAGS:
            network = ip_network((int(fields[0], 16).to_bytes(16), int(fields[1], 16)), strict=False)
            found.add(IPv6Network(network))
    return found
