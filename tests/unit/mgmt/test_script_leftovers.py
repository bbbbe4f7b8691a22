"""What a killed Slipway leaves of a script goes, and what Slipway holds open does not reach a script."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from slipway.mgmt.cgroup import possible_parents
from slipway.mgmt.script_limits import ScriptLimits, find_tools
from slipway.model.errors import StepError
from tests.script_sandbox import needs_sandbox
from tests.unit.mgmt.script_runs import CANARY, CUT_OFF, answer, left_in, processes_with, until

pytestmark = [needs_sandbox, pytest.mark.usefixtures("place")]


DIES = f"""
import asyncio, os, sys
from pathlib import Path
from slipway.mgmt.script_process import run_script
from slipway.mgmt.script_limits import ScriptLimits
async def unpack(directory):
    (directory / "{CANARY}.py").write_text("import time; time.sleep(600)")
    for path in (directory, directory / "{CANARY}.py"):
        path.chmod(0o755)
asyncio.run(run_script("/package/{CANARY}.py", "python", lambda package: b"", unpack, ScriptLimits()))
"""


def cgroups_of(pid: int) -> list[Path]:
    return [path for parent in possible_parents() for path in parent.glob(f"slipway-script-*-{pid}-*")]


def runs(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def children_of(pid: int) -> list[int]:
    with suppress(FileNotFoundError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def program_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/exe").readlink().name
    return ""


def begun(server: int) -> bool:
    """Whether the script itself runs: below the server, bwrap twice and then Python."""
    others = {server, *children_of(server)}
    return any(program_of(pid).startswith("python") for pid in processes_with(CANARY) if pid not in others)


def is_set_up(server: int) -> bool:
    """Whether bwrap has made the namespaces, and waits until the network is there."""
    return any(children_of(child) for child in children_of(server))


async def test_when_slipway_is_killed_its_scripts_die_and_the_next_one_takes_away_what_is_left(place: Path) -> None:
    server = await a_server(place)
    await until(lambda: begun(server.pid))
    started = children_of(server.pid)  # bwrap and slirp4netns
    assert len(started) == 2
    server.kill()
    await server.wait()
    await until(lambda: not processes_with(CANARY) and not any(map(runs, started)))
    assert len(left_in(place)) == 1
    await answer("print('{}')")
    assert left_in(place) == []
    assert cgroups_of(server.pid) == []


async def test_when_slipway_is_killed_before_a_script_begins_it_never_does_and_the_next_one_ends_its_bwrap(
    place: Path,
) -> None:
    """bwrap's own child can't be told to die with it before it is let go on."""
    server = await a_server(place)
    await until(lambda: is_set_up(server.pid))
    server.kill()
    await server.wait()
    await answer("print('{}')")
    await until(lambda: not processes_with(CANARY))
    assert left_in(place) == []
    assert cgroups_of(server.pid) == []


async def a_server(place: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", DIES, env={**os.environ, "TMPDIR": str(place)})


READS_DESCRIPTORS = f"""
import os, sys, uvloop
from pathlib import Path
from slipway.mgmt.script_process import run_script
from slipway.mgmt.script_limits import ScriptLimits
async def unpack(directory):
    (directory / "{CANARY}.sh").write_text("ls /proc/self/fd; cat <&200")
    for path in (directory, directory / "{CANARY}.sh"):
        path.chmod(0o755)
print(uvloop.run(run_script("/package/{CANARY}.sh", "bash", lambda package: b"", unpack, ScriptLimits())))
"""


async def test_what_slipway_was_started_with_does_not_reach_it(tmp_path: Path) -> None:
    """By the loop that the server uses."""
    secret = tmp_path / "secret"
    secret.write_text("canary of the starter")
    with secret.open() as file:
        os.dup2(file.fileno(), 200)
        try:
            server = await asyncio.create_subprocess_exec(
                sys.executable, "-c", READS_DESCRIPTORS, stdout=asyncio.subprocess.PIPE, pass_fds=(200,)
            )
            said = (await server.communicate())[0].decode()
        finally:
            os.close(200)
    assert "canary of the starter" not in said
    assert r"stdout=b'0\n1\n2\n3\n'" in said  # 3 is the directory that ls reads


def test_what_is_missing_is_named_with_its_package(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="need bwrap, nsenter, slirp4netns, nft, ip") as raised:
        find_tools(ScriptLimits(), path=str(tmp_path))
    assert "apt install bubblewrap util-linux slirp4netns nftables iproute2" in str(raised.value)
    assert "script_network = false" in str(raised.value)
    with pytest.raises(StepError, match="need bwrap, nsenter, not"):
        find_tools(CUT_OFF, path=str(tmp_path))
