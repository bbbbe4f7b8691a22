"""What fails among many tests and passes alone is named, and is no failure; what fails twice is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rerun import FEW, to_run_again

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PASSES_THE_SECOND_TIME = """
from pathlib import Path

def test_race():
    before = Path("ran").exists()
    Path("ran").touch()
    assert before
"""


def _rerun(directory: Path, source: str) -> tuple[int, str]:
    (directory / "pytest.ini").write_text("[pytest]\nmarkers = group\n")
    (directory / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "tests.rerun", "-q", "-n", "1", "-m", "not group"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("PYTEST_ADDOPTS", None)
    ended = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout


def test_a_test_that_passes_alone_is_named_as_flaky(tmp_path: Path) -> None:
    code, said = _rerun(tmp_path, PASSES_THE_SECOND_TIME)
    assert code == 0
    assert "FLAKY test_it.py::test_race\n" in said


def test_a_test_that_fails_twice_has_failed(tmp_path: Path) -> None:
    code, said = _rerun(tmp_path, PASSES_THE_SECOND_TIME + "\ndef test_wrong():\n    assert False\n")
    assert code == 1
    assert "FLAKY test_it.py::test_race\n" in said
    assert "FAILED TWICE test_it.py::test_wrong\n" in said


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    source = "\n".join(f"def test_{n}():\n    assert False\n" for n in range(FEW + 1))
    code, said = _rerun(tmp_path, source)
    assert code == 1
    assert "Once more" not in said


def test_a_life_on_real_machines_is_run_again_as_a_whole() -> None:
    failed = ["tests/lab/test_x.py::test_heal", "tests/lab/test_x.py::test_scale", "tests/unit/test_y.py::test_z[1]"]
    assert to_run_again(failed) == ["tests/lab/test_x.py", "tests/unit/test_y.py::test_z[1]"]
