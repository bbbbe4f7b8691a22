"""Commands on a real sshd: arguments, streams, limits, and what errors say."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.model.errors import StepError
from slipway.remote.connect import SshLimits
from tests.functional.remote_sshd import Sshd, running_sshd, ssh_host_on

# A remote program that tells exactly what it got, byte by byte.
TELL = """
import json, os, sys
env = {name: os.fsencode(value).hex() for name, value in os.environ.items() if name.startswith("T_")}
print(json.dumps([[os.fsencode(word).hex() for word in sys.argv[1:]], env, sys.stdin.buffer.read().hex()]))
"""
PYTHON = [sys.executable, "-S", "-E", "-c"]
# Any text an argument can hold; the shell's own characters often.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40) | st.text(
    "'\"\\$`!*?[]{}()<>|&;#~=-% \t\n\ra", max_size=20
)


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(TEXT, max_size=30), values=st.lists(TEXT, max_size=5), stdin=st.binary(max_size=200))
async def test_every_argument_variable_and_input_arrives_as_it_was(
    sshd: Sshd, words: list[str], values: list[str], stdin: bytes
) -> None:
    env = {f"T_{number}": value for number, value in enumerate(values)}
    async with ssh_host_on(sshd.target()) as host:
        result = await host.run([*PYTHON, TELL, *words], env=env, stdin=stdin)
    assert json.loads(result.stdout) == [
        [word.encode().hex() for word in words],
        {name: value.encode().hex() for name, value in env.items()},
        stdin.hex(),
    ]


async def test_stdout_stderr_and_exit_code_are_kept_apart(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target()) as host:
        result = await host.run(["sh", "-c", "echo out; echo err >&2; exit 3"], check=False)
    assert (result.exit_code, result.stdout, result.stderr, result.signal) == (3, b"out\n", b"err\n", None)


async def test_warnings_on_stderr_are_no_failure(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target()) as host:
        assert (await host.run(["sh", "-c", "echo warning >&2; echo fine"])).text == "fine"


async def test_ten_megabytes_on_both_streams_and_stdin_do_not_block_and_are_not_kept(sshd: Sshd) -> None:
    both = "cat >/dev/null & head -c 10000000 /dev/zero >&2 & head -c 10000000 /dev/zero; wait; echo end; echo END >&2"
    async with ssh_host_on(sshd.target(), SshLimits(kept_output=4096)) as host:
        result = await host.run(["sh", "-c", both], stdin=bytes(10_000_000))
    assert len(result.stdout) == len(result.stderr) == 4096
    assert (result.stdout[-4:], result.stderr[-4:]) == (b"end\n", b"END\n")
    assert result.lost == 10_000_004 - 4096


async def test_lines_are_told_as_they_come(sshd: Sshd, tmp_path: Path) -> None:
    """The command goes on only when its first line has arrived."""
    go, lines = tmp_path / "go", list[str]()

    def on_line(line: str) -> None:
        lines.append(line)
        go.touch()

    script = 'echo one; while [ ! -e "$1" ]; do sleep 0.01; done; printf "\\033[31mtwo"'
    async with ssh_host_on(sshd.target()) as host:
        await host.run(["sh", "-c", script, "sh", str(go)], on_line=on_line, limit=10)
    assert lines == ["one", "two"]


async def test_a_failure_names_host_command_exit_code_and_the_last_lines_of_both(sshd: Sshd) -> None:
    script = "for i in $(seq 30); do echo out$i; done; printf 'bad \\033[1mthing\\007\\n' >&2; exit 7"
    async with ssh_host_on(sshd.target()) as host:
        with pytest.raises(StepError) as caught:
            await host.run(["sh", "-c", script])
    detail = caught.value.detail
    assert not caught.value.temporary
    assert str(sshd.target()) in detail
    assert "sh -c" in detail
    assert 'exit code 7. Last on stderr: "bad thing". Last on stdout: "out21 | out22 |' in detail
    assert "out20" not in detail


async def test_a_signal_is_named(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target()) as host:
        with pytest.raises(StepError, match="was ended by signal KILL"):
            await host.run(["sh", "-c", "kill -9 $PPID; kill -9 $$"])


async def test_a_program_that_is_not_there_has_a_cure(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target()) as host:
        with pytest.raises(StepError, match=r"exit code 127.*Cure: install the program"):
            await host.run(["no-such-program"])


async def test_a_secret_given_by_stdin_is_not_in_the_error_that_repeats_it(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target()) as host:
        with pytest.raises(StepError, match=r"wrong password: \*\*\*") as caught:
            await host.run(["sh", "-c", 'read x; echo "wrong password: $x" >&2; exit 1'], stdin=b"canary-4711\n")
    assert "canary" not in caught.value.detail


async def test_a_command_over_its_limit_is_ended_there_too(sshd: Sshd, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    async with ssh_host_on(sshd.target()) as host:
        with pytest.raises(StepError, match=r"timed out after 1\.5 s\. Last on stdout: \"working") as caught:
            await host.run(["sh", "-c", 'echo $$ >"$1"; echo working; sleep 60', "sh", str(pid)], limit=1.5)
        assert caught.value.temporary
        await host.run(["timeout", "10", "tail", "--pid", pid.read_text().strip(), "-f", "/dev/null"])


async def test_silence_over_its_limit_ends_a_command_and_slow_output_does_not(sshd: Sshd) -> None:
    async with ssh_host_on(sshd.target()) as host:
        slow = await host.run(["sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.5; done"], unreachable=2, limit=30)
        assert slow.stdout == b"1\n2\n3\n4\n5\n"
        with pytest.raises(StepError, match=r"0\.3 s without output") as caught:
            await host.run(["sh", "-c", "echo once; sleep 60"], unreachable=0.3, limit=20)
    assert caught.value.temporary


async def test_a_command_that_leaves_something_running_does_not_hold_us(sshd: Sshd) -> None:
    began = time.monotonic()
    async with ssh_host_on(sshd.target()) as host:
        await host.run(["sh", "-c", "sleep 30 >/dev/null 2>&1 </dev/null &"])
    assert time.monotonic() - began < 10
