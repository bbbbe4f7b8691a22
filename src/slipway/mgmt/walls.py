"""How far a script of a package may go: who runs it, what it may use, and what is said when it goes further."""

from __future__ import annotations

import os
import pwd
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from slipway.model.errors import StepError

PROCESSES = 64
OPEN_FILES = 256
FILE_BYTES = 64 << 20

Language = Literal["python", "bash"]


@dataclass(frozen=True)
class Walls:
    """What a script may use. `isolation` "process": also on a host that gives no namespaces, and less safe there."""

    user: str = "nobody"
    seconds: float = 600.0
    memory_bytes: int = 512 << 20
    isolation: Literal["namespaces", "process"] = "namespaces"


@dataclass(frozen=True)
class Fault:
    reason: str
    cure: str = "mend the script in the package, or what it needs; then retry."


def new_place(open_to: tuple[int, int] | None) -> Path:
    """Nobody else gets in, unless the script has to go through it."""
    place = Path(tempfile.mkdtemp(prefix="slipway-script-"))
    for name in ("root", "package", "work"):
        (place / name).mkdir()
    if open_to is not None:
        os.chown(place / "work", *open_to)
        place.chmod(0o711)
    return place


def user_of(walls: Walls) -> tuple[int, int] | None:
    """Another one when Slipway is root; None when it can't become anybody else."""
    if os.geteuid() != 0:
        return None
    try:
        known = pwd.getpwnam(walls.user)
    except KeyError:
        raise StepError(
            f"script_user: there is no user {walls.user!r} here.", cure="name one in the settings."
        ) from None
    if known.pw_uid == 0:
        raise StepError(
            "script_user: scripts of packages never run as root.", cure="name another user in the settings."
        )
    return known.pw_uid, known.pw_gid


def given_to(
    place: Path, package: str, work: str, path: str, language: Language, user: tuple[int, int] | None, walls: Walls
) -> dict[str, Any]:
    interpreter = {"python": [_python(), "-E", "-s", "-B"], "bash": ["/bin/bash"]}[language]
    return {
        "apart": walls.isolation == "namespaces",
        "place": str(place),
        "work": work,
        "uid": user and user[0],
        "gid": user and user[1],
        "see": [] if Path(sys.base_prefix).is_relative_to("/usr") else [sys.base_prefix],
        "command": [*interpreter, f"{package}/{path}"],
        "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": work},
        "memory": walls.memory_bytes,
        "limits": {
            "RLIMIT_AS": walls.memory_bytes,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": int(walls.seconds) + 1,
            "RLIMIT_FSIZE": FILE_BYTES,
            "RLIMIT_NOFILE": OPEN_FILES,
            "RLIMIT_NPROC": PROCESSES,
        },
    }


def _python() -> str:
    """The one that Slipway runs on, without what is installed for Slipway."""
    names = (f"python{sys.version_info.major}.{sys.version_info.minor}", "python3")
    found = [file for name in names if (file := Path(sys.base_prefix) / "bin" / name).exists()]
    return str(found[0] if found else sys.executable)


def fault_of(said: dict[str, Any], walls: Walls) -> Fault | None:
    match said:
        case {"exit": 0}:
            return None
        case {"exit": code}:
            return Fault(f"ended with exit code {code}")
        case {"signal": number}:
            known = {one.value: one.name for one in signal.Signals}
            return Fault(f"was ended by {known.get(number) or f'signal {number}'}")
        case {"memory": _}:
            cure = "make it smaller, or raise script_memory_bytes."
            return Fault(f"used more than {walls.memory_bytes >> 20} MiB of memory", cure)
        case {"refused": why}:
            return Fault(
                f"was not run, for it can't be kept apart on this host ({why})",
                "let Slipway make user, mount and process namespaces (Linux 5.12 or newer), or accept less with "
                'script_isolation = "process" (docs/contracts/mgmt.md).',
            )
    return Fault("was broken off from outside", "retry.")
