"""Where the sandbox keeps things: what must last in its directory, what must end with the machine's uptime in /run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shlex import quote

USUAL = "sandbox"  # the sandbox's directory in the data directory, unless it was set


def default_cache() -> Path:
    """What can be made again, at a price: images."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway"


@dataclass(frozen=True)
class SandboxPaths:
    """`directory` lasts: engine storage and the key to machines. `cache` is shared by all sandboxes of a user."""

    directory: Path
    cache: Path

    @property
    def tag(self) -> str:
        """Tells this sandbox from others on the machine, in names that must be short."""
        return sha256(str(self.directory.absolute()).encode()).hexdigest()[:8]

    @property
    def runtime(self) -> Path:
        """A short path, for sockets have at most 108 characters; gone after a restart of the machine, as it should."""
        base = Path("/run") if os.geteuid() == 0 else Path(os.environ.get("XDG_RUNTIME_DIR", "/tmp"))  # noqa: S108
        return base / "slipway" / self.tag

    @property
    def socket(self) -> Path:
        return self.runtime / "engine.sock"

    @property
    def scratch(self) -> Path:
        """The engine's own temporary files: Podman leaves a copy of every image that it is given."""
        return self.directory / "scratch"

    @property
    def key(self) -> Path:
        """The private key that every machine lets in."""
        return self.directory / "keys" / "id_ed25519"

    def build_command(self, image: str) -> str:
        """What a person types to have an image made for this sandbox, and for no other."""
        command = f"slipway sandbox image build {image}"
        if self.directory.name == USUAL:
            return f"{command} --data-dir {quote(str(self.directory.absolute().parent))}"
        return f"SLIPWAY_SANDBOX_DIR={quote(str(self.directory.absolute()))} {command}"
