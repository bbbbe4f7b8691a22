"""Slipway's own processes, started as a user would, for tests that kill, freeze and stop them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from sqlalchemy.engine import URL

from slipway.model.vim import SIMULATED
from tests.databases import setting

SLIPWAY = str(Path(sys.executable).with_name("slipway"))
HEADERS = {"Version": "2.0.0"}
VIM = {"name": "simulated", "vimType": SIMULATED, "isDefault": True, "interfaceInfo": {"endpoint": "sim://simulated"}}


class Process:
    """One `slipway serve|api|worker`. Started when it has printed its first line."""

    def __init__(self, role: str, data_dir: Path, **settings: object) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY_")}
        given = {name: value for name, value in settings.items() if value is not None}
        environment |= {f"SLIPWAY_{name.upper()}": str(value) for name, value in given.items()}
        self.data_dir = data_dir
        self.log = data_dir / f"{role}.log"
        data_dir.mkdir(parents=True, exist_ok=True)
        port = [] if role == "worker" else ["--port", "0"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [SLIPWAY, role, *port, "--data-dir", str(data_dir)],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )
        self.first_line = self._process.stdout.readline() if self._process.stdout else ""
        if "ready" not in self.first_line:
            self.end(signal.SIGKILL)
            raise AssertionError(self.log.read_text())

    @property
    def pid(self) -> int:
        return self._process.pid

    def client(self) -> httpx.Client:
        url = self.first_line.split(" ready at ")[1].split(" ")[0]
        token = (self.data_dir / "token").read_text().strip()
        return httpx.Client(base_url=url, headers={**HEADERS, "X-Auth-Token": token}, timeout=30)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM, within: float = 30) -> int:
        """Send a signal and wait; the exit code."""
        if self._process.poll() is None:
            self.send(number)
        self._process.communicate(timeout=within)
        return self._process.returncode


@contextmanager
def running(role: str, data_dir: Path, **settings: object) -> Iterator[Process]:
    process = Process(role, data_dir, **settings)
    try:
        yield process
    finally:
        process.end(signal.SIGKILL)


@contextmanager
def serving_on(url: URL, data_dir: Path, **settings: object) -> Iterator[tuple[Process, httpx.Client]]:
    """A server on this database, with the simulated VIM that the embedded one has by itself."""
    with running("serve", data_dir, database_url=setting(url), **settings) as server, server.client() as client:
        if setting(url):
            client.post("/slipway/v1/vims", json=VIM).raise_for_status()
        yield server, client
