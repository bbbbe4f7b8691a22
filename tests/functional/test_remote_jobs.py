"""Named jobs on a real sshd: whatever dies in between, there is one run and one result."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.model.errors import StepError
from slipway.remote.connect import SshLimits
from slipway.remote.ssh_host import SshHost
from tests.functional.remote_proxy import proxy_to
from tests.functional.remote_sshd import OWN_KEY, Sshd, running_sshd, ssh_host_on, until_there
from tests.functional.test_remote_commands import TELL, TEXT

ROOT = Path(__file__).parents[2]
JOBS = Path("/var/lib/slipway/jobs") if os.getuid() == 0 else Path.home() / ".slipway" / "jobs"
# Counts its runs, then waits to be let go.
COUNTED = ["sh", "-c", 'echo run >>"$1/runs"; until [ -e "$1/go" ]; do sleep 0.02; done; echo out; echo err >&2', "sh"]


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with running_sshd(tmp_path / "sshd") as sshd:
        yield sshd


@asynccontextmanager
async def named(host: SshHost) -> AsyncIterator[str]:
    """A job name that nobody else uses, forgotten at the end."""
    name = f"test-{uuid4().hex}"
    try:
        yield name
    finally:
        await host.remove_job(name, kill=True)
        assert not list(JOBS.glob(f"*{name}*"))


def runs(place: Path) -> int:
    return len((place / "runs").read_text().splitlines())


async def test_a_job_gives_its_result_again_until_it_is_forgotten(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        for _ in range(3):
            result = await host.run_job(name, [*COUNTED, str(tmp_path)], limit=20)
            assert (result.exit_code, result.stdout, result.stderr) == (0, b"out\n", b"err\n")
        assert runs(tmp_path) == 1
        await host.remove_job(name)
        await host.run_job(name, [*COUNTED, str(tmp_path)], limit=20)
        assert runs(tmp_path) == 2


async def test_ten_callers_at_once_share_one_run(sshd: Sshd, tmp_path: Path) -> None:
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        callers = [asyncio.create_task(host.run_job(name, [*COUNTED, str(tmp_path)], limit=30)) for _ in range(10)]
        await until_there(tmp_path / "runs")
        (tmp_path / "go").touch()
        assert {(await caller).stdout for caller in callers} == {b"out\n"}
    assert runs(tmp_path) == 1


async def test_a_client_killed_in_the_middle_finds_its_job_again(sshd: Sshd, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(OWN_KEY.export_private_key())
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        arguments = [str(sshd.port), sshd.host_key, str(key), name, *COUNTED, str(tmp_path)]
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.functional.remote_child", *arguments, cwd=ROOT
        )
        await until_there(tmp_path / "runs")
        client.send_signal(signal.SIGKILL)
        await client.wait()
        again = asyncio.create_task(host.run_job(name, [*COUNTED, str(tmp_path)], limit=60))
        (tmp_path / "go").touch()
        assert (await again).stdout == b"out\n"
    assert runs(tmp_path) == 1


async def test_a_cut_connection_is_ridden_out(sshd: Sshd, tmp_path: Path) -> None:
    async with proxy_to(sshd.port) as proxy, ssh_host_on(sshd.target(port=proxy.port)) as host, named(host) as name:
        running = asyncio.create_task(host.run_job(name, [*COUNTED, str(tmp_path)], limit=60))
        await until_there(tmp_path / "runs")
        proxy.refusing = True
        proxy.cut()
        while proxy.accepted < 3:  # noqa: ASYNC110 - it has come back in vain
            await asyncio.sleep(0.01)
        (tmp_path / "go").touch()
        proxy.refusing = False
        assert (await running).stdout == b"out\n"
    assert runs(tmp_path) == 1


async def test_a_server_killed_for_longer_than_the_reconnect_limit_is_temporary_and_the_job_goes_on(
    sshd: Sshd, tmp_path: Path
) -> None:
    async with ssh_host_on(sshd.target(), SshLimits(reconnect=0.1)) as host, named(host) as name:
        running = asyncio.create_task(host.run_job(name, [*COUNTED, str(tmp_path)], limit=60))
        await until_there(tmp_path / "runs")
        sshd.kill()
        with pytest.raises(StepError) as caught:
            await running
        assert caught.value.temporary
        (tmp_path / "go").touch()
        sshd.start()
        assert (await host.run_job(name, [*COUNTED, str(tmp_path)], limit=60)).stdout == b"out\n"
    assert runs(tmp_path) == 1


async def test_a_job_longer_than_one_question_is_asked_after_again(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target(), SshLimits(watch=0.1)) as host, named(host) as name:
        assert (await host.run_job(name, ["sh", "-c", "sleep 0.6; echo end"], limit=20)).text == "end"


async def test_a_failed_job_says_why_and_a_retry_runs_it_again(sshd: Sshd, tmp_path: Path) -> None:
    fails = ["sh", "-c", 'echo run >>"$1/runs"; echo "no route" >&2; exit 4', "sh", str(tmp_path)]
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        for number in (1, 2):
            with pytest.raises(StepError, match=r"\(job test-.*ended with exit code 4\. Last on stderr: \"no route"):
                await host.run_job(name, fails, limit=20)
            assert runs(tmp_path) == number
        assert (await host.run_job(name, fails, limit=20, check=False)).exit_code == 4
        assert (await host.run_job(name, fails, limit=20, check=False)).exit_code == 4
    assert runs(tmp_path) == 3


async def test_the_same_name_with_another_command_is_refused(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        await host.run_job(name, ["echo", "one"], limit=20)
        for other, env in ((["echo", "two"], None), (["echo", "one"], {"A": "b"}), (["echo", "one", ""], None)):
            with pytest.raises(StepError, match=r"belongs to another command.*remove the old job") as caught:
                await host.run_job(name, other, env=env, limit=20)
            assert not caught.value.temporary


async def test_the_time_limit_ends_the_whole_group_deaf_children_too(sshd: Sshd, tmp_path: Path) -> None:
    deaf = 'sh -c "trap : TERM; echo \\$\\$ >$1/pid; while :; do sleep 0.1; done" & echo begun; wait'
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        with pytest.raises(StepError, match=r"timed out after 1 s\..* Last on stdout: \"begun") as caught:
            await host.run_job(name, ["sh", "-c", deaf, "sh", str(tmp_path)], limit=1)
        assert caught.value.temporary
        await until_gone((tmp_path / "pid").read_text().strip())


async def test_a_job_that_was_killed_is_told_and_its_leftovers_end_before_the_next_run(
    sshd: Sshd, tmp_path: Path
) -> None:
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        running = asyncio.create_task(host.run_job(name, [*COUNTED, str(tmp_path)], limit=60))
        await until_there(tmp_path / "runs")
        group = (JOBS / name / "group").read_text().strip()
        os.kill(parent_of(group), signal.SIGKILL)
        with pytest.raises(StepError, match="killed, or the machine restarted") as caught:
            await running
        assert caught.value.temporary
        await until_gone(group)
        (tmp_path / "go").touch()
        await host.run_job(name, [*COUNTED, str(tmp_path)], limit=60)
    assert runs(tmp_path) == 2


async def test_a_running_job_is_forgotten_only_when_it_may_be_killed(sshd: Sshd, tmp_path: Path) -> None:
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        running = asyncio.create_task(host.run_job(name, [*COUNTED, str(tmp_path)], limit=60))
        await until_there(tmp_path / "runs")
        with pytest.raises(StepError, match="still runs"):
            await host.remove_job(name)
        group = (JOBS / name / "group").read_text().strip()
        await host.remove_job(name, kill=True)
        await until_gone(group)
        with pytest.raises(StepError):
            await running
        await host.remove_job(name)


async def test_what_a_job_prints_is_for_its_owner_only(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        await host.run_job(name, ["echo", "one"], limit=20)
        assert {path.stat().st_mode & 0o077 for path in [JOBS / name, *(JOBS / name).iterdir()]} == {0}


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(TEXT, max_size=30), value=TEXT)
async def test_every_argument_and_variable_of_a_job_arrives_as_it_was(sshd: Sshd, words: list[str], value: str) -> None:
    async with ssh_host_on(sshd.target()) as host, named(host) as name:
        argv = [sys.executable, "-S", "-E", "-c", TELL, *words]
        result = await host.run_job(name, argv, env={"T_X": value}, limit=20)
    assert json.loads(result.stdout) == [[word.encode().hex() for word in words], {"T_X": value.encode().hex()}, ""]


async def test_a_lone_surrogate_is_refused_wherever_it_is_given(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target()) as host:
        for doing in (
            host.run(["echo", "\ud800"]),
            host.run(["echo"], env={"A": "\ud800"}),
            host.run_job("any", ["echo", "\ud800"], limit=5),
            host.put("/tmp/\ud800", b""),
            host.put("/tmp/any", "\ud800"),
            host.get("/tmp/\ud800"),
        ):
            with pytest.raises(StepError, match="lone surrogate"):
                await doing


@pytest.mark.parametrize("name", ["", "-x", "a/b", "..", "a b", "x" * 101, "é"])
async def test_a_name_that_is_no_file_name_is_refused(sshd: Sshd, name: str) -> None:
    async with ssh_host_on(sshd.target()) as host:
        with pytest.raises(StepError, match="can't be a job's name"):
            await host.run_job(name, ["true"], limit=5)


def parent_of(pid: str) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


async def until_gone(pid: str) -> None:
    async with asyncio.timeout(10):
        while Path(f"/proc/{pid}").exists():  # noqa: ASYNC110, ASYNC240 - not our child
            await asyncio.sleep(0.01)
