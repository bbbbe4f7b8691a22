"""The argument list of `bwrap` for one script of a package: what the script sees, who it is, and what it may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "alternatives", "ca-certificates", "group", "gai.conf", "host.conf", "hosts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "nsswitch.conf", "passwd", "pki/ca-trust", "pki/tls/certs", "protocols",
    "services", "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
PACKAGE, MODULES, WORK = "/package", "/modules", "/work"
PROCESSES = 64
OPEN_FILES = 256
FILE_BYTES = 64 << 20  # of one file, and of all files in each of the places where the script may make some
BECOME_ANOTHER_USER = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")  # given up before the script begins


@dataclass(frozen=True)
class Pipes:
    """Descriptors that bwrap is started with: where it says which process is the first inside and how the script
    ended, and where it waits until its user and its network are there."""

    info: int
    status: int
    wait: int


@dataclass(frozen=True)
class SandboxedScript:
    """`user` is None when Slipway can't change its user. `etc` are files of ours in place of the host's. `modules` is a
    directory with Python modules of ours, where it is to have some."""

    command: Sequence[str]
    package: Path
    python: Path
    user: tuple[int, int] | None
    seconds: float
    memory_bytes: int
    etc: Mapping[str, Path]
    modules: Path | None = None


def bwrap_arguments(script: SandboxedScript, pipes: Pipes) -> list[str]:
    """Without bwrap's own name. Nothing of the host can be seen but what is named here, and it can't be written."""
    return [
        *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
        *("--info-fd", str(pipes.info), "--json-status-fd", str(pipes.status), "--userns-block-fd", str(pipes.wait)),
        *("--cap-drop", "ALL"),
        *(word for right in BECOME_ANOTHER_USER if script.user for word in ("--cap-add", right)),
        *_files(script),
        *("--chdir", WORK, "--", "/bin/bash", "-c", f'exec {pipes.wait}<&-; exec "$@"', "bash"),  # bwrap leaves it open
        *("/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", f"HOME={WORK}"),
        *_limits(script),
        *_switch_user(script.user),
        *script.command,
    ]


def _files(script: SandboxedScript) -> list[str]:
    own_python = [] if script.python.is_relative_to("/usr") else [str(script.python)]
    words = [word for path in SYSTEM for word in _system(Path(path))]
    for path in (*own_python, *(f"/etc/{name}" for name in ETC)):
        words += [*_open_parents(path), "--ro-bind-try", path, path]
    for name, file in script.etc.items():
        words += ["--ro-bind", str(file), f"/etc/{name}"]
    if script.modules:
        words += ["--ro-bind", str(script.modules), MODULES]
    words += ["--ro-bind", str(script.package), PACKAGE, "--proc", "/proc", "--dev", "/dev"]
    for path in ("/dev/shm", "/tmp", WORK):  # noqa: S108 - its own
        words += ["--perms", "1777", "--size", str(FILE_BYTES), "--tmpfs", path]
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/"]


def _system(path: Path) -> list[str]:
    """Where /bin is /usr/bin by a symbolic link, it is one inside, too."""
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind-try", str(path), str(path)]


def _open_parents(path: str) -> list[str]:
    """bwrap would make them for root alone."""
    parents = reversed(Path(path).parents[:-1])
    return [word for parent in parents for word in ("--perms", "0755", "--dir", str(parent))]


def _limits(script: SandboxedScript) -> list[str]:
    """Per process; memory of all together is the cgroup's. When memory runs out the kernel takes the script first."""
    limits = {
        "as": script.memory_bytes,
        "core": 0,
        "cpu": int(script.seconds) + 1,
        "fsize": FILE_BYTES,
        "nofile": OPEN_FILES,
        "nproc": PROCESSES,
    }
    said = (f"--{name}={most}:{most}" for name, most in limits.items())
    return ["nice", "-n", "10", "choom", "-n", "1000", "--", "prlimit", *said, "--"]


def _switch_user(user: tuple[int, int] | None) -> list[str]:
    if user is None:
        return []
    who = (f"--reuid={user[0]}", f"--regid={user[1]}", "--clear-groups")
    return ["setpriv", *who, "--inh-caps=-all", "--bounding-set=-all", "--"]
