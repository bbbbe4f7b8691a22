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
from tests.functional.readme import README, ROOT, block_after


def test_the_fast_demo_tells_a_whole_life() -> None:
    demo = [sys.executable, str(ROOT / "demo" / "demo.py"), "--simulated"]
    done = subprocess.run(demo, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "INSTANTIATE COMPLETED" in done.stdout
    assert "HEAL COMPLETED" in done.stdout
    assert done.stdout.rstrip().endswith("and nothing is left.")


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


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([\w-]+)`|\$ make ([\w-]+)", README))))
def test_every_make_target_that_the_readme_names_exists(target: tuple[str, str]) -> None:
    dry = subprocess.run(["make", "--dry-run", "".join(target)], capture_output=True, text=True, cwd=ROOT)
    assert dry.returncode == 0, dry.stderr


def test_make_test_runs_what_the_readme_shows() -> None:
    dry = subprocess.run(["make", "--dry-run", "test"], capture_output=True, text=True, cwd=ROOT)
    assert block_after("test")[1:] == [line for line in dry.stdout.splitlines() if line.startswith(".venv/bin/")]


def test_every_link_of_the_readme_leads_somewhere() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).exists(), link
