"""The demo on real machines: it runs, and prints what the README shows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from slipway.vim.sandbox.engines import Engines
from tests.functional.readme import ROOT, block_after, same

pytestmark = pytest.mark.group(name="demo")


def test_the_demo_prints_what_the_readme_shows(kubernetes_engines: Engines) -> None:
    done = subprocess.run([sys.executable, ROOT / "demo" / "demo.py"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = iter([same(line) for line in done.stdout.splitlines()])
    for line in filter(None, map(same, block_after("demo"))):
        assert line in printed, f"the demo does not print, in this order: {line}\n{done.stdout}"
