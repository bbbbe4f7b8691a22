"""The network of a script: its own namespace, from which `slirp4netns` makes connections in the host's name.

The host's loopback is another one than the script's, so no service that listens there is reached, nor an abstract
UNIX socket. A packet filter inside, which the script has no right to change, refuses what slirp4netns would
translate to the host itself, and the addresses where clouds give away credentials.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

from slipway.model.errors import StepError
from slipway.outgoing.addresses import LOCAL_NAT64, METADATA, NAT64

ADDRESSES = "198.51.100.0/24"  # a network for documentation: no machine has such an address
OWN, ROUTER, RESOLVER = "198.51.100.100", "198.51.100.2", "198.51.100.3"
ADDRESSES_6 = "fd00::/64"  # slirp4netns has no other
OWN_6, ROUTER_6 = "fd00::100", "fd00::2"


def _behind_nat64(network: IPv4Network) -> str:
    """Where a translator of the host's network would send packets on to `network`."""
    first = int(NAT64.network_address) | int(network.network_address)
    return str(IPv6Network((first, 96 + network.prefixlen)))


# One network must not lie in another: nft refuses such a set.
_NO_CLOUD = ("127.0.0.0/8", "169.254.0.0/16", *sorted(str(one) for one in METADATA if isinstance(one, IPv4Address)))
_WIDER_6 = ("fd00:ec2::/32", "fd20:ce::/64")  # the networks of AWS and Google around their metadata addresses
DENIED = (*_NO_CLOUD, ADDRESSES)
DENIED_6 = (
    "::1",
    *_WIDER_6,
    *sorted(
        str(one)
        for one in METADATA
        if isinstance(one, IPv6Address) and not any(one in IPv6Network(wider) for wider in _WIDER_6)
    ),
    *(_behind_nat64(IPv4Network(network)) for network in _NO_CLOUD),
    str(LOCAL_NAT64),
    ADDRESSES_6,
)
LONGEST = 10.0  # seconds until it is there

FILTER = f"""
table inet script {{
  chain output {{
    type filter hook output priority 0; policy accept;
    oif lo accept
    meta l4proto ipv6-icmp accept
    ip daddr {RESOLVER} udp dport 53 accept
    ip daddr {RESOLVER} tcp dport 53 accept
    ip daddr {{ {", ".join(DENIED)} }} goto deny
    ip6 daddr {{ {", ".join(DENIED_6)} }} goto deny
  }}
  chain deny {{
    meta l4proto tcp reject with tcp reset
    reject with icmpx type admin-prohibited
  }}
}}
"""
BEFORE = "echo 0 > /proc/sys/user/max_user_namespaces"  # no namespace of its own in which it would be root
FILTERED = f"{BEFORE} && nft -f -"


def addresses(*, ipv6: bool) -> str:
    """Shell commands for the interface that slirp4netns made.

    slirp4netns announces itself as a router, and on a busy host the kernel may have heard that before we are at it:
    the default route is there then, and replacing it is no error.
    """
    commands = [
        "ip link set tap0 mtu 65520 up",
        f"ip addr add {OWN}/24 dev tap0",
        f"ip route add default via {ROUTER} dev tap0",
    ]
    if ipv6:
        commands += [
            f"ip -6 addr add {OWN_6}/64 dev tap0 nodad",
            f"ip -6 route replace default via {ROUTER_6} dev tap0",
        ]
    return " && ".join(commands)


def resolv_conf(hosts: str) -> str:
    """The host's, with slirp4netns as the one name server: the host's own may listen on loopback only."""
    kept = [line for line in hosts.splitlines() if line.split()[:1] in (["search"], ["domain"], ["options"])]
    return "\n".join([f"nameserver {RESOLVER}", *kept, ""])


@contextlib.asynccontextmanager
async def namespaces_ready(process: int, tools: Mapping[str, str], *, network: bool) -> AsyncIterator[None]:
    """While this lasts, the namespaces of `process`, which waits, have what a script needs.

    The filter is there before the network: should the process go on too early, it reaches no address.
    """
    enter = [tools["nsenter"], f"--target={process}", "--user", "--net", "--preserve-credentials", "--"]
    if not network:
        await asyncio.to_thread(_run, enter, BEFORE)
        yield
        return
    await asyncio.to_thread(_run, enter, FILTERED, FILTER)
    ipv6 = _host_has_ipv6()
    slirp = _Slirp(process, tools["slirp4netns"], ipv6=ipv6)
    try:
        await slirp.ready()
        await asyncio.to_thread(_run, enter, addresses(ipv6=ipv6))
        yield
    finally:
        await asyncio.to_thread(slirp.end)


def _host_has_ipv6() -> bool:
    return Path("/proc/net/if_inet6").exists()


def _run(enter: list[str], commands: str, stdin: str = "") -> None:
    """In the script's namespaces, with all rights there."""
    try:
        done = subprocess.run(
            [*enter, "/bin/sh", "-c", commands],
            input=stdin.encode(),
            capture_output=True,
            timeout=LONGEST,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
    except subprocess.TimeoutExpired:
        raise _no_network(f"timed out after {LONGEST:g} s in nsenter") from None
    if done.returncode:
        raise _no_network(done.stderr.decode(errors="replace").strip())


class _Slirp:
    """It ends when the pipe to it is closed, so also when Slipway is killed."""

    def __init__(self, process: int, program: str, *, ipv6: bool) -> None:
        its_end, self._hold = os.pipe()
        self._ready, its_ready = os.pipe()
        words = ["--disable-host-loopback", f"--cidr={ADDRESSES}", "--mtu=65520", f"--exit-fd={its_end}"]
        words += [f"--ready-fd={its_ready}", "--enable-seccomp"]
        words += ["--enable-ipv6"] if ipv6 else []
        words += ["--enable-sandbox"] if os.geteuid() == 0 else []
        try:
            self._process = subprocess.Popen(
                [program, *words, str(process), "tap0"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(its_end, its_ready),
                start_new_session=True,
                env={"PATH": os.defpath},
            )
        except BaseException:
            os.close(self._hold)
            os.close(self._ready)
            raise
        finally:
            os.close(its_end)
            os.close(its_ready)

    async def ready(self) -> None:
        try:
            async with asyncio.timeout(LONGEST):
                await readable(self._ready)
        except TimeoutError:
            raise _no_network(f"timed out after {LONGEST:g} s waiting for slirp4netns") from None
        if os.read(self._ready, 1) != b"1":
            raise _no_network(await asyncio.to_thread(self.end))

    def end(self) -> str:
        """What it said. May be called again."""
        for end in (self._hold, self._ready):
            if end >= 0:
                os.close(end)
        self._hold = self._ready = -1
        if self._process.returncode is not None:
            return ""
        try:
            said = self._process.communicate(timeout=LONGEST)[1]
        except subprocess.TimeoutExpired:
            self._process.kill()
            said = self._process.communicate()[1]
        return said.decode(errors="replace").strip()


async def readable(descriptor: int) -> None:
    """Until there is something to read, or the other end is closed."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def _no_network(why: str) -> StepError:
    return StepError(
        f"The network of a package's script can't be set up on this host: {why.replace(os.linesep, ' ')}.",
        cure="mend that (docs/contracts/mgmt.md says what it needs), or cut scripts off with script_network = false.",
    )
