"""Which machine is that? Its host key decides, before any secret is sent.

A pinned key must match. An unknown one is written down once, through a store that the caller gives; whoever comes
second is held to what the first wrote. There is no way to go on with a key that is not written down.
"""

from __future__ import annotations

from typing import Protocol

import asyncssh

from slipway.model.errors import StepError
from slipway.remote.target import SshTarget

# Plain keys only: a host certificate would shift the trust to whoever signed it.
ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)


class KnownHosts(Protocol):
    """Keeps host keys, as OpenSSH public key text, by address."""

    async def pinned(self, address: str) -> str | None: ...

    async def record(self, address: str, key: str) -> str:
        """Keep `key` unless there is one already; the key that stands, in one transaction."""
        ...


class InMemoryKnownHosts:
    """Known hosts in memory, for as long as this process lives."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}

    async def pinned(self, address: str) -> str | None:
        return self.keys.get(address)

    async def record(self, address: str, key: str) -> str:
        return self.keys.setdefault(address, key)


async def expected_key(target: SshTarget, known: KnownHosts) -> asyncssh.SSHKey:
    """The key this target must show; asked of the machine, and recorded, when it is not known yet."""
    text = target.host_key or await known.pinned(target.known_as)
    if text is None:
        shown = await asyncssh.get_server_host_key(
            target.address, target.port, server_host_key_algs=ALGORITHMS, config=None
        )
        if shown is None:
            raise StepError(f"{target} shows no host key.", temporary=True)
        text = await known.record(target.known_as, public_text(shown))
    try:
        return asyncssh.import_public_key(text)
    except asyncssh.KeyImportError:
        raise StepError(
            f"The host key pinned for {target} can't be read.", cure="pin it as 'ssh-ed25519 AAAA...'."
        ) from None


def algorithms_for(key: asyncssh.SSHKey) -> list[str]:
    """The expected kind first, so that a machine with several keys shows it; the others, to name a changed key."""
    own = [name.decode() for name in key.sig_algorithms]
    return sorted(ALGORITHMS, key=lambda name: name not in own)


def public_text(key: asyncssh.SSHKey) -> str:
    """Kind and key, without the comment."""
    return " ".join(key.export_public_key().decode().split()[:2])


def changed(target: SshTarget, expected: asyncssh.SSHKey, shown: asyncssh.SSHKey | None) -> StepError:
    came = shown.get_fingerprint() if shown else "a certificate"
    return StepError(
        f"The host key of {target} has changed: expected {expected.get_fingerprint()}, it shows {came}."
        " Nothing was sent to it.",
        cure="if the machine was replaced, heal it, for a heal expects a new key, or pin the new one;"
        " if not, another machine answers at its address.",
    )
