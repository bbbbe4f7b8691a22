"""The README can't rot: its commands are run, and the output it shows is what they print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.functional.processes import running

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
VARYING = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"kill -9 \d+", "kill -9 PID"),
    (r"\d+\.\d s\b", "TIME"),
    (r"attempt \d+", "ATTEMPT"),
]


def block_after(comment: str) -> list[str]:
    found = re.search(rf"<!-- {comment}:.*?-->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert found, f"the README has no block marked {comment!r}"
    return found.group(1).splitlines()


def same(line: str) -> str:
    for pattern, word in VARYING:
        line = re.sub(pattern, word, line)
    return line.strip()


def test_the_demo_prints_what_the_readme_shows() -> None:
    done = subprocess.run([sys.executable, ROOT / "demo" / "demo.py"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = iter(same(line) for line in done.stdout.splitlines())
    for line in filter(None, map(same, block_after("demo"))):
        assert line in printed, f"the demo does not print, in this order: {line}"


def test_the_commands_to_try_by_hand_work(tmp_path: Path) -> None:
    commands = [line.removeprefix("$ ") for line in block_after("try")]
    assert commands[0] == "slipway serve &"
    with running("serve", tmp_path / "data") as server:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SLIPWAY_URL": server.first_line.split(" ready at ")[1].split(" ")[0],
            "SLIPWAY_DATA_DIR": str(tmp_path / "data"),
        }
        printed = ""
        for command in commands[1:]:
            here = command.replace("samples/", shlex.quote(f"{ROOT}/samples") + "/")
            done = subprocess.run(["sh", "-c", here], capture_output=True, text=True, cwd=tmp_path, env=environment)
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            printed += done.stdout + done.stderr
    assert "FAILED_TEMP" in printed
    assert "retry" in printed


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make (\w+)`|\$ make (\w+)", README))))
def test_every_make_target_that_the_readme_names_exists(target: tuple[str, str]) -> None:
    dry = subprocess.run(["make", "--dry-run", "".join(target)], capture_output=True, text=True, cwd=ROOT)
    assert dry.returncode == 0, dry.stderr


def test_make_test_runs_what_the_readme_shows() -> None:
    dry = subprocess.run(["make", "--dry-run", "test"], capture_output=True, text=True, cwd=ROOT)
    assert block_after("test")[1:] == [line for line in dry.stdout.splitlines() if line.startswith(".venv/bin/")]


def test_every_link_of_the_readme_leads_somewhere() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).exists(), link
