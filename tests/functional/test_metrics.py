"""/metrics after a life on the simulated VIM: the numbers say what happened, and no label is an id or a name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy.engine import URL

from slipway.api.application import make_app
from slipway.api.telemetry_middleware import METHODS, TelemetryMiddleware
from slipway.store.database import Database
from slipway.telemetry.telemetry import Telemetry
from tests.cases import in_one_world
from tests.databases import setting
from tests.functional.processes import running, serving_on
from tests.functional.rig import settings_in
from tests.functional.test_processes import LCM, SLOW, Fleet, instantiate, onboard, running_steps, state_of, wait_for
from tests.unit.api.world import BASE_URL, TOKEN, World, a_world

pytestmark = pytest.mark.sqlite_suffices

PROMETHEUS_ACCEPTS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"


class Scrape:
    def __init__(self, client: httpx.Client) -> None:
        answer = client.get("/metrics", headers={"Accept": PROMETHEUS_ACCEPTS})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        self.families: dict[str, Metric] = {f.name: f for f in text_string_to_metric_families(answer.text)}

    def one(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name that have these labels."""
        found = [s for f in self.families.values() for s in f.samples if s.name == name]
        return sum(s.value for s in found if labels.items() <= s.labels.items())

    def labels(self, name: str) -> set[str]:
        """Every value of this label there is."""
        return {s.labels[name] for f in self.families.values() for s in f.samples if name in s.labels}


def test_a_life_and_then_the_numbers(tmp_path: Path, database_url: URL) -> None:
    with serving_on(database_url, tmp_path / "data") as (_, client):
        vnfd_id = onboard(client, tmp_path)
        client.put("/slipway/v1/vims/simulated/rules", json=[])
        instance_id, first = instantiate(client, vnfd_id)
        wait_for(lambda: state_of(client, first) == "COMPLETED")
        broken = [{"kind": "error", "call": "make_machine", "fault": "permanent"}]
        client.put("/slipway/v1/vims/simulated/rules", json=broken)
        _, second = instantiate(client, vnfd_id)
        wait_for(lambda: state_of(client, second) == "FAILED_TEMP")
        stands = Scrape(client)
        assert stands.one("slipway_operations_open", operation="INSTANTIATE", state="FAILED_TEMP") == 1
        assert client.post(f"{LCM}/vnf_lcm_op_occs/{second}/fail").status_code == 200
        body = {"terminationType": "FORCEFUL"}
        gone = client.post(f"{LCM}/vnf_instances/{instance_id}/terminate", json=body).headers["location"]
        wait_for(lambda: state_of(client, gone.rpartition("/")[2]) == "COMPLETED")
        # A state is counted just after it is on disk.
        counted = {"operation": "TERMINATE", "state": "COMPLETED"}
        wait_for(lambda: Scrape(client).one("slipway_operation_transitions_total", **counted))
        assert client.get(f"{LCM}/vnf_instances/{'x' * 40}").status_code == 404
        assert client.get("/no/such/path").status_code == 404
        assert client.request("PURGE", "/health").status_code == 405

        scrape = Scrape(client)
        entered = {
            (operation, state): int(scrape.one("slipway_operation_transitions_total", operation=operation, state=state))
            for operation in ("INSTANTIATE", "TERMINATE")
            for state in ("STARTING", "PROCESSING", "COMPLETED", "FAILED_TEMP", "FAILED")
        }
        assert entered == {
            ("INSTANTIATE", "STARTING"): 2,
            ("INSTANTIATE", "PROCESSING"): 2,
            ("INSTANTIATE", "COMPLETED"): 1,
            ("INSTANTIATE", "FAILED_TEMP"): 1,
            ("INSTANTIATE", "FAILED"): 1,
            ("TERMINATE", "STARTING"): 1,
            ("TERMINATE", "PROCESSING"): 1,
            ("TERMINATE", "COMPLETED"): 1,
            ("TERMINATE", "FAILED_TEMP"): 0,
            ("TERMINATE", "FAILED"): 0,
        }
        assert scrape.one("slipway_operations_open") == 0
        assert scrape.one("slipway_operations_waiting") == 0
        assert scrape.one("slipway_workers") == 1
        for outcome, operations in (("done", (first,)), ("failed", (second,))):
            made = [
                s for o in operations for s in client.get(f"/slipway/v1/operations/{o}/steps").json()["steps"]
                if (s["action"], s["state"].lower()) == ("simulated.make_machine", outcome)
            ]  # fmt: skip
            labels = {"action": "simulated.make_machine", "outcome": outcome}
            assert scrape.one("slipway_step_seconds_count", **labels) == len(made) > 0
        refused = scrape.one("slipway_http_requests_total", route=f"{LCM}/vnf_instances/{{id}}", status="4xx")
        assert refused == scrape.one("slipway_http_requests_total", route="(none)", method="GET") == 1
        assert scrape.one("slipway_http_requests_total", method="other") == 1
        began = {"route": f"{LCM}/vnf_instances/{{id}}/instantiate", "method": "POST"}
        assert scrape.one("slipway_http_requests_total", **began, status="2xx") == 2
        assert scrape.one("slipway_http_request_seconds_count", **began) == 2
        assert scrape.one("process_resident_memory_bytes") > 10 * 1024**2
        assert scrape.labels("collector") >= {"operations", "worker"}
        assert scrape.one("slipway_collector_up") == len(scrape.labels("collector"))

        # Bounded: nothing that came from outside.
        assert scrape.labels("method") <= METHODS | {"other"}
        assert scrape.labels("status") <= {"1xx", "2xx", "3xx", "4xx", "5xx", "none"}
        assert not [route for route in scrape.labels("route") if instance_id in route or "such" in route]


def test_what_waits_and_what_runs(tmp_path: Path) -> None:
    with running("serve", tmp_path / "data", steps_at_once=1) as server, server.client() as client:
        vnfd_id = onboard(client, tmp_path)
        client.put("/slipway/v1/vims/simulated/rules", json=[SLOW])
        _, operation_id = instantiate(client, vnfd_id)
        wait_for(lambda: "make_machine" in str(running_steps(client, operation_id)) or waiting(client))
        wait_for(lambda: waiting(client))
        scrape = Scrape(client)
        assert scrape.one("slipway_operations_open", operation="INSTANTIATE", state="PROCESSING") == 1
        wait_for(lambda: state_of(client, operation_id) == "COMPLETED")
        assert waiting(client) == 0


def waiting(client: httpx.Client) -> float:
    scrape = Scrape(client)
    assert scrape.one("slipway_steps_running") <= 1
    return scrape.one("slipway_steps_waiting")


def test_accepted_without_a_worker_waits_to_be_claimed(tmp_path: Path, postgresql_url: URL) -> None:
    url = setting(postgresql_url)
    with running("api", tmp_path / "data", database_url=url) as api:
        fleet = Fleet(api, tmp_path, settings_in(tmp_path / "data", url))
        for _ in range(2):
            instantiate(fleet.client, fleet.vnfd_id)
        scrape = Scrape(fleet.client)
        fleet.client.close()
    assert scrape.one("slipway_operations_waiting") == 2
    assert scrape.one("slipway_operations_open", operation="INSTANTIATE", state="STARTING") == 2
    assert scrape.one("slipway_workers") == 0


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


@pytest.mark.parametrize(("public", "status"), [(False, 401), (True, 200)])
async def test_the_numbers_want_a_token_unless_they_are_public(
    database: Database, tmp_path: Path, public: bool, status: int
) -> None:
    async with a_world(database, tmp_path, metrics_public=public) as world:
        await world.call("GET", "/metrics", 200)
        app: Any = make_app(world.services)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE_URL) as stranger:
            assert (await stranger.get("/metrics")).status_code == status
            assert (await stranger.get("/slipway/v1/info")).status_code == 401


@in_one_world(
    ("given", "kept"),
    [("abc-123:4_5.6".replace("_", "."), True), ("a" * 64, True), ("a" * 65, False), ("a b", False), ("", False),
     ("<script>", False), ("é", False)],
)  # fmt: skip
async def test_an_id_for_every_request(world: World, given: str, kept: bool) -> None:
    app: Any = TelemetryMiddleware(make_app(world.services), Telemetry().metrics)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE_URL) as client:
        headers = {"X-Auth-Token": TOKEN, "X-Request-Id": given.encode("utf-8")}
        answers = [await client.get(path, headers=headers) for path in ("/health", "/slipway/v1/info", "/nothing")]  # type: ignore[arg-type]
        answers.append(await client.get("/slipway/v1/info"))
    assert [answer.status_code for answer in answers] == [200, 200, 404, 401]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert all(ids)
    assert (ids[:3] == [given] * 3) is kept
    assert kept or len(set(ids)) == 4


def test_a_worker_of_its_own_tells_its_own_numbers(tmp_path: Path, postgresql_url: URL) -> None:
    shared = {"database_url": setting(postgresql_url)}
    settings = settings_in(tmp_path, **shared)
    with running("api", tmp_path, **shared) as api, running("worker", tmp_path, **shared, metrics_port=0) as worker:
        fleet = Fleet(api, tmp_path, settings)
        with closing(fleet.client) as client:
            _, operation_id = instantiate(client, fleet.vnfd_id)
            wait_for(lambda: state_of(client, operation_id) == "COMPLETED")
            token = client.headers["X-Auth-Token"]
        address = worker.first_line.split("its metrics at ")[1].strip().removesuffix("/metrics")
        assert httpx.get(f"{address}/metrics").status_code == 401
        assert httpx.get(f"{address}/health").status_code == 200
        with httpx.Client(base_url=address, headers={"X-Auth-Token": token}) as watcher:
            made = {"action": "simulated.make_machine", "outcome": "done"}
            assert Scrape(watcher).one("slipway_step_seconds_count", **made) == 3
            assert watcher.get(f"{LCM}/vnf_instances", headers={"Version": "2.0.0"}).status_code == 404
