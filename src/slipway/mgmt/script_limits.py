"""How far a script of a package may go: who runs it, what it may use, and what is said when it goes further."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from slipway.mgmt.cgroup import PREFIX, maker_is_alive, own_prefix
from slipway.model.errors import StepError

TOOLS = {"bwrap": "bubblewrap", "nsenter": "util-linux"}
NETWORK_TOOLS = {"slirp4netns": "slirp4netns", "nft": "nftables", "ip": "iproute2"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Language = Literal["python", "bash"]


@dataclass(frozen=True)
class ScriptLimits:
    """What a script may use. Without `network` it has no network. `time_cure`: what helps when time was too short."""

    user: str = "nobody"
    seconds: float = 600.0
    memory_bytes: int = 512 << 20
    network: bool = True
    time_cure: str = "make it quicker, or raise script_seconds."


@dataclass(frozen=True)
class Fault:
    reason: str
    cure: str = "mend the script in the package, or what it needs; then retry."


def find_tools(limits: ScriptLimits, path: str = PATH) -> dict[str, str]:
    """The programs that make a script's sandbox, by name."""
    wanted = {**TOOLS, **(NETWORK_TOOLS if limits.network else {})}
    found = {name: file for name in wanted if (file := shutil.which(name, path=path))}
    if missing := [name for name in wanted if name not in found]:
        without = " Without slirp4netns: script_network = false cuts scripts off." if "slirp4netns" in missing else ""
        raise StepError(
            f"Scripts of packages need {', '.join(missing)}, not found on this host.",
            cure=f"apt install {' '.join(wanted[name] for name in missing)} (or your system's packages of these names)"
            f", then retry.{without}",
        )
    return found


def new_script_directory() -> Path:
    """Only its owner gets in. Its name tells whose it is, so that it can be removed when that process was killed."""
    place = Path(tempfile.mkdtemp(prefix=own_prefix()))
    (place / "package").mkdir()
    return place


def remove_stale_script_directories() -> None:
    """Of a Slipway that was killed."""
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if not maker_is_alive(place.name) and place.lstat().st_uid == os.geteuid() and not place.is_symlink():
                shutil.rmtree(place, ignore_errors=True)


def script_user(limits: ScriptLimits) -> tuple[int, int] | None:
    """Another one when Slipway is root; None when it can't change its user."""
    if os.geteuid() != 0:
        return None
    try:
        known = pwd.getpwnam(limits.user)
    except KeyError:
        raise StepError(
            f"script_user: there is no user {limits.user!r} here.", cure="name one in the settings."
        ) from None
    if known.pw_uid == 0:
        raise StepError(
            "script_user: scripts of packages never run as root.", cure="name another user in the settings."
        )
    return known.pw_uid, known.pw_gid


def interpreter(language: Language) -> list[str]:
    return {"python": [_python(), "-E", "-s", "-B"], "bash": ["/bin/bash"]}[language]


def python_home() -> Path:
    return Path(sys.base_prefix)


def _python() -> str:
    """The one that Slipway runs on, without what is installed for Slipway."""
    names = (f"python{sys.version_info.major}.{sys.version_info.minor}", "python3")
    found = [file for name in names if (file := Path(sys.base_prefix) / "bin" / name).exists()]
    return str(found[0] if found else sys.executable)


def too_much_memory(limits: ScriptLimits) -> Fault:
    used = f"used more than {limits.memory_bytes >> 20} MiB of memory"
    return Fault(used, "make it smaller, or raise script_memory_bytes.")


def sandbox_failed(why: str) -> Fault:
    return Fault(
        f"was not run, for it can't be kept apart on this host ({why})",
        "let Slipway make user, mount, process and network namespaces (docs/contracts/mgmt.md), then retry.",
    )


def fault_from_status(status: dict[str, Any], stderr: bytes) -> Fault | None:
    """`status` by bwrap, which counts an end by signal N as exit code 128 + N, as a shell does."""
    code = status.get("exit-code")
    if code == 0:
        return None
    if code is None:
        why = stderr.decode(errors="replace").strip().splitlines()[-1:]
        return sandbox_failed("".join(why) or "bwrap was ended")
    if 128 < code <= 128 + signal.SIGRTMAX:
        known = {one.value: one.name for one in signal.Signals}
        return Fault(f"was ended by {known.get(code - 128) or f'signal {code - 128}'}")
    return Fault(f"ended with exit code {code}")
