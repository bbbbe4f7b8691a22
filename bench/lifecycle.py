"""What operations cost: through the HTTP API, on a simulated VIM that answers at once."""

from __future__ import annotations

import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from bench.server import Server
from slipway.package.build import build_package

SAMPLE = Path(__file__).parents[1] / "samples" / "cluster-simulated"
INSTANCES = "/vnflcm/v2/vnf_instances"
OPERATIONS = "/vnflcm/v2/vnf_lcm_op_occs"
PATIENCE = 120.0
POLL = 0.002


def onboard(server: Server, place: Path) -> str:
    """Upload the sample; its VNFD id."""
    return upload(server, SAMPLE, place / "sample.csar")


def upload(server: Server, source: Path, target: Path) -> str:
    csar = build_package(source, target)
    with server.client as client:
        package_id = client.post("/vnfpkgm/v1/vnf_packages", json={}).json()["id"]
        content = csar.path.read_bytes()
        answer = client.put(
            f"/vnfpkgm/v1/vnf_packages/{package_id}/package_content",
            content=content,
            headers={"Content-Type": "application/zip"},
        )
        answer.raise_for_status()
        while client.get(f"/vnfpkgm/v1/vnf_packages/{package_id}").json()["onboardingState"] != "ONBOARDED":
            time.sleep(POLL)
    return csar.descriptor.vnfd_id


def create(client: httpx.Client, vnfd_id: str) -> str:
    answer = client.post(INSTANCES, json={"vnfdId": vnfd_id})
    answer.raise_for_status()
    instance_id: str = answer.json()["id"]
    return instance_id


def instantiate(client: httpx.Client, instance_id: str, *, patience: float = 60.0) -> float:
    """Seconds from the request until the operation is seen COMPLETED."""
    began = time.perf_counter()
    location = client.post(f"{INSTANCES}/{instance_id}/instantiate", json={"flavourId": "simple"}).headers["location"]
    while time.perf_counter() < began + patience:
        state = json.loads(client.get(location).content)["operationState"]
        if state == "COMPLETED":
            return time.perf_counter() - began
        if state not in ("STARTING", "PROCESSING"):
            raise SystemExit(f"an instantiation ended {state}")
        time.sleep(POLL)
    raise SystemExit("an instantiation did not end in time")


def one_after_another(server: Server, vnfd_id: str, count: int = 30) -> float:
    with server.client as client:
        ids = [create(client, vnfd_id) for _ in range(count)]
        return statistics.median(instantiate(client, instance_id) for instance_id in ids)


def at_once(server: Server, vnfd_id: str, count: int = 50) -> tuple[float, float]:
    """The median seconds of one, and how many a second ended."""
    with server.client as client:
        ids = [create(client, vnfd_id) for _ in range(count)]
        began = time.perf_counter()
        accepted = begin_all(client, ids, {"flavourId": "simple"})
        ended: list[float] = []
        while len(ended) < count:
            done = sum(1 for state in states(client, accepted) if state == "COMPLETED")
            ended += [time.perf_counter() - began] * (done - len(ended))
            if time.perf_counter() > began + PATIENCE:
                raise SystemExit(f"{count} instantiations did not end in time")
        return statistics.median(ended), count / ended[-1]


def many(server: Server, vnfd_id: str, count: int = 1000) -> float:
    """Seconds until so many instances of seven machines run, from the first request for one."""
    with server.client as client:
        ids = [create(client, vnfd_id) for _ in range(count)]
        began = time.perf_counter()
        begin_all(client, ids, {"flavourId": "simple", "instantiationLevelId": "large"})
        running = "(in,operationState,STARTING,PROCESSING)"
        while client.get(OPERATIONS, params={"filter": running}).json():
            if time.perf_counter() > began + 10 * PATIENCE:
                raise SystemExit(f"{count} instantiations did not end in time")
            time.sleep(0.2)
        seconds = time.perf_counter() - began
        machines = client.post("/slipway/v1/vims/simulated/check").json()["detail"]
        print(f"  {machines}; {server.rss_mib():.0f} MiB resident")
        return seconds


def begin_all(client: httpx.Client, ids: list[str], body: dict[str, Any]) -> set[str]:
    """Ask for all, eight at a time; the operations' ids."""
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda one: client.post(f"{INSTANCES}/{one}/instantiate", json=body), ids)
        return {answer.headers["location"].rpartition("/")[2] for answer in answers}


def states(client: httpx.Client, operation_ids: set[str]) -> list[str]:
    listed = client.get(OPERATIONS).json()
    return [operation["operationState"] for operation in listed if operation["id"] in operation_ids]
