"""One script of a package as a process apart (jail.py): given bytes, watched, and ended when it goes too far."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway.mgmt.walls import Fault, Language, Walls, fault_of, given_to, new_place, user_of
from slipway.remote.output import Tail

JAIL = str(Path(__file__).with_name("jail.py"))
STDOUT_BYTES = 1 << 20
STDERR_BYTES = 16 << 20
STDERR_KEPT = 4096
LONGEST_END = 10.0  # seconds that the watcher has to end a script


@dataclass(frozen=True)
class Ended:
    """`fault` is None when it ended by itself, with 0."""

    fault: Fault | None
    stdout: bytes
    stderr: bytes


@dataclass
class _Watched:
    """A running script. Closing the lifeline ends it and all that it began."""

    process: asyncio.subprocess.Process
    lifeline: int
    report: int
    stdout: bytearray = field(default_factory=bytearray)
    stderr: Tail = field(default_factory=lambda: Tail(STDERR_KEPT))
    too_far: Fault | None = None

    def end(self, why: Fault | None = None) -> None:
        self.too_far = self.too_far or why
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1


async def run_script(
    path: str,
    language: Language,
    document: Callable[[str], bytes],
    unpack: Callable[[Path], Awaitable[None]],
    walls: Walls,
) -> Ended:
    """Run `path` of the package that `unpack` brings. `document` is its stdin, once it is known where the package lies.

    Whatever happens, also to Slipway, neither process nor file is left of it.
    """
    user, apart = user_of(walls), walls.isolation == "namespaces"
    place = new_place(None if apart else user)
    try:
        await unpack(place / "package")
        package = "/package" if apart else str(place / "package")
        given = given_to(place, package, "/work" if apart else str(place / "work"), path, language, user, walls)
        stdin = document(package)
        return await _watch(await _start(given), stdin, walls)
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


async def _start(given: dict[str, Any]) -> _Watched:
    report, its_report = os.pipe()
    its_lifeline, lifeline = os.pipe()
    os.set_blocking(report, False)
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", JAIL),
            json.dumps({**given, "report": its_report, "lifeline": its_lifeline}),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            cwd="/",
            pass_fds=(its_report, its_lifeline),
            start_new_session=True,
        )
    except BaseException:
        os.close(report)
        os.close(lifeline)
        raise
    finally:
        os.close(its_report)
        os.close(its_lifeline)
    return _Watched(process, lifeline, report)


async def _watch(script: _Watched, document: bytes, walls: Walls) -> Ended:
    reading = asyncio.gather(_feed(script, document), _read_stdout(script), _read_stderr(script))
    try:
        done, _ = await asyncio.wait([reading], timeout=walls.seconds)
        if not done:
            script.end(Fault(f"had no end after {walls.seconds:g} s", "make it quicker, or raise script_seconds."))
    finally:
        # Also when the step is broken off: whoever comes next must not meet what this one began.
        script.end()
        await _ended(script, reading)
        said = _reported(script.report)
    return Ended(script.too_far or fault_of(said, walls), bytes(script.stdout), script.stderr.end())


async def _ended(script: _Watched, reading: asyncio.Future[Any]) -> None:
    try:
        async with asyncio.timeout(LONGEST_END):
            await script.process.wait()
            await reading
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            script.process.kill()
        await script.process.wait()
    finally:
        reading.cancel()


async def _feed(script: _Watched, document: bytes) -> None:
    stdin = script.process.stdin
    assert stdin is not None  # noqa: S101 - a pipe was asked for
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read it
        stdin.write(document)
        await stdin.drain()
    stdin.close()


async def _read_stdout(script: _Watched) -> None:
    stdout = script.process.stdout
    assert stdout is not None  # noqa: S101 - a pipe was asked for
    while chunk := await stdout.read(65536):
        if len(script.stdout) + len(chunk) > STDOUT_BYTES:
            script.end(Fault(f"printed more than {STDOUT_BYTES >> 20} MiB on stdout"))
        else:
            script.stdout += chunk


async def _read_stderr(script: _Watched) -> None:
    stderr, read = script.process.stderr, 0
    assert stderr is not None  # noqa: S101 - a pipe was asked for
    while chunk := await stderr.read(65536):
        script.stderr.feed(chunk)
        read += len(chunk)
        if read > STDERR_BYTES:
            script.end(Fault(f"printed more than {STDERR_BYTES >> 20} MiB on stderr"))


def _reported(report: int) -> dict[str, Any]:
    try:
        said = os.read(report, 65536)
    except BlockingIOError:
        said = b""
    finally:
        os.close(report)
    first: dict[str, Any] = json.loads(said.split(b"\n", 1)[0] or b"{}")
    return first
