"""The receiver of the docs, as a user would run it: what the sender tells it becomes a VIM of a real Slipway."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.cluster.cluster_api.steps import SendCredentials, WorkloadSteps
from slipway.model.errors import StepError
from tests.functional.processes import running
from tests.unit.cluster.workload_world import World, a_world
from tests.unit.vim.authority import Authority

pytestmark = [pytest.mark.sqlite_suffices, pytest.mark.slow]

RECEIVER = Path(__file__).parents[2] / "docs" / "examples" / "credentials_receiver.py"
TOKEN = "what-slipway-shows"


@contextmanager
def a_receiver(directory: Path, slipway: httpx.Client, authority: Authority) -> Iterator[str]:
    """Its URL."""
    certificate, key = authority.issued("receiver", "127.0.0.1")
    (directory / "server.pem").write_text(certificate)
    (directory / "server.key").write_text(key)
    environment = {"RECEIVER_TOKEN": TOKEN, "SLIPWAY_TOKEN": slipway.headers["X-Auth-Token"]}
    words = ["--certificate", "server.pem", "--key", "server.key", "--slipway", str(slipway.base_url), "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, RECEIVER, *words],
        cwd=directory,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().removeprefix("receiving at ").strip()
    finally:
        process.kill()
        process.communicate()


async def send(world: World, url: str, authority: Authority, **more: Any) -> None:
    receiver = {"url": url, "ca_certificate": authority.pem, "bearer_token": TOKEN, **more}
    await WorkloadSteps(world.dependencies()).send(SendCredentials(receiver=receiver), world.context())


async def test_the_cluster_becomes_a_vim_and_new_credentials_take_the_place_of_the_old(tmp_path: Path) -> None:
    authority = Authority()
    with (
        running("serve", tmp_path / "data") as process,
        process.client() as slipway,
        a_receiver(tmp_path, slipway, authority) as url,
        a_world() as world,
    ):
        await send(world, url, authority)
        vim = slipway.get("/slipway/v1/vims/edge-demo").json()
        assert (vim["vimType"], vim["interfaceInfo"]["endpoint"]) == ("ETSINFV.KUBERNETES.V_1", world.url)
        check = slipway.post("/slipway/v1/vims/edge-demo/check").json()
        assert check["ok"], check
        world.asked.clear()
        world.give(world.kubeconfig("renewed"))
        await send(world, url, authority)
        assert slipway.post("/slipway/v1/vims/edge-demo/check").json()["ok"]
        assert "renewed" in {asked.client for asked in world.asked}
        with pytest.raises(StepError, match="answered 401"):
            await send(world, url, authority, bearer_token="another")
