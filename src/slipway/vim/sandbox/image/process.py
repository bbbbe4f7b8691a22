"""Runs a program that takes its time: what it prints comes line by line, and it has an end."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slipway.model.errors import VimError, VimFault

GRACE = 10.0  # seconds that it has to clean up when it is told to end
KEPT = 20  # lines
Say = Callable[[str], None]


@dataclass(frozen=True)
class Ended:
    code: int
    tail: list[str]  # its last lines


def run(
    command: Sequence[str],
    heard: Say,
    limit: float,
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Ended:
    """Until it ends. `heard` gets every line, those of the standard error too."""
    tail: list[str] = []
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
        cwd=directory,
    )
    with process:
        try:
            for line in _lines(process, time.monotonic() + limit, command[0]):
                tail = [*tail[1 - KEPT :], line]
                heard(line)
        finally:
            _end(process)
    return Ended(process.returncode, tail)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It has closed its output, or we were interrupted."""
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()


def _lines(process: subprocess.Popen[bytes], deadline: float, program: str) -> Iterator[str]:
    assert process.stdout is not None  # noqa: S101 - asked for above
    begun, rest = time.monotonic(), b""
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not ready.select(max(0.0, deadline - time.monotonic())):
                seconds = time.monotonic() - begun
                raise VimError(f"{Path(program).name} did not end within {seconds:.0f} s.", VimFault.TEMPORARY)
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            *whole, rest = re.split(rb"[\r\n]+", rest + chunk)
            yield from (line.decode(errors="replace") for line in whole if line)
    if rest:
        yield rest.decode(errors="replace")
