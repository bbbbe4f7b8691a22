"""One script of a package in a bubblewrap sandbox: given bytes, watched, and ended when it goes too far."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from slipway.mgmt.bubblewrap import PACKAGE, Confined, Pipes, bwrap_arguments
from slipway.mgmt.cgroup import Cgroup, make_cgroup, memory_used, remove_stale_cgroups
from slipway.mgmt.script_network import namespaces_ready, readable, resolv_conf
from slipway.mgmt.walls import (
    Fault,
    Language,
    Walls,
    fault_of,
    find_tools,
    interpreter,
    new_place,
    not_kept_apart,
    python_home,
    remove_stale_script_directories,
    too_much_memory,
    user_of,
)
from slipway.remote.output import Tail

STDOUT_BYTES = 1 << 20
STDERR_BYTES = 16 << 20
STDERR_KEPT = 4096
LONGEST_END = 10.0  # seconds that bwrap has to end a script
LOOK = 0.2  # seconds between two looks at the memory


@dataclass(frozen=True)
class Ended:
    """`fault` is None when it ended by itself, with 0."""

    fault: Fault | None
    stdout: bytes
    stderr: bytes


@dataclass
class _Running:
    """`first` is process 1 of the script's process namespace: when it ends, the kernel ends all that is in there."""

    bwrap: subprocess.Popen[bytes]
    other_user: bool
    first: int | None = None  # a descriptor
    stdout: bytearray = field(default_factory=bytearray)
    stderr: Tail = field(default_factory=lambda: Tail(STDERR_KEPT))
    too_far: Fault | None = None

    def end(self, why: Fault | None = None) -> None:
        """bwrap dies with us, and the script with bwrap; but it tells how the script ended when it may live on."""
        self.too_far = self.too_far or why
        with contextlib.suppress(ProcessLookupError):
            if self.first is None:
                self.bwrap.kill()
            else:
                signal.pidfd_send_signal(self.first, signal.SIGKILL)


@dataclass(frozen=True)
class _Opening:
    """bwrap says on `info` which process is the first, and lets it begin when `go` is closed."""

    info: IO[bytes]
    go: IO[bytes]


async def run_script(
    path: str,
    language: Language,
    document: Callable[[str], bytes],
    unpack: Callable[[Path], Awaitable[None]],
    walls: Walls,
    limit: Callable[[int], Cgroup | None] = make_cgroup,
) -> Ended:
    """Run `path` of the package that `unpack` brings. `document` is its stdin, once it is known where the package lies.

    Whatever happens, no process is left of it. A file or a cgroup that a killed Slipway left is removed here.
    """
    tools, user = find_tools(walls), user_of(walls)
    await asyncio.to_thread(_remove_what_is_stale)
    place = new_place()
    try:
        await unpack(place / "package")
        confined = Confined(
            command=[*interpreter(language), f"{PACKAGE}/{path}"],
            package=place / "package",
            python=python_home(),
            user=user,
            seconds=walls.seconds,
            memory_bytes=walls.memory_bytes,
            etc=_own_etc(place) if walls.network else {},
        )
        return await _run(confined, document(PACKAGE), walls, tools, limit(walls.memory_bytes))
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


def _remove_what_is_stale() -> None:
    remove_stale_cgroups()
    remove_stale_script_directories()


def _own_etc(place: Path) -> dict[str, Path]:
    file, hosts = place / "resolv.conf", Path("/etc/resolv.conf")
    file.write_text(resolv_conf(hosts.read_text() if hosts.exists() else ""))
    file.chmod(0o644)
    return {"resolv.conf": file}


async def _run(confined: Confined, stdin: bytes, walls: Walls, tools: dict[str, str], cgroup: Cgroup | None) -> Ended:
    try:
        with contextlib.ExitStack() as closing:
            info, its_info = _pipe(closing)
            status, its_status = _pipe(closing)
            its_go, go = _pipe(closing)
            pipes = Pipes(its_info.fileno(), its_status.fileno(), its_go.fileno())
            script = _start(confined, closing.enter_context(_sealed(stdin)), tools["bwrap"], pipes, cgroup)
            for end in (its_info, its_status, its_go):
                end.close()
            fault = await _watch(script, _Opening(info, go), walls, tools, cgroup)
            stderr = script.stderr.end()
            return Ended(fault or fault_of(_told(status.read()), stderr), bytes(script.stdout), stderr)
    finally:
        if cgroup:
            await asyncio.to_thread(cgroup.remove)


def _start(confined: Confined, stdin: IO[bytes], bwrap: str, pipes: Pipes, cgroup: Cgroup | None) -> _Running:
    enter = ["/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"', str(cgroup.procs)] if cgroup else []
    # Not by asyncio: uvloop leaves those descriptors open that Slipway itself was started with.
    process = subprocess.Popen(
        [*enter, bwrap, *bwrap_arguments(confined, pipes)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.defpath, "LANG": "C.UTF-8"},
        cwd="/",
        umask=0o077,
        pass_fds=(pipes.info, pipes.status, pipes.wait),
        start_new_session=True,
    )
    return _Running(process, other_user=confined.user is not None)


async def _watch(
    script: _Running, opening: _Opening, walls: Walls, tools: dict[str, str], cgroup: Cgroup | None
) -> Fault | None:
    """What it did too much; None when it ended by itself."""
    ended = asyncio.gather(_read_stdout(script), _read_stderr(script), _end_of(script.bwrap.pid))
    try:
        async with asyncio.timeout(walls.seconds):
            process = await _first_process(opening.info)
            if process is None:
                await asyncio.shield(ended)
                return None
            script.first = os.pidfd_open(process)
            exceeded = cgroup.exceeded if cgroup else partial(_counted, _process_namespace(process), walls)
            _map_users(process, all_of_them=script.other_user)
            async with namespaces_ready(process, tools, network=walls.network):
                opening.go.close()
                while not (await asyncio.wait([ended], timeout=LOOK))[0]:
                    if await asyncio.to_thread(exceeded):
                        script.end(too_much_memory(walls))
            await asyncio.shield(ended)
            if exceeded():
                script.end(too_much_memory(walls))
    except TimeoutError:
        script.end(Fault(f"had no end after {walls.seconds:g} s", "make it quicker, or raise script_seconds."))
    except (FileNotFoundError, ProcessLookupError):
        pass  # bwrap gave up; it says why
    except PermissionError as error:
        script.end(not_kept_apart(f"{error.filename}: {error.strerror}"))
    finally:
        # Also when the step is broken off: whoever comes next must not meet what this one began.
        # It is dead before it is let go on.
        script.end()
        opening.go.close()
        await _all_read(script, ended)
    return script.too_far


async def _all_read(script: _Running, ended: asyncio.Future[Any]) -> None:
    try:
        if not (await asyncio.wait([ended], timeout=LONGEST_END))[0]:
            script.bwrap.kill()
    finally:
        ended.cancel()
        if script.first is not None:
            os.close(script.first)
            script.first = None
        await asyncio.to_thread(script.bwrap.wait)


async def _first_process(info: IO[bytes]) -> int | None:
    """None when bwrap ended before there was one."""
    said = b""
    while not said.rstrip().endswith(b"}"):
        await readable(info.fileno())
        chunk = info.read(4096)
        if not chunk:
            return None
        said += chunk
    process: int = json.loads(said)["child-pid"]
    return process


def _map_users(process: int, *, all_of_them: bool) -> None:
    """Root reaches all files until it becomes somebody else. Others have nobody else to become, and are called root
    inside: only root has, until the script begins, the rights to set up its network."""
    known: dict[str, list[str]]
    if all_of_them:
        known = {kind: Path(f"/proc/self/{kind}_map").read_text().splitlines() for kind in ("uid", "gid")}
        known = {kind: [f"{one.split()[0]} {one.split()[0]} {one.split()[2]}" for one in known[kind]] for kind in known}
    else:
        Path(f"/proc/{process}/setgroups").write_text("deny")
        known = {"uid": [f"0 {os.geteuid()} 1"], "gid": [f"0 {os.getegid()} 1"]}
    for kind, ranges in known.items():
        Path(f"/proc/{process}/{kind}_map").write_text("\n".join(ranges) + "\n")


def _process_namespace(process: int) -> Path:
    return Path(f"/proc/{process}/ns/pid").readlink()


def _counted(namespace: Path, walls: Walls) -> bool:
    return memory_used(namespace) > walls.memory_bytes


async def _read_stdout(script: _Running) -> None:
    async for chunk in _chunks(script.bwrap.stdout):
        if len(script.stdout) + len(chunk) > STDOUT_BYTES:
            script.end(Fault(f"printed more than {STDOUT_BYTES >> 20} MiB on stdout"))
        else:
            script.stdout += chunk


async def _read_stderr(script: _Running) -> None:
    read = 0
    async for chunk in _chunks(script.bwrap.stderr):
        script.stderr.feed(chunk)
        read += len(chunk)
        if read > STDERR_BYTES:
            script.end(Fault(f"printed more than {STDERR_BYTES >> 20} MiB on stderr"))


async def _chunks(pipe: IO[bytes] | None) -> AsyncIterator[bytes]:
    assert pipe is not None  # noqa: S101 - a pipe was asked for
    with pipe:
        os.set_blocking(pipe.fileno(), False)
        while True:
            await readable(pipe.fileno())
            chunk = os.read(pipe.fileno(), 65536)
            if not chunk:
                return
            yield chunk


async def _end_of(process: int) -> None:
    descriptor = os.pidfd_open(process)
    try:
        await readable(descriptor)
    finally:
        os.close(descriptor)


def _told(status: bytes) -> dict[str, Any]:
    """One line of JSON for its beginning, one for its end."""
    lines = [json.loads(line) for line in status.splitlines()]
    return {key: value for line in lines for key, value in line.items()}


def _pipe(closing: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    read, write = os.pipe()
    ends = os.fdopen(read, "rb", buffering=0), os.fdopen(write, "wb", buffering=0)
    for end in ends:
        closing.enter_context(end)
    return ends


def _sealed(content: bytes) -> IO[bytes]:
    """A file in memory that nobody can change."""
    file = os.fdopen(os.memfd_create("stdin", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC), "w+b")
    file.write(content)
    file.seek(0)
    fcntl.fcntl(
        file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
    )
    return file
