"""What Kubernetes clusters cost Slipway: on simulated hosts, so that only its own time counts.

The sample's scale level ends at 10; the package measured here is the sample with a higher end.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.lifecycle import INSTANCES, OPERATIONS, begin_all, create, upload
from bench.server import Server
from slipway.model.action import VimConnection
from slipway.model.vim import SIMULATED
from slipway.simulator.vim.driver import SimulatedDriver

SAMPLE = Path(__file__).parents[1] / "samples" / "cluster-sandbox"
WIDER = {"max_number_of_instances: 12": "max_number_of_instances: 1002", "max_scale_level: 10": "max_scale_level: 1000"}
RULES = "/slipway/v1/vims/simulated/rules"
AS_SLOW_AS_SSH = {"kind": "latency", "call": "host", "seconds": 0.3}
PATIENCE = 600.0
POLL = 0.01


def instantiation() -> dict[str, Any]:
    login = {"username": "root", "password": "over the hills"}
    nodes = {
        f"{role}_node": {"vdu_id": f"{role}Node", "ssh_cp_name": f"{role}Node_CP1", **login}
        for role in ("master", "worker")
    }
    return {"flavourId": "simple", "additionalParams": {"k8s_cluster_installation_param": nodes}}


def onboard(server: Server, place: Path) -> str:
    """The sample with room for a thousand workers; its VNFD id."""
    source = place / "wide"
    shutil.copytree(SAMPLE, source)
    definitions = source / "Definitions" / "cluster_df_simple.yaml"
    text = definitions.read_text()
    for narrow, wide in WIDER.items():
        text = text.replace(narrow, wide)
    definitions.write_text(text)
    return upload(server, source, place / "wide.csar")


@dataclass(frozen=True)
class Growth:
    """Seconds, and remote calls: to hosts and to the cluster's API."""

    seconds: float
    calls: int


class Bench:
    def __init__(self, client: httpx.Client, data_dir: Path, instance_id: str) -> None:
        self.client, self.instance_id = client, instance_id
        self._vim = SimulatedDriver(data_dir / "simulated")
        self._connection = VimConnection(SIMULATED, {"endpoint": "sim://simulated"}, {}, {})

    def instantiate(self) -> None:
        self._run("instantiate", instantiation())

    def grow(self, steps: int) -> Growth:
        before = self._calls()
        seconds = self._run("scale", {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": steps})
        return Growth(seconds, self._calls() - before)

    def shrink(self, steps: int) -> None:
        self._run("scale", {"type": "SCALE_IN", "aspectId": "workers", "numberOfSteps": steps})

    def grow_by_one(self, runs: int = 7) -> Growth:
        """The median, each time from the same size."""
        grown = []
        for _ in range(runs):
            grown.append(self.grow(1))
            self.shrink(1)
        return Growth(statistics.median(one.seconds for one in grown), max(one.calls for one in grown))

    @contextmanager
    def slow_hosts(self) -> Iterator[None]:
        self.client.put(RULES, json=[AS_SLOW_AS_SSH]).raise_for_status()
        yield
        self.client.delete(RULES).raise_for_status()

    def close(self) -> None:
        self._vim.close()

    def _run(self, what: str, body: dict[str, Any]) -> float:
        began = time.perf_counter()
        answer = self.client.post(f"{INSTANCES}/{self.instance_id}/{what}", json=body)
        answer.raise_for_status()
        while time.perf_counter() < began + PATIENCE:
            operation = self.client.get(answer.headers["location"]).json()
            if operation["operationState"] == "COMPLETED":
                return time.perf_counter() - began
            if operation["operationState"] not in ("STARTING", "PROCESSING"):
                raise SystemExit(f"{what} ended {operation['operationState']}: {operation.get('error')}")
            time.sleep(POLL)
        raise SystemExit(f"{what} did not end in time")

    def _calls(self) -> int:
        counted = asyncio.run(self._vim.calls(self._connection))
        return sum(number for name, number in counted.items() if name.split()[0] in ("host", "api"))


@dataclass(frozen=True)
class Measured:
    """At 3 and at 300 nodes: one worker more, on hosts that answer at once and on slow ones; and a hundred more."""

    one: tuple[Growth, Growth]
    slow_one: tuple[Growth, Growth]
    slow_hundred: Growth


def growth(server: Server, vnfd_id: str, data_dir: Path) -> Measured:
    with server.client as client:
        bench = Bench(client, data_dir, create(client, vnfd_id))
        try:
            bench.instantiate()
            bench.grow_by_one(2)  # the first ones load what they need
            small = bench.grow_by_one()
            with bench.slow_hosts():
                slow_small = bench.grow_by_one(3)
                hundred = bench.grow(100)
            bench.grow(197)
            large = bench.grow_by_one()
            with bench.slow_hosts():
                slow_large = bench.grow_by_one(3)
            return Measured((small, large), (slow_small, slow_large), hundred)
        finally:
            bench.close()


def many(server: Server, vnfd_id: str, count: int = 1000) -> float:
    """Seconds until so many clusters of three nodes stand, from the first request for one."""
    with server.client as client:
        ids = [create(client, vnfd_id) for _ in range(count)]
        began = time.perf_counter()
        begin_all(client, ids, instantiation())
        running = "(in,operationState,STARTING,PROCESSING)"
        while client.get(OPERATIONS, params={"filter": running}).json():
            if time.perf_counter() > began + 2 * PATIENCE:
                raise SystemExit(f"{count} clusters did not stand in time")
            time.sleep(0.5)
        seconds = time.perf_counter() - began
        if failed := client.get(OPERATIONS, params={"filter": "(neq,operationState,COMPLETED)"}).json():
            raise SystemExit(f"a cluster does not stand: {failed[0].get('error')}")
        print(
            f"  {client.post('/slipway/v1/vims/simulated/check').json()['detail']}; {server.rss_mib():.0f} MiB resident"
        )
        return seconds
