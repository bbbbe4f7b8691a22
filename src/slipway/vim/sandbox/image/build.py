"""Makes the machine image: a Debian from its packages by mmdebstrap, kept as a file, imported into the engine.

The file outlives engines, so that the slow part happens once on a machine. Nothing comes from an image registry.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from slipway.model.errors import VimError, VimFault

HERE = Path(__file__).parent
SUITE = "bookworm"
LIMIT = 1800.0  # seconds; a machine under load has needed 300
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "libpam-systemd", "openssh-server", "sudo", "python3", "iproute2",
    "iputils-ping", "ca-certificates", "curl", "procps", "e2fsprogs", "util-linux", "netbase", "less", "nftables",
)  # fmt: skip
Say = Callable[[str], None]
_STAGE = re.compile(r"^I: (.+)$")


def recipe() -> str:
    """Tells one way of making the image from another, so that a newer Slipway makes it anew."""
    digest = sha256("\0".join((SUITE, *PACKAGES)).encode())
    for file in sorted(path for path in HERE.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        if file.suffix != ".py":
            digest.update(str(file.relative_to(HERE)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def cached_image(cache: Path) -> Path:
    """Where the image's file is, made or not."""
    return cache / "images" / f"machine-{SUITE}-{recipe()}.tar"


def build_image(target: Path, say: Say) -> None:
    """Make the file. It gets its name when it is whole; a crash leaves a part that the next build overwrites."""
    program = shutil.which("mmdebstrap")
    if program is None:
        raise VimError(
            "mmdebstrap, which makes the machine image, is not there.",
            VimFault.PERMANENT,
            cure="apt-get install mmdebstrap",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part.tar")
    tail: list[str] = []
    process = subprocess.Popen(
        _command(program, part),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    with process:
        try:
            for line in _lines(process, time.monotonic() + LIMIT):
                tail = [*tail[-19:], line]
                if stage := _STAGE.match(line):
                    say(stage[1])
        finally:
            if process.poll() is None:
                process.kill()
    if process.returncode:
        raise VimError(
            f"mmdebstrap ended with {process.returncode}: {' / '.join(tail[-5:])}",
            VimFault.PERMANENT,
            cure="see that Debian's package mirror can be reached, and that there is room on the disk.",
        )
    part.rename(target)


def _command(program: str, target: Path) -> list[str]:
    no_daemons = r'printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"; chmod 755 "$1/usr/sbin/policy-rc.d"'
    without = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*")
    return [
        program,
        "--variant=minbase",
        "--mode=root",
        f"--include={','.join(PACKAGES)}",
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={path}" for path in without),
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        '--aptopt=Acquire::Languages "none"',
        f"--essential-hook={no_daemons}",
        f'--customize-hook=sh "{HERE / "customize"}" "$1"',
        SUITE,
        str(target),
    ]


def _lines(process: subprocess.Popen[bytes], deadline: float) -> Iterator[str]:
    """What it prints, line by line, until it ends or the time is up."""
    assert process.stdout is not None  # noqa: S101 - asked for above
    rest = b""
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not ready.select(max(0.0, deadline - time.monotonic())):
                raise VimError(f"The machine image was not made within {LIMIT:.0f} s.", VimFault.TEMPORARY)
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            *whole, rest = re.split(rb"[\r\n]+", rest + chunk)
            yield from (line.decode(errors="replace") for line in whole if line)
    if rest:
        yield rest.decode(errors="replace")
