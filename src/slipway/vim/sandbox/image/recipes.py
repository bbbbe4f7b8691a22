"""How an image is made: its packages, and the scripts and files that turn a Debian into a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from slipway.vim.sandbox.image.kubernetes.versions import Release

HERE = Path(__file__).parent
SUITE = "bookworm"
MACHINE = "machine"
KUBERNETES = "kubernetes"
NAMES = (MACHINE, KUBERNETES)
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "libpam-systemd", "openssh-server", "sudo", "python3", "iproute2",
    "iputils-ping", "ca-certificates", "curl", "procps", "e2fsprogs", "util-linux", "netbase", "less", "nftables",
)  # fmt: skip
KUBERNETES_PACKAGES = (
    "containerd", "runc", "containernetworking-plugins", "conntrack", "ethtool", "socat", "iptables", "haproxy",
    "keepalived", "psmisc", "nfs-common", "nfs-ganesha", "nfs-ganesha-vfs", "libnfs-utils",
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    name: str
    packages: tuple[str, ...]
    hooks: tuple[Path, ...]  # scripts that are run on the unpacked root, in this order
    inputs: tuple[Path, ...]  # files, and directories with all that is in them but Python
    releases: tuple[Release, ...] = ()

    @property
    def digest(self) -> str:
        """Tells one way of making the image from another, so that a newer Slipway makes it anew."""
        digest = sha256("\0".join((SUITE, *self.packages, *map(repr, self.releases))).encode())
        for file in _files(self.inputs):
            digest.update(str(file.relative_to(HERE)).encode() + b"\0" + file.read_bytes())
        return digest.hexdigest()[:12]

    @property
    def file_name(self) -> str:
        return f"{self.kind}-{self.digest}.tar"

    @property
    def kind(self) -> str:
        """The same for every way of making it."""
        return "-".join((self.name, *(one.version for one in self.releases), SUITE))


def machine() -> Recipe:
    """A plain Debian with systemd and SSH."""
    return Recipe(MACHINE, PACKAGES, (HERE / "customize",), (HERE / "customize", HERE / "root"))


def kubernetes(releases: tuple[Release, ...]) -> Recipe:
    """A plain machine, and all that a cluster of these releases is made from: nothing need be downloaded on it."""
    plain, more = machine(), HERE / "kubernetes"
    return Recipe(
        KUBERNETES,
        (*plain.packages, *KUBERNETES_PACKAGES),
        (*plain.hooks, more / "customize"),
        (*plain.inputs, more / "images.py", more / "oci.py", more),
        releases,
    )


def _files(inputs: tuple[Path, ...]) -> Iterator[Path]:
    for place in inputs:
        inside = place.rglob("*") if place.is_dir() else ()
        yield from sorted(path for path in inside if path.is_file() and path.suffix not in (".py", ".pyc"))
        if place.is_file():
            yield place
