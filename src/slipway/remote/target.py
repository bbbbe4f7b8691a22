"""Who is meant: one machine's address, and how to log in to it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from slipway.model.errors import StepError

SSH_PORT = 22


@dataclass(frozen=True)
class SshTarget:
    """A login on a machine. Its secrets are in clear: made for one step, never stored, never printed."""

    address: str  # IPv4 or IPv6
    username: str
    port: int = SSH_PORT
    private_key: str | None = field(default=None, repr=False)  # OpenSSH or PEM text, tried before the password
    passphrase: str | None = field(default=None, repr=False)  # opens the key
    password: str | None = field(default=None, repr=False)
    host_key: str | None = None  # pinned: "ssh-ed25519 AAAA..."; None: what the known hosts say
    machine: str | None = None  # the VIM's own id: an address may be another machine's by now

    def __post_init__(self) -> None:
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            raise StepError(f"{self.address!r} is not an IPv4 or IPv6 address.") from None
        for name in ("private_key", "passphrase", "password"):  # stored unseen, whatever a request gave for them
            if not isinstance(getattr(self, name), str | None):
                raise StepError(f"The {name} for {self} is not text.", cure="write it in quotes.")

    @property
    def known_as(self) -> str:
        """The name its host key is kept under: the machine's, or else the address as OpenSSH writes it."""
        return self.machine or self._place

    def __str__(self) -> str:
        return f"{self.username}@{self._place}"

    @property
    def _place(self) -> str:
        return self.address if self.port == SSH_PORT else f"[{self.address}]:{self.port}"
