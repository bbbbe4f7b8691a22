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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from slipway.mgmt.bubblewrap import PACKAGE, Pipes, SandboxedScript, bwrap_arguments
from slipway.mgmt.cgroup import Cgroup, make_cgroup, memory_used, remove_stale_cgroups
from slipway.mgmt.script_limits import (
    Fault,
    Language,
    ScriptLimits,
    fault_from_status,
    find_tools,
    interpreter,
    new_script_directory,
    python_home,
    remove_stale_script_directories,
    sandbox_failed,
    script_user,
    too_much_memory,
)
from slipway.mgmt.script_network import namespaces_ready, readable, resolv_conf
from slipway.remote.output import Tail

STDOUT_BYTES = 1 << 20
STDERR_BYTES = 16 << 20
STDERR_KEPT = 4096
LONGEST_END = 10.0  # seconds that bwrap has to end a script
LOOK = 0.2  # seconds between two looks at the memory


@dataclass(frozen=True)
class ScriptExit:
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
class _StartPipes:
    """bwrap says on `info` which process is the first, and lets it begin when `go` is closed."""

    info: IO[bytes]
    go: IO[bytes]


async def run_script(
    script: str,
    language: Language,
    document: Callable[[str], bytes],
    unpack: Callable[[Path], Awaitable[None]],
    limits: ScriptLimits,
    limit: Callable[[int], Cgroup | None] = make_cgroup,
    modules: Sequence[Path] = (),
) -> ScriptExit:
    """Run `script`, below PACKAGE in the package that `unpack` brings, or below MODULES, where copies of our `modules`
    are. `document` is its stdin, once it is known where the package lies.

    Whatever happens, no process is left of it. A file or a cgroup that a killed Slipway left is removed here.
    """
    tools, user = find_tools(limits), script_user(limits)
    await asyncio.to_thread(_remove_what_is_stale)
    place = new_script_directory()
    try:
        await unpack(place / "package")
        if modules:
            await asyncio.to_thread(_copy_modules, modules, place / "modules")
        confined = SandboxedScript(
            command=[*interpreter(language), script],
            package=place / "package",
            python=python_home(),
            user=user,
            seconds=limits.seconds,
            memory_bytes=limits.memory_bytes,
            etc=_own_etc(place) if limits.network else {},
            modules=place / "modules" if modules else None,
        )
        return await _run(confined, document(PACKAGE), limits, tools, limit(limits.memory_bytes))
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


def _remove_what_is_stale() -> None:
    remove_stale_cgroups()
    remove_stale_script_directories()


def _copy_modules(modules: Sequence[Path], directory: Path) -> None:
    """Readable for everybody, however Slipway was installed."""
    directory.mkdir()
    for source in modules:
        if source.is_dir():
            shutil.copytree(source, directory / source.name, ignore=shutil.ignore_patterns("*.so"))
        else:
            shutil.copy2(source, directory)
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _own_etc(place: Path) -> dict[str, Path]:
    file, hosts = place / "resolv.conf", Path("/etc/resolv.conf")
    file.write_text(resolv_conf(hosts.read_text() if hosts.exists() else ""))
    file.chmod(0o644)
    return {"resolv.conf": file}


async def _run(
    confined: SandboxedScript, stdin: bytes, limits: ScriptLimits, tools: dict[str, str], cgroup: Cgroup | None
) -> ScriptExit:
    try:
        with contextlib.ExitStack() as closing:
            info, its_info = _pipe(closing)
            status, its_status = _pipe(closing)
            its_go, go = _pipe(closing)
            pipes = Pipes(its_info.fileno(), its_status.fileno(), its_go.fileno())
            script = _start(confined, closing.enter_context(_sealed(stdin)), tools["bwrap"], pipes, cgroup)
            for end in (its_info, its_status, its_go):
                end.close()
            fault = await _watch(script, _StartPipes(info, go), limits, tools, cgroup)
            stderr = script.stderr.end()
            return ScriptExit(
                fault or fault_from_status(_bwrap_status(status.read()), stderr), bytes(script.stdout), stderr
            )
    finally:
        if cgroup:
            await asyncio.to_thread(cgroup.remove)


def _start(confined: SandboxedScript, stdin: IO[bytes], bwrap: str, pipes: Pipes, cgroup: Cgroup | None) -> _Running:
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
    script: _Running, opening: _StartPipes, limits: ScriptLimits, tools: dict[str, str], cgroup: Cgroup | None
) -> Fault | None:
    """What it did too much; None when it ended by itself."""
    ended = asyncio.gather(_read_stdout(script), _read_stderr(script), _wait_for_exit(script.bwrap.pid))
    try:
        async with asyncio.timeout(limits.seconds):
            process = await _first_process(opening.info)
            if process is None:
                await asyncio.shield(ended)
                return None
            script.first = os.pidfd_open(process)
            exceeded = cgroup.exceeded if cgroup else partial(_counted, _process_namespace(process), limits)
            _map_users(process, all_of_them=script.other_user)
            async with namespaces_ready(process, tools, network=limits.network):
                opening.go.close()
                while not (await asyncio.wait([ended], timeout=LOOK))[0]:
                    if await asyncio.to_thread(exceeded):
                        script.end(too_much_memory(limits))
            await asyncio.shield(ended)
            if exceeded():
                script.end(too_much_memory(limits))
    except TimeoutError:
        script.end(Fault(f"timed out after {limits.seconds:g} s", limits.time_cure))
    except (FileNotFoundError, ProcessLookupError):
        pass  # bwrap gave up; it says why
    except PermissionError as error:
        script.end(sandbox_failed(f"{error.filename}: {error.strerror}"))
    finally:
        # Also when the step is broken off: whoever comes next must not meet what this one began.
        # It is dead before it is let go on.
        script.end()
        opening.go.close()
        await _finish_reading(script, ended)
    return script.too_far


async def _finish_reading(script: _Running, ended: asyncio.Future[Any]) -> None:
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
    """Root reaches all files until it changes its user. Others can't change theirs, and are called root
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


def _counted(namespace: Path, limits: ScriptLimits) -> bool:
    return memory_used(namespace) > limits.memory_bytes


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


async def _wait_for_exit(process: int) -> None:
    descriptor = os.pidfd_open(process)
    try:
        await readable(descriptor)
    finally:
        os.close(descriptor)


def _bwrap_status(status: bytes) -> dict[str, Any]:
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
    """A file in memory that is sealed against changes."""
    file = os.fdopen(os.memfd_create("stdin", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC), "w+b")
    file.write(content)
    file.seek(0)
    fcntl.fcntl(
        file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
    )
    return file
