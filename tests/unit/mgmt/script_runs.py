"""Runs scripts as a package would bring them, and sees what is left of them."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from slipway.mgmt.bubblewrap import PACKAGE
from slipway.mgmt.cgroup import Cgroup, make_cgroup
from slipway.mgmt.script_limits import Language, ScriptLimits
from slipway.mgmt.script_process import ScriptExit, run_script

CANARY = f"canary-{uuid4().hex}"  # other test processes run scripts, too
NAME = f"Scripts/{CANARY}"
QUICK = ScriptLimits(seconds=30)
CUT_OFF = ScriptLimits(seconds=30, network=False)


async def run(
    code: str,
    limits: ScriptLimits = QUICK,
    language: Language = "python",
    stdin: bytes = b"{}",
    limit: Callable[[int], Cgroup | None] = make_cgroup,
) -> ScriptExit:
    async def unpack(directory: Path) -> None:
        (directory / "Scripts").mkdir()
        (directory / NAME).write_text(textwrap.dedent(code))
        (directory / "Scripts" / "beside.py").write_text("WORD = 'from beside'")
        for path in (directory, directory / "Scripts", *(directory / "Scripts").iterdir()):
            path.chmod(0o755)

    return await run_script(f"{PACKAGE}/{NAME}", language, lambda package: stdin, unpack, limits, limit)


async def answer(code: str, limits: ScriptLimits = QUICK, stdin: bytes = b"{}") -> Any:
    ended = await run(code, limits, stdin=stdin)
    assert ended.fault is None, (ended.fault, ended.stderr)
    return json.loads(ended.stdout)


def processes_with(word: str) -> list[int]:
    """Of this machine, by their command lines."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and word.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            pass
    return found


def left_in(place: Path) -> list[Path]:
    return list(place.glob("slipway-script-*"))


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while True:
            if true():
                return
            await asyncio.sleep(0.02)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
