"""HAProxy on a simulated host: a load balancer of its own, as far as our scripts ask.

What is live is the file; `haproxy -c` is that each line is one of those that the template has. A port that something
else listens at is a file below LISTENING, whose content is the program's name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from slipway.remote.output import Result
from slipway.simulator.cluster.addresses import HAPROXY
from slipway.simulator.cluster.host import SimulatedHost

PROGRAM = "/usr/sbin/haproxy"
REVISION = "/var/lib/slipway/load-balancer.revision"
LISTENING = "/run/listening"
DONE = Result(0, b"", b"")
LATER = Result(0, b"later\n", b"")
_LINE = re.compile(r"(global|defaults|frontend [\w-]+|backend [\w-]+|    [a-z][^\x00-\x1f]*)")
VERBS = ("install", "add", "remove", "reinstall")


def install(host: SimulatedHost) -> Result:
    host.write(PROGRAM, "haproxy", 0o755)
    return DONE


def fence(host: SimulatedHost, revision: str) -> Result:
    """Whether no later change has been here."""
    noted = host.files.get(REVISION)
    if noted is not None and int(noted.content) > int(revision):
        return LATER
    host.write(REVISION, revision)
    return DONE


def apply(host: SimulatedHost, arguments: Sequence[str], config: bytes) -> Result:
    revision, mark, *ports = arguments
    if PROGRAM not in host.files:
        return Result(127, b"", b"sh: 1: haproxy: not found\n")
    if (begun := fence(host, revision)) != DONE:
        return begun
    lines = config.decode().splitlines()
    for number, line in enumerate(lines, start=1):
        if not _LINE.fullmatch(line):
            said = f"[ALERT] (1) : config : parsing [{HAPROXY}:{number}] : unknown keyword in '{line}'\n"
            return Result(1, b"", said.encode())
    if f"    description {mark}" not in lines:
        return Result(1, b"", b"haproxy did not take the new configuration; the old one is live again\n")
    for port in ports:
        if taken := host.files.get(f"{LISTENING}/{port}"):
            said = f'port {port} is in use by "{taken.content.decode()}"; the old configuration stays\n'
            return Result(1, b"", said.encode())
    host.write(HAPROXY, config, 0o600)
    return DONE


def own_script(host: SimulatedHost, given: str) -> Result | None:
    """A package's script that sets up a balancer, by its first option: it writes down what it was told."""
    words = shlex.split(next(line for line in given.splitlines() if line.startswith("set --")))[2:]
    if not words or words[0] not in VERBS:
        return None
    host.write(HAPROXY, "\n".join(words) + "\n")
    return DONE
