"""The memory and the disk that a script may use, for one process and for all together."""

from __future__ import annotations

import pytest

from slipway.mgmt.cgroup import possible_parents
from slipway.mgmt.script_limits import ScriptLimits
from tests.script_sandbox import needs_sandbox
from tests.unit.mgmt.script_runs import answer, run

pytestmark = [needs_sandbox, pytest.mark.usefixtures("place")]


async def test_memory_is_limited_for_one_process_and_for_all_together() -> None:
    small = ScriptLimits(seconds=30, memory_bytes=128 << 20)
    ended = await run("x = bytearray(400 << 20)", small)
    assert ended.fault is not None
    assert "exit code 1" in ended.fault.reason
    assert b"MemoryError" in ended.stderr
    ended = await run(
        """
        import os, time
        for _ in range(8):
            if os.fork() == 0:
                x = bytearray(os.urandom(1 << 20) * 60)
                time.sleep(60)
        time.sleep(60)
        """,
        small,
    )
    assert ended.fault is not None
    assert "used more than 128 MiB" in ended.fault.reason


HOLDS_FILES = """
import os, time
for number in range(6):
    file = os.memfd_create("x")
    for _ in range(30):
        os.write(file, bytes(1 << 20))
print("held")
"""
FILLS = """
for name in ("/work/x", "/tmp/x", "/dev/shm/x"):
    with open(name, "wb") as file:
        for _ in range(60):
            file.write(bytes(1 << 20))
print("held")
"""
SHARES = """
import mmap, os, time
x = mmap.mmap(-1, 50 << 20)
for place in range(0, len(x), 4096):
    x[place] = 1
if os.fork():
    y = mmap.mmap(-1, 50 << 20)
    for place in range(0, len(y), 4096):
        y[place] = 1
    time.sleep(5)
else:
    z = bytearray(b"x") * (50 << 20)
    time.sleep(5)
print("held")
"""


@pytest.mark.parametrize("code", [HOLDS_FILES, FILLS, SHARES])
async def test_files_in_memory_and_shared_memory_count(code: str) -> None:
    if not any(True for _ in possible_parents()):
        pytest.skip("no cgroup with a memory limit on this machine")
    ended = await run(code, ScriptLimits(seconds=30, memory_bytes=128 << 20))
    assert ended.fault is not None, ended.stdout
    assert "used more than 128 MiB of memory" in ended.fault.reason


@pytest.mark.parametrize("code", [HOLDS_FILES, SHARES])
async def test_without_a_cgroup_they_are_counted(code: str) -> None:
    lasting = code.replace("print", "time.sleep(30); print")
    ended = await run(lasting, ScriptLimits(seconds=30, memory_bytes=128 << 20), limit=lambda _: None)
    assert ended.fault is not None, ended.stdout
    assert "used more than 128 MiB of memory" in ended.fault.reason


async def test_it_can_fill_no_more_than_its_own_places() -> None:
    said = await answer(
        """
        import json, os
        filled = {}
        for top in ("/work", "/tmp", "/dev/shm", "/dev", "/", "/proc", "/etc", "/package"):
            filled[top] = 0
            try:
                for number in range(4):
                    with open(f"{top}/x{number}", "wb", buffering=0) as file:
                        for _ in range(40):
                            filled[top] += file.write(bytes(1 << 20))
            except OSError:
                pass
            for number in range(4):
                if os.path.exists(f"{top}/x{number}"):
                    os.unlink(f"{top}/x{number}")
        print(json.dumps({top: size >> 20 for top, size in filled.items()}))
        """
    )
    assert said == {"/work": 64, "/tmp": 64, "/dev/shm": 64, "/dev": 0, "/": 0, "/proc": 0, "/etc": 0, "/package": 0}
