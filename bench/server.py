"""A server to measure: a process of its own in a directory of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

SLIPWAY = str(Path(sys.executable).with_name("slipway"))
PATIENCE = 60.0


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[str]
    port: int
    token: str
    seconds_to_first_answer: float

    @property
    def client(self) -> httpx.Client:
        headers = {"X-Auth-Token": self.token, "Version": "2.0.0"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=PATIENCE)

    def cpu_seconds(self) -> float:
        """Of the process so far. On a shared machine this says more than the clock."""
        return time.clock_gettime(~self.process.pid << 3 | 2)  # as clock_getcpuclockid(3) names another's CPU clock

    def rss_mib(self) -> float:
        """Of the process and all its children."""
        pids, total = [self.process.pid], 0
        while pids:
            pid = pids.pop()
            status = Path(f"/proc/{pid}/status").read_text()
            total += int(status.split("VmRSS:")[1].split()[0])
            pids += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return total / 1024


@contextmanager
def serving(data_dir: Path) -> Iterator[Server]:
    began = time.perf_counter()
    command = [SLIPWAY, "serve", "--port", "0", "--data-dir", str(data_dir)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        port = int(line.split(" (")[0].rpartition(":")[2])
        if httpx.get(f"http://127.0.0.1:{port}/health").status_code != 200:
            raise SystemExit("the server is not healthy")
        ready = time.perf_counter() - began
        yield Server(process, port, (data_dir / "token").read_text().strip(), ready)
    finally:
        process.terminate()
        process.communicate()
