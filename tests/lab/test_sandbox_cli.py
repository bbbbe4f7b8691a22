"""`slipway sandbox` on a real engine: what people type, and what they read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.model.action import VimConnection
from slipway.vim.sandbox import SandboxDriver
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.inventory import everything
from tests.lab.test_sandbox_machines import INSTANCE, one_machine, reached

pytestmark = pytest.mark.group(name="sandbox")

SLIPWAY = Path(sys.executable).parent / "slipway"


@pytest.fixture
def environment(engines: Engines, tmp_path: Path) -> dict[str, str]:
    settings = {"SLIPWAY_SANDBOX_DIR": str(engines.paths.directory), "SLIPWAY_DATA_DIR": str(tmp_path)}
    return {**{key: value for key, value in os.environ.items() if key != "DOCKER_HOST"}, **settings}


def slipway(environment: dict[str, str], *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [SLIPWAY, "sandbox", *words], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_check_finds_nothing_missing_here(environment: dict[str, str], operations: EngineOperations) -> None:
    found = json.loads(slipway(environment, "check", "-o", "json"))
    assert [one["what"] for one in found if not one["fine"]] == []


def test_the_image_is_built_once(environment: dict[str, str], operations: EngineOperations) -> None:
    assert "there already" in slipway(environment, "image", "build")


async def test_a_machine_is_listed_entered_and_read(
    environment: dict[str, str], driver: SandboxDriver, connection: VimConnection
) -> None:
    machine = (await reached(driver, connection, one_machine())).machines[0]
    listed = slipway(environment, "ls")
    assert machine.ports[0].address is not None
    assert machine.ports[0].address in listed
    assert "workerNode-1" in slipway(environment, "ssh", "workerNode-1", "hostname")
    assert "systemd" in slipway(environment, "logs", "workerNode-1")
    assert "There is no machine" in slipway(environment, "ssh", "nobody", code=1)
    assert "holds 1 machines" in slipway(environment, "stop", code=1)


async def test_prune_shows_asks_and_removes(
    environment: dict[str, str], driver: SandboxDriver, connection: VimConnection, operations: EngineOperations
) -> None:
    await reached(driver, connection, one_machine())
    nobody = "http://127.0.0.1:1"
    assert "127.0.0.1:1" in slipway(environment, "prune", "--yes", "--url", nobody, code=3)
    assert "machine workerNode-1" in slipway(environment, "prune", "--all", code=1)  # nobody answers the question
    assert list(everything(operations)) == [INSTANCE]
    assert "Removed" in slipway(environment, "prune", "--all", "--yes")
    assert everything(operations) == {}
    assert "nothing without an owner" in slipway(environment, "prune", "--all", "--yes")
