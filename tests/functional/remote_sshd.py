"""A real OpenSSH server for tests, with its own port and keys; it can be killed, and given a new host key."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import uuid4

import asyncssh

from slipway.remote.connect import SshLimits
from slipway.remote.known_hosts import InMemoryKnownHosts, KnownHosts, public_text
from slipway.remote.pool import Pool
from slipway.remote.ssh_host import SshHost
from slipway.remote.target import SshTarget

LAB = Path(__file__).parents[2] / "lab" / "sshd"
ME = getpass.getuser()
OWN_KEY = asyncssh.generate_private_key("ssh-ed25519")


class Sshd:
    def __init__(self, place: Path) -> None:
        self._place = place
        self._binary = subprocess.run([LAB / "install"], check=True, capture_output=True, text=True).stdout.strip()
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        place.mkdir(parents=True, exist_ok=True)
        (place / "authorized_keys").write_bytes(OWN_KEY.export_public_key())
        self.new_host_key()

    @property
    def host_key(self) -> str:
        return public_text(asyncssh.read_public_key(self._place / "host_key.pub"))

    @property
    def log(self) -> str:
        return (self._place / "log").read_text()

    def new_host_key(self, kind: str = "ssh-ed25519") -> None:
        key = asyncssh.generate_private_key(kind)
        private = self._place / "host_key"
        private.touch(mode=0o600)
        private.write_bytes(key.export_private_key())
        key.write_public_key(self._place / "host_key.pub")

    def target(self, **changes: object) -> SshTarget:
        """A login as whoever runs the tests, with the host key pinned."""
        given = {"private_key": OWN_KEY.export_private_key().decode(), "host_key": self.host_key}
        return SshTarget(**{"address": "127.0.0.1", "username": ME, "port": self.port, **given, **changes})  # type: ignore[arg-type]

    def start(self) -> None:
        options = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self._place / "host_key",
            "AuthorizedKeysFile": self._place / "authorized_keys",
            "PidFile": "none",
            "UsePAM": "no",
            "StrictModes": "no",
            "PermitRootLogin": "prohibit-password",
            "MaxStartups": 200,
        }
        config = self._place / "config"
        config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        with (self._place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, "-D", "-e", "-f", config], stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        _until_listening(self.port, self._process)

    def kill(self) -> None:
        """The server and all its connections, at once. What they run goes on."""
        if self._process:
            for pid in (self._process.pid, *_servers_below(self._process.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@contextmanager
def running_sshd(place: Path) -> Iterator[Sshd]:
    sshd = Sshd(place)
    sshd.start()
    try:
        yield sshd
    finally:
        sshd.kill()


@asynccontextmanager
async def pooled(limits: SshLimits | None = None, known: KnownHosts | None = None) -> AsyncIterator[Pool]:
    pool = Pool(known or InMemoryKnownHosts(), limits or SshLimits())
    try:
        yield pool
    finally:
        await pool.close()


@asynccontextmanager
async def ssh_host_on(target: SshTarget, limits: SshLimits | None = None) -> AsyncIterator[SshHost]:
    async with pooled(limits) as pool:
        yield SshHost(pool, target)


@contextmanager
def throw_away_user(password: str) -> Iterator[str]:
    """A user of this machine with a password, who may use sudo. Needs root."""
    name = f"slipway-{uuid4().hex[:8]}"
    rule = Path("/etc/sudoers.d") / name
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
    try:
        subprocess.run(["chpasswd"], input=f"{name}:{password}\n", text=True, check=True)
        rule.write_text(f"{name} ALL=(ALL) NOPASSWD: ALL\n")
        yield name
    finally:
        rule.unlink(missing_ok=True)
        subprocess.run(["userdel", "--remove", "--force", name], check=True, capture_output=True)


async def until_there(path: Path, within: float = 10.0) -> None:
    """Another process makes it, so nothing can be awaited but the file itself."""
    async with asyncio.timeout(within):
        while not path.exists():  # noqa: ASYNC110, ASYNC240 - there is no event for it
            await asyncio.sleep(0.01)


def _servers_below(pid: int) -> list[int]:
    """The processes that sshd has for its connections, and theirs; not the commands they run."""
    children = _read(f"/proc/{pid}/task/{pid}/children").split()
    servers = [int(child) for child in children if _read(f"/proc/{child}/comm").startswith("sshd")]
    return [*servers, *(below for server in servers for below in _servers_below(server))]


def _read(path: str) -> str:
    """A process that ends while it is looked at has nothing to say."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(500):
        assert process.poll() is None, "sshd ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise AssertionError("sshd does not listen")
