"""A journey with a stage that fails: its name is told, and what does not need it goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.functional.readme import ROOT

HOOKS = "from tests.lab.stages import pytest_runtest_makereport, pytest_runtest_setup\n"
JOURNEY = """
from tests.lab.stages import needs

def test_built(): pass

@needs(test_built)
def test_scaled_out(): assert not "enough machines"

@needs(test_scaled_out)
def test_scaled_in(): pass

@needs(test_built, test_scaled_in)
def test_scaled_out_again(): pass

@needs(test_built)
def test_terminated(): pass
"""


@pytest.mark.slow
def test_one_failure_does_not_hide_the_rest(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_journey.py").write_text(JOURNEY)
    quiet = ["-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", "-v", "-rs", *quiet, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    states = {line.split("::")[1].split()[0]: line.split()[1] for line in done.stdout.splitlines() if "%]" in line}
    assert states == {
        "test_built": "PASSED",
        "test_scaled_out": "FAILED",
        "test_scaled_in": "SKIPPED",
        "test_scaled_out_again": "SKIPPED",
        "test_terminated": "PASSED",
    }, done.stdout + done.stderr
    assert "needs test_scaled_out, which failed" in done.stdout
    assert "needs test_scaled_in, which was skipped" in done.stdout
    assert done.returncode == 1
