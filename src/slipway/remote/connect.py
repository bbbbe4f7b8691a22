"""Logging in: the host key first, then our key, then our password; and the limits of everything that is done by SSH."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import asyncssh

from slipway.remote import errors
from slipway.remote.known_hosts import KnownHosts, algorithms_for, changed, expected_key
from slipway.remote.private_key import TooManyRounds, read_private_key
from slipway.remote.target import SshTarget

UNANSWERED = 3  # keep-alive questions without an answer: the other side is gone
KIB = 1024


async def connect(target: SshTarget, known: KnownHosts, limits: SshLimits) -> asyncssh.SSHClientConnection:
    keys = await _own_keys(target, limits)
    try:
        async with asyncio.timeout(limits.connect):
            expected = await expected_key(target, known)
            return await _log_in(target, keys, expected, limits)
    except TimeoutError:
        raise errors.login_timed_out(target, limits.connect) from None
    except asyncssh.KeyExchangeFailed as error:
        raise errors.no_common_algorithm(target, error) from error
    except asyncssh.PermissionDenied:
        raise errors.login_refused(target) from None
    except (OSError, asyncssh.Error) as error:
        raise errors.unreachable(target, error) from error


async def _log_in(
    target: SshTarget, keys: list[asyncssh.SSHKey], expected: asyncssh.SSHKey, limits: SshLimits
) -> asyncssh.SSHClientConnection:
    guard = _Guard(expected)
    try:
        connection, _ = await asyncssh.create_connection(
            lambda: guard,
            target.address,
            target.port,
            username=target.username,
            client_keys=keys or None,
            password=target.password,
            known_hosts=([], [], []),  # nothing is trusted but by the guard
            server_host_key_algs=algorithms_for(expected),
            keepalive_interval=limits.keep_alive,
            keepalive_count_max=UNANSWERED,
            # Nothing of the user Slipway runs as: no configuration, agent, certificates or tickets.
            config=None,
            agent_path=None,
            x509_trusted_certs=None,
            gss_host=None,
            login_timeout=0,  # ours is around everything
        )
    except asyncssh.HostKeyNotVerifiable:
        raise changed(target, expected, guard.shown) from None
    return connection


class _Guard(asyncssh.SSHClient):
    """Lets exactly one host key pass."""

    def __init__(self, expected: asyncssh.SSHKey) -> None:
        self._expected = expected
        self.shown: asyncssh.SSHKey | None = None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.shown = key
        return key == self._expected


async def _own_keys(target: SshTarget, limits: SshLimits) -> list[asyncssh.SSHKey]:
    if target.private_key is None:
        return []
    try:
        async with asyncio.timeout(limits.connect):
            return [await asyncio.to_thread(read_private_key, target.private_key, target.passphrase)]
    except (TooManyRounds, TimeoutError):
        raise errors.slow_key(target) from None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
        raise errors.unreadable_key(target) from None


@dataclass(frozen=True)
class SshLimits:
    """Times in seconds."""

    connect: float = 20.0  # until logged in
    command: float = 120.0  # for a command that is given no limit of its own
    unreachable: float = 90.0  # without a byte on stdout or stderr
    keep_alive: float = 10.0  # between two questions whether the other side is there; three without an answer: lost
    idle: float = 60.0  # an unused connection is closed after this
    commands_per_host: int = 8  # at once; sshd allows 10 in one connection
    connections: int = 256  # in all
    kept_output: int = 256 * KIB  # of stdout and of stderr each: the end of it
    file: int = 16 * KIB * KIB  # the largest file that `get` reads
    reconnect: float = 90.0  # a named job is asked after for this long while its machine can't be reached
    watch: float = 15.0  # one question after a named job waits this long for its end
