"""GET /metrics, and the gauges that are read from the database at each scrape."""

from __future__ import annotations

from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from prometheus_client import Metric
from sqlalchemy import Connection

from slipway.api.response_schema import file_of
from slipway.api.routing import GET, AnyRequest, route
from slipway.api.services import Services
from slipway.store import operations, workers
from slipway.store.database import Database
from slipway.telemetry.metrics import CONTENT_TYPE, Collector, gauge

PATH = "/metrics"


class MetricsRoutes:
    def __init__(self, services: Services) -> None:
        self._telemetry = services.telemetry
        self._telemetry.collectors["operations"] = operations_of(services.database)

    def routes(self) -> list[HTTPRouteHandler]:
        return [route(GET, PATH, self.scrape, media_type="text/plain", responses={200: file_of("text/plain")})]

    async def scrape(self, request: AnyRequest) -> ASGIResponse:
        answer = ASGIResponse(body=await self._telemetry.scrape())
        answer.headers["content-type"] = CONTENT_TYPE
        return answer


def operations_of(database: Database) -> Collector:
    """The same from every process: all look into one database."""

    async def collect() -> list[Metric]:
        return await database.read(_operations)

    return collect


def _operations(connection: Connection) -> list[Metric]:
    return [
        gauge(
            "slipway_operations_open",
            "Operations that have not ended, in the whole database.",
            operations.count_open(connection),
            ("operation", "state"),
        ),
        gauge(
            "slipway_operations_waiting",
            "Operations that wait for a worker to claim them, in the whole database.",
            {(): operations.count_unclaimed(connection)},
        ),
        gauge("slipway_workers", "Workers that are alive.", {(): len(workers.alive(connection))}),
    ]
