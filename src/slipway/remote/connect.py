"""One login: the host key first, then our key, then our password; each way to fail has its own words."""

from __future__ import annotations

import asyncio

import asyncssh

from slipway.remote import failure
from slipway.remote.known_hosts import KnownHosts, algorithms_for, changed, expected_key
from slipway.remote.limits import Limits
from slipway.remote.private_key import TooManyRounds, read_private_key
from slipway.remote.target import Target

UNANSWERED = 3  # keep-alive questions without an answer: the other side is gone


async def connect(target: Target, known: KnownHosts, limits: Limits) -> asyncssh.SSHClientConnection:
    keys = await _own_keys(target, limits)
    try:
        async with asyncio.timeout(limits.connect):
            expected = await expected_key(target, known)
            return await _log_in(target, keys, expected, limits)
    except TimeoutError:
        raise failure.no_answer(target, limits.connect) from None
    except asyncssh.KeyExchangeFailed as error:
        raise failure.nothing_in_common(target, error) from error
    except asyncssh.PermissionDenied:
        raise failure.login_refused(target) from None
    except (OSError, asyncssh.Error) as error:
        raise failure.not_reached(target, error) from error


async def _log_in(
    target: Target, keys: list[asyncssh.SSHKey], expected: asyncssh.SSHKey, limits: Limits
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


async def _own_keys(target: Target, limits: Limits) -> list[asyncssh.SSHKey]:
    if target.private_key is None:
        return []
    try:
        async with asyncio.timeout(limits.connect):
            return [await asyncio.to_thread(read_private_key, target.private_key, target.passphrase)]
    except (TooManyRounds, TimeoutError):
        raise failure.slow_key(target) from None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
        raise failure.unreadable_key(target) from None
