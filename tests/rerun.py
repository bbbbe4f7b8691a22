"""Runs pytest, and what failed once more, alone: `python -m tests.rerun ARGUMENTS OF PYTEST`.

`make test` starts hundreds of processes, databases and machines on a few cores. What fails among them and passes when
nothing runs beside it is a race: it is named as FLAKY, with its first failure above, and does not hold back a change
that has nothing to do with it. What fails twice has failed, and so has a run in which many tests failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

FEW = 5  # failures; more of them are no accident


def main(arguments: Sequence[str]) -> int:
    code, failed = run(arguments)
    again = to_run_again(failed)
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(again) <= FEW:
        return code
    print(f"\nOnce more, alone: {', '.join(again)}", flush=True)
    code, failed_again = run(["-v", "-n", "1", "-m", "not group", *again])
    for name in failed:
        print(f"{'FAILED TWICE' if name in failed_again else 'FLAKY'} {name}", flush=True)
    return code


def run(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """The exit code, and which tests failed, in their setup or teardown, too."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
        code = subprocess.run(command, check=False).returncode
        last_failed = Path(cache) / "v" / "cache" / "lastfailed"
        return code, sorted(json.loads(last_failed.read_text())) if last_failed.exists() else []


def to_run_again(failed: Iterable[str]) -> list[str]:
    """The stages of a life on real machines belong together: all of their file."""
    return sorted({name.partition("::")[0] if name.startswith("tests/lab/") else name for name in failed})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
