"""What a script reaches on the network: machines, but neither the host nor the metadata of clouds."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from slipway.mgmt.script_limits import ScriptLimits
from tests.script_sandbox import needs_sandbox
from tests.unit.mgmt.script_runs import CANARY, CUT_OFF, QUICK, answer, run

pytestmark = [needs_sandbox, pytest.mark.usefixtures("place")]


CONNECTS = """
import json, socket, sys
def tried(family, address, port, device):
    with socket.socket(family) as s:
        s.settimeout(1)
        try:
            if device:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            s.connect((address, port))
            return s.recv(100).decode()
        except OSError as error:
            return type(error).__name__
given = json.load(sys.stdin)
said = {}
for address in given["addresses"]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for device in given["devices"]:
        said[f"{address} {device}"] = tried(family, address, given["port"], device)
print(json.dumps(said))
"""


@contextmanager
def listening(address: str) -> Iterator[int]:
    """A service of the host, on all its addresses or on one; the port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family, dualstack_ipv6=address == "::") as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    with server.accept()[0] as connection:
                        connection.sendall(b"reached")

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


async def connected(
    port: int, addresses: list[str], limits: ScriptLimits = QUICK, devices: Any = (None, "tap0")
) -> Any:
    given = {"port": port, "addresses": addresses, "devices": devices}
    return await answer(CONNECTS, limits, json.dumps(given).encode())


@pytest.mark.parametrize("listens", ["127.0.0.1", "::1", "::"])
async def test_loopback_of_the_host_is_never_reached(listens: str) -> None:
    translated = ["198.51.100.2", "198.51.100.3", "198.51.100.50", "198.51.100.255", "255.255.255.255"]
    translated_6 = ["fd00::2", "fd00::3", "fd00::50", "::ffff:198.51.100.2"]
    with listening(listens) as port:
        own = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"]  # noqa: S104 - as an attack
        said = await connected(port, [*own, *translated, *translated_6])
    assert [way for way, got in said.items() if got == "reached"] == []


OTHER_HOST = f"""
ip link set lo up
for address in 169.254.169.254 169.254.170.2 100.100.100.200 203.0.113.7; do ip addr add $address/32 dev lo; done
for address in fd00:ec2::254 2001:db8::7; do ip addr add $address/128 dev lo nodad; done
echo nameserver 127.0.0.1 > "$1"
mount --bind "$1" /etc/resolv.conf
exec {sys.executable} -c "$0"
"""
RUNS_ON_IT = """
import asyncio, json, tests.unit.mgmt.test_script_reachable as here
addresses = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "::ffff:169.254.169.254", "fd00:ec2::254"]
addresses += ["198.51.100.3"]  # which is 127.0.0.1 there, for names only
with here.listening("::") as port:
    print(json.dumps(asyncio.run(here.connected(port, [*addresses, "203.0.113.7", "2001:db8::7"]))))
"""


async def test_metadata_of_clouds_is_never_reached(tmp_path: Path) -> None:
    """On a host whose services listen there: a network namespace, in which the script gets one of its own."""
    if os.geteuid() != 0:
        pytest.skip("only root makes such a host")
    words = ("unshare", "--net", "--mount", "sh", "-ec", OTHER_HOST, RUNS_ON_IT, str(tmp_path / "resolv.conf"))
    host = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    said = json.loads((await host.communicate())[0])
    assert {way.split()[0] for way, got in said.items() if got == "reached"} == {"203.0.113.7", "2001:db8::7"}
    assert said["169.254.169.254 None"] == said["fd00:ec2::254 None"] == "ConnectionRefusedError"  # at once


def address_of_this_machine() -> str | None:
    """None when it has loopback only. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, suppress(OSError):
        s.connect(("203.0.113.1", 9))
        address: str = s.getsockname()[0]
        return address
    return None


async def test_machines_are_reached_where_the_network_is_on_and_nobody_where_it_is_off() -> None:
    address = address_of_this_machine()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    with listening(address) as port:
        assert await connected(port, [address], devices=[None]) == {f"{address} None": "reached"}
        said = await connected(port, [address, "127.0.0.1"], CUT_OFF, devices=[None])
    assert "reached" not in said.values()


@pytest.mark.parametrize("limits", [QUICK, CUT_OFF])
async def test_abstract_sockets_of_the_host_are_not_there(limits: ScriptLimits) -> None:
    name = f"\0{CANARY}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        ended = await run(f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})", limits)
    assert ended.fault is not None
    assert b"ConnectionRefusedError" in ended.stderr


async def test_it_cannot_change_its_network_or_trace_and_mount() -> None:
    said = await answer(
        """
        import ctypes, json, os, socket, subprocess
        libc = ctypes.CDLL(None, use_errno=True)
        done = {
            "mount": libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
            "chroot": libc.chroot(b"/tmp"),
            "setuid": libc.setuid(0),
            "trace process 1": libc.ptrace(16, 1, 0, 0),
            "unshare": libc.unshare(0x10000000),
            "clone": libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0),
        }
        try:
            socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
            done["raw"] = 0
        except OSError:
            done["raw"] = -1
        print(json.dumps(sorted(name for name, code in done.items() if code != -1)))
        """
    )
    assert said == ([] if os.geteuid() == 0 else ["setuid"]) or said == []
