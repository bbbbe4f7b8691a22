"""What operations cost: through the HTTP API, on a simulated VIM that answers at once."""

from __future__ import annotations

import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from bench.server import Server
from slipway.package.build import build_package

SAMPLE = Path(__file__).parents[1] / "samples" / "cluster-simulated"
INSTANCES = "/vnflcm/v2/vnf_instances"
POLL = 0.002


def onboard(server: Server, place: Path) -> str:
    """Upload the sample; its VNFD id."""
    csar = build_package(SAMPLE, place / "sample.csar")
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
        locations = {}
        began = time.perf_counter()
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(
                lambda one: client.post(f"{INSTANCES}/{one}/instantiate", json={"flavourId": "simple"}), ids
            )
            locations = {answer.headers["location"]: time.perf_counter() for answer in answers}
        ended: list[float] = []
        while locations:
            states = client.get("/vnflcm/v2/vnf_lcm_op_occs", params={"filter": "(eq,operationState,COMPLETED)"})
            done = {operation["_links"]["self"]["href"] for operation in states.json()}
            for location in done & locations.keys():
                del locations[location]
                ended.append(time.perf_counter() - began)
            if time.perf_counter() > began + 120:
                raise SystemExit("50 instantiations did not end in time")
        return statistics.median(ended), count / ended[-1]
