"""A program of its own: puts walls around one script of a package, runs it, and leaves no process of it behind.

It is started with `python -I -S`, imports nothing of Slipway, and is given JSON as its argument. Three processes:

    the watcher     outside; ends the script when its lifeline closes, that is when Slipway wants it or is dead
    the first one   process 1 of the script's own world; when it ends, the kernel ends all that is in there
    the script      another user or no user at all, few rights, limits, and only the files it needs

How it went is one line of JSON on a pipe: {"exit": 3}, {"signal": 9}, {"memory": 600000000} or {"refused": "why"}.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

NEW_MOUNTS, NEW_UTS, NEW_IPC, NEW_USERS, NEW_PIDS = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000
NO_SUID, NO_DEVICES, NO_EXEC, BIND, RECURSIVE, PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
DETACH = 2
MOUNT_SETATTR, AT_HERE, AT_RECURSIVE, READ_ONLY = 442, -100, 0x8000, 1
PARENT_DEATH_SIGNAL, DROP_BOUNDING, SUBREAPER, NO_NEW_PRIVILEGES, SET_DUMPABLE = 1, 24, 36, 38, 4

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ETC = (
    "alternatives", "ca-certificates", "group", "gai.conf", "host.conf", "hosts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "nsswitch.conf", "passwd", "pki/ca-trust", "pki/tls/certs", "protocols", "resolv.conf",
    "services", "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
WORK_BYTES = 64 << 20  # of files in each of the two places where the script may make some
LOOK = 0.2  # seconds between two looks at the memory

libc = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "users"))


def main() -> int:
    given = json.loads(sys.argv[1])
    for end in (given["report"], given["lifeline"]):
        os.set_inheritable(end, False)
    try:
        if given["apart"]:
            _leave_users_and_processes(given)
            child = _forked(given, _first)
        else:
            _call("prctl", SUBREAPER, 1, 0, 0, 0)
            child = _forked(given, _script)
        _watch(child, given)
    except OSError as error:
        _report(given, {"refused": _told(error)})
    finally:
        if not given["apart"]:
            _end_descendants()
        shutil.rmtree(given["place"], ignore_errors=True)
    return 0


def _leave_users_and_processes(given: dict[str, Any]) -> None:
    """Who may be mapped is decided outside, so somebody stays there to write it down."""
    watcher, (told, tell) = os.getpid(), os.pipe()
    writer = os.fork()
    if writer == 0:
        os.close(tell)
        try:
            if os.read(told, 1):
                _map_users(watcher, given)
            os._exit(0)
        except OSError:
            os._exit(1)
    try:
        _call("unshare", NEW_USERS | NEW_PIDS | NEW_IPC | NEW_UTS)
        os.write(tell, b"!")
    finally:
        os.close(tell)
        ended = os.waitpid(writer, 0)[1]
    if ended:
        raise OSError(errno.EPERM, "uid_map")


def _map_users(process: int, given: dict[str, Any]) -> None:
    """Everybody is who he is outside: root reaches all files until it gives that up, others name only themselves."""
    if given["uid"] is None:
        _write(f"/proc/{process}/setgroups", "deny")
        known = {"uid": [(os.geteuid(), "1")], "gid": [(os.getegid(), "1")]}
    else:
        known = {kind: [(int(one[0]), one[2]) for one in _ranges(kind)] for kind in ("uid", "gid")}
    for kind, ranges in known.items():
        _write(f"/proc/{process}/{kind}_map", "".join(f"{first} {first} {count}\n" for first, count in ranges))


def _ranges(kind: str) -> list[list[str]]:
    return [line.split() for line in Path(f"/proc/self/{kind}_map").read_text().splitlines()]


def _watch(child: int, given: dict[str, Any]) -> None:
    """Until the child ends, or nobody holds the other end of the lifeline any more."""
    ended, poll = os.pidfd_open(child), select.poll()
    for end in (ended, given["lifeline"]):
        poll.register(end, select.POLLIN)
    if all(end != ended for end, _ in poll.poll()):
        signal.pidfd_send_signal(ended, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not given["apart"]:
        _report(given, _ending(status))


def _first(given: dict[str, Any]) -> NoReturn:
    """Process 1: nothing inside can end it, and it takes all with it."""
    _call("prctl", PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    _call("prctl", SET_DUMPABLE, 0, 0, 0, 0)
    _call("unshare", NEW_MOUNTS)
    os.umask(0o022)
    _enter_new_root(given)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    script = _forked(given, _script)
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == script:
            _report(given, _ending(status))
            os._exit(0)
        if pid == 0:
            if (used := _memory_used()) > given["memory"]:
                _report(given, {"memory": used})
                os._exit(0)
            signal.sigtimedwait({signal.SIGCHLD}, LOOK)


def _enter_new_root(given: dict[str, Any]) -> None:
    """Only what is named here exists for the script: no home, no data directory, no socket, no other process."""
    root = Path(given["place"], "root")
    _mount("none", "/", None, RECURSIVE | PRIVATE)
    _mount("tmpfs", str(root), "tmpfs", NO_SUID | NO_DEVICES, "size=1m,mode=755")
    for name, mode in (("work", "700"), ("tmp", "1777")):
        (root / name).mkdir()
        _mount("tmpfs", str(root / name), "tmpfs", NO_SUID | NO_DEVICES, f"size={WORK_BYTES},mode={mode}")
    for path in (*SYSTEM, *given["see"], *(f"/etc/{name}" for name in ETC)):
        _show(path, root)
    for path in DEVICES:
        _show(path, root, devices=True)
    _show(f"{given['place']}/package", root, "package")
    (root / "dev" / "shm").symlink_to("/tmp")  # noqa: S108 - its own
    if given["uid"] is not None:
        os.chown(root / "work", given["uid"], given["gid"])
    (root / "proc").mkdir()
    with contextlib.suppress(OSError):  # a container that hides parts of /proc allows no new one: then there is none
        _mount("proc", str(root / "proc"), "proc", NO_SUID | NO_DEVICES | NO_EXEC)
        _write(f"{root}/proc/sys/user/max_user_namespaces", "0")
    _restrict(root, READ_ONLY, 0)
    os.chdir(root)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", DETACH)
    os.chdir("/")


def _show(path: str, root: Path, name: str | None = None, *, devices: bool = False) -> None:
    """The same path in the new root, to be read only. What is not there is left out."""
    source, target = Path(path), root / (name or path[1:])
    if not source.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink() and path in SYSTEM:
        target.symlink_to(source.readlink())
        return
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    _mount(str(source.resolve()), str(target), None, BIND | RECURSIVE)
    _restrict(target, READ_ONLY | NO_SUID | (0 if devices else NO_DEVICES), AT_RECURSIVE)


def _restrict(target: Path, what: int, how: int) -> None:
    wanted = Attributes(set=what)
    arguments = (AT_HERE, str(target).encode(), how, ctypes.byref(wanted), ctypes.sizeof(wanted))
    _call("syscall", MOUNT_SETATTR, *arguments, named="mount_setattr")


def _script(given: dict[str, Any]) -> NoReturn:
    """The last of our own code: gives up what it may do, and becomes the script."""
    os.setsid()
    with contextlib.suppress(OSError):  # no /proc
        _write("/proc/self/oom_score_adj", "1000")
    os.nice(10)
    for name, most in given["limits"].items():
        resource.setrlimit(getattr(resource, name), (most, most))
    for number in range(64):
        libc.prctl(DROP_BOUNDING, number, 0, 0, 0)
    if given["uid"] is not None:
        os.setgroups([])
        os.setresgid(given["gid"], given["gid"], given["gid"])
        os.setresuid(given["uid"], given["uid"], given["uid"])
    _call("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    os.umask(0o077)
    os.chdir(given["work"])
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execve(given["command"][0], given["command"], given["environment"])  # noqa: S606 - an argument list


def _forked(given: dict[str, Any], work: Callable[[dict[str, Any]], NoReturn]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work(given)
        except OSError as error:
            _report(given, {"refused": _told(error)})
        finally:
            os._exit(127)
    return child


def _memory_used() -> int:
    """Of all processes here, without what they share."""
    pages = 0
    for statm in _files_of_processes("statm"):
        resident, shared = statm.split()[1:3]
        pages += int(resident) - int(shared)
    return pages * resource.getpagesize()


def _end_descendants() -> None:
    """As the subreaper: whoever loses his parent becomes our child, so in the end there is nobody else."""
    with contextlib.suppress(ChildProcessError):
        while True:
            parents = {int(stat.split(" ", 1)[0]): _parent(stat) for stat in _files_of_processes("stat")}
            for pid in parents:
                if _comes_from(os.getpid(), pid, parents):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.01)


def _parent(stat: str) -> int:
    return int(stat.rpartition(")")[2].split()[1])


def _comes_from(ancestor: int, pid: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _files_of_processes(name: str) -> Iterator[str]:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                yield (process / name).read_text()


def _ending(status: int) -> dict[str, int]:
    return {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"exit": os.WEXITSTATUS(status)}


def _report(given: dict[str, Any], said: dict[str, Any]) -> None:
    os.write(given["report"], json.dumps(said).encode() + b"\n")


def _told(error: OSError) -> str:
    return f"{error.filename or error.strerror}: {os.strerror(error.errno or 0)}"


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = (source.encode(), target.encode(), kind and kind.encode())
    _call("mount", *words, ctypes.c_ulong(flags), options and options.encode(), named=f"mount {target}")


def _call(name: str, *arguments: Any, named: str | None = None) -> None:
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), named or name)


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


if __name__ == "__main__":
    sys.exit(main())
