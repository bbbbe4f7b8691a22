"""The command line against a scripted server, in this process and without waiting."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

if (root := str(Path(__file__).parents[3])) not in sys.path:
    sys.path.insert(0, root)

from slipway.cli.main import app
from tests.unit.cli.scripted_server import ScriptedServer

Slipway = Callable[..., Result]


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer()


@pytest.fixture
def slipway(server: ScriptedServer, tmp_path: Path) -> Slipway:
    """Call a command as a shell would."""

    def call(*args: str, input: str | None = None, **environment: str) -> Result:
        empty = dict.fromkeys(name for name in os.environ if name.startswith("SLIPWAY_"))
        env = {**empty, "XDG_DATA_HOME": str(tmp_path / "home"), **environment}
        return CliRunner(env=env).invoke(
            app, list(args), input=input, obj=server.environment(), prog_name="slipway", catch_exceptions=False
        )

    return call
