"""Memory of all processes of a script together, with its files in memory: a cgroup's limit, where there is one.

Where there is none (a container that may not make any, another user than root without a delegated one) the
processes are counted five times a second instead: a limit that a quick script passes for a moment.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from slipway.waiting import Backoff

ROOT = Path("/sys/fs/cgroup")
PREFIX = "slipway-script-"
REMOVE_SECONDS = 1.0  # until its processes are dead


class Cgroup:
    """A new cgroup below `parent`, of version 1 or 2."""

    def __init__(self, parent: Path, memory_bytes: int) -> None:
        self.path = parent / f"{own_prefix()}{os.urandom(6).hex()}"
        self.path.mkdir()
        self._version2 = (self.path / "memory.max").exists()
        try:
            for name, value in self._limits(memory_bytes):
                (self.path / name).write_text(value)
        except OSError:
            self.path.rmdir()
            raise

    def _limits(self, memory_bytes: int) -> Iterator[tuple[str, str]]:
        """No swap beside it, where swap is counted."""
        limit, swap = ("memory.max", "memory.swap.max") if self._version2 else (
            "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")  # fmt: skip
        yield limit, str(memory_bytes)
        if (self.path / swap).exists():
            yield swap, "0" if self._version2 else str(memory_bytes)
        if self._version2:
            yield "memory.oom.group", "1"

    @property
    def procs(self) -> Path:
        return self.path / "cgroup.procs"

    def exceeded(self) -> bool:
        """Whether the kernel ended a process in it for want of memory."""
        events = self.path / ("memory.events" if self._version2 else "memory.oom_control")
        counted = dict(line.split() for line in events.read_text().splitlines())
        return int(counted.get("oom_kill", 0)) > 0

    def remove(self) -> None:
        remove(self.path)


def remove(path: Path, kill: Callable[[int, int], None] = os.kill) -> None:
    """With all that is in it. A process of another PID namespace is shown as 0, which would mean our own group."""
    backoff = Backoff(0.02, 0.02, timeout=REMOVE_SECONDS)
    while True:
        try:
            path.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            for pid in map(int, _read(path / "cgroup.procs").split()):
                if pid > 0:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        kill(pid, signal.SIGKILL)
            if not backoff.sleep():
                return
        else:
            return


def make_cgroup(memory_bytes: int, parents: Callable[[], Iterator[Path]] | None = None) -> Cgroup | None:
    """In the first place where it can be made; None where there is no such place."""
    for parent in (parents or possible_parents)():
        with contextlib.suppress(OSError):
            return Cgroup(parent, memory_bytes)
    return None


def possible_parents(root: Path = ROOT, own: str | None = None) -> Iterator[Path]:
    """Version 1: our own. Version 2, where a cgroup with processes gives no controller to those below it: the
    nearest above us that gives memory to its children."""
    text = own if own is not None else Path("/proc/self/cgroup").read_text()
    for line in text.splitlines():
        _, controllers, name = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield root / "memory" / name.lstrip("/")
        elif controllers == "":
            top = root / "unified" if (root / "unified").is_dir() else root
            here = top / name.lstrip("/")
            for path in (here, *here.parents):
                if path.is_relative_to(top) and "memory" in _read(path / "cgroup.subtree_control").split():
                    yield path


def remove_stale_cgroups(parents: Callable[[], Iterator[Path]] | None = None) -> None:
    """Of a Slipway that was killed. Its scripts died with it; what may still be there is ended here."""
    for parent in (parents or possible_parents)():
        for path in parent.glob(f"{PREFIX}*"):
            if not maker_is_alive(path.name):
                remove(path)


def own_prefix() -> str:
    """How names begin of what this process makes: PIDs mean something in one PID namespace only."""
    return f"{PREFIX}{_pid_namespace()}-{os.getpid()}-"


def maker_is_alive(name: str) -> bool:
    """Whether the Slipway that made `slipway-script-NAMESPACE-PID-...` runs, or may run in another namespace."""
    namespace, _, rest = name.removeprefix(PREFIX).partition("-")
    pid, _, _ = rest.partition("-")
    if namespace != str(_pid_namespace()) or not pid.isdigit():
        return True
    state = _read(Path("/proc", pid, "stat")).rpartition(")")[2].split()[:1]
    return state not in ([], ["Z"])


def _pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def memory_used(namespace: Path) -> int:
    """Of all processes in a process namespace: what they have mapped, and files without a name that they hold."""
    used, files = 0, dict[tuple[int, int], int]()
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if (process / "ns" / "pid").readlink() != namespace:
                continue
            for line in (process / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    used += int(line.split()[1]) << 10
            for file in (process / "fd").iterdir():
                status = file.stat()
                if status.st_nlink == 0:
                    files[status.st_dev, status.st_ino] = status.st_blocks * 512
    return used + sum(files.values())


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
