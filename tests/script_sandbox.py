"""Whether scripts of packages can run on this machine, for tests that run some."""

from __future__ import annotations

import subprocess

import pytest

from slipway.mgmt.script_limits import ScriptLimits, find_tools
from slipway.model.errors import StepError


def _why_not() -> str:
    try:
        bwrap = find_tools(ScriptLimits())["bwrap"]
    except StepError as error:
        return f"{error} (lab/scripts/install brings it)"
    tried = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    return done.stderr.strip()


_reason = _why_not()
needs_sandbox = pytest.mark.skipif(bool(_reason), reason=f"no sandbox for scripts on this machine: {_reason}")
