"""A script of a package runs in a sandbox: what it sees, how it ends, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

import pytest

from slipway.mgmt.script_limits import ScriptLimits
from slipway.mgmt.script_process import ScriptExit
from slipway.model.errors import StepError
from tests.script_sandbox import needs_sandbox
from tests.unit.mgmt.script_runs import CANARY, answer, processes_with, run, until

pytestmark = [needs_sandbox, pytest.mark.usefixtures("place")]


async def test_it_gets_its_stdin_and_its_answer_comes_back() -> None:
    given = json.dumps({"a": "x" * 300_000}).encode()
    said = await answer("import json, sys; print(json.dumps(len(json.load(sys.stdin)['a'])))", stdin=given)
    assert said == 300_000


async def test_it_need_not_read_its_stdin() -> None:
    assert await answer("print('{}')", stdin=b"x" * 1_000_000) == {}


async def test_a_shell_script_runs_too_and_python_finds_modules_beside_it() -> None:
    assert (await run('echo "{\\"in\\": \\"$PWD\\"}"', language="bash")).stdout == b'{"in": "/work"}\n'
    assert await answer("import beside, json; print(json.dumps(beside.WORD))") == "from beside"


async def test_nothing_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLIPWAY_CANARY", "secret")
    with tempfile.TemporaryFile() as file:
        os.set_inheritable(file.fileno(), True)
        said = await answer(
            """
            import json, os
            lines = open("/proc/self/status").read().splitlines()
            status = dict(line.split(":\\t") for line in lines if ":\\t" in line)
            print(json.dumps({
                "environment": sorted(os.environ),
                "more": [n for n in range(3, 1024) if os.path.exists(f"/proc/self/fd/{n}")],
                "cwd": os.getcwd(), "groups": os.getgroups(), "uid": os.getuid(), "umask": status["Umask"],
                "caps": [status[n] for n in ("CapEff", "CapPrm", "CapBnd")], "alone": status["NoNewPrivs"],
            }))
            """
        )
    assert set(said["environment"]) <= {"PATH", "LANG", "HOME", "LC_CTYPE"}
    assert said["more"] == []
    assert (said["cwd"], said["umask"], said["alone"]) == ("/work", "0077", "1")
    assert {int(caps, 16) for caps in said["caps"]} == {0}
    if os.geteuid() == 0:
        assert said["groups"] == []
        assert said["uid"] != 0


async def test_it_sees_no_files_but_the_systems_and_its_package(tmp_path: Path) -> None:
    secret = tmp_path / "secrets.key"
    secret.write_text("canary")
    secret.chmod(0o644)
    said = await answer(
        f"""
        import json, os, pathlib
        def can(path, how):
            try:
                open(path, how).close()
                return True
            except OSError:
                return False
        print(json.dumps({{
            "top": sorted(os.listdir("/")),
            "secret": can({str(secret)!r}, "r"),
            "writable": [path for path in ("/usr/x", "/package/x", __file__, "/etc/x", "/proc/sys/kernel/x")
                         if can(path, "w")],
            "own": can("/work/x", "w") and can("/tmp/x", "w"),
            "homes": [str(p) for p in pathlib.Path("/root").rglob("*") if p.name.startswith(".ssh")],
            "others": [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > 10],
        }}))
        """
    )
    assert not {"home", "var", "run", "sys", "opt", "srv", "mnt"} & set(said["top"])
    assert said["secret"] is False
    assert said["writable"] == []
    assert said["own"] is True
    assert said["homes"] == []
    assert said["others"] == []


async def test_where_root_alone_can_reach_its_directory_it_runs_all_the_same(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has files of others")
    os.chown(place, 12345, 12345)
    os.chmod(place, 0o700)  # noqa: PTH101
    assert await answer("print('{}')") == {}


async def test_it_can_make_no_namespace_of_its_own() -> None:
    ended = await run("import subprocess; subprocess.run(['unshare', '-U', 'true'], check=True)")
    assert ended.fault


async def test_what_it_leaves_running_is_ended_with_it() -> None:
    code = """
        (setsid sh -c 'while :; do sleep 1; done' "$0" >/dev/null 2>&1 &)
        while ! pgrep -f 'while :' >/dev/null; do :; done
        echo '{}'
        """
    ended = await run(code, language="bash")
    assert ended == ScriptExit(None, b"{}\n", b"")
    assert processes_with(CANARY) == []


async def test_killing_its_parent_and_everybody_changes_nothing() -> None:
    said = await answer(
        """
        import json, os, signal
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
            for pid in (os.getppid(), 1):
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        print(json.dumps(os.getppid()))
        """
    )
    assert said == 1


async def test_forking_without_end_stops_at_its_limit_and_leaves_nobody() -> None:
    began = time.monotonic()
    ended = await run(
        """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
        """,
        ScriptLimits(seconds=2, memory_bytes=4 << 30),  # enough for 64 processes, so that time ends them
    )
    assert ended.fault is not None
    assert "timed out after 2 s" in ended.fault.reason
    assert time.monotonic() - began < 15
    assert processes_with(CANARY) == []


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_flood_of_output_ends_it_and_fills_nothing(stream: str) -> None:
    began = time.monotonic()
    ended = await run(
        f"""
        import sys
        piece = "x" * 99 + "\\n"
        for _ in range(10_000_000):
            sys.{stream}.write(piece)
        """
    )
    assert ended.fault is not None
    assert f"on {stream}" in ended.fault.reason
    assert len(ended.stdout) <= 1 << 20
    assert len(ended.stderr) <= 4096
    assert time.monotonic() - began < 20


async def test_closing_its_streams_does_not_free_it_from_its_time() -> None:
    ended = await run("import os, time; [os.close(n) for n in (0, 1, 2)]; time.sleep(600)", ScriptLimits(seconds=1))
    assert ended.fault is not None
    assert "timed out after 1 s" in ended.fault.reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit(7)", "exit code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("open('/work/x', 'wb').write(b'x' * (65 << 20))", "exit code 1"),
        ("1 +", "exit code 1"),
        ("import os; os.kill(os.getpid(), 40)", "signal 40"),
    ],
)
async def test_how_it_ended_is_told(code: str, reason: str) -> None:
    ended = await run(code)
    assert ended.fault is not None
    assert reason in ended.fault.reason


async def test_broken_off_by_a_cancel_it_is_gone_when_the_cancel_is_through() -> None:
    running = asyncio.create_task(run("import time; time.sleep(600)"))
    await until(lambda: bool(processes_with(CANARY)))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert processes_with(CANARY) == []


async def test_a_user_that_does_not_exist_or_is_root_is_refused() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root becomes somebody else")
    with pytest.raises(StepError, match="no user 'no-such-user'"):
        await run("print('{}')", ScriptLimits(user="no-such-user"))
    with pytest.raises(StepError, match="never run as root"):
        await run("print('{}')", ScriptLimits(user="root"))
