"""Numbers for Prometheus. Those that are counted come from telemetry, those that the database knows are asked for."""

from __future__ import annotations

from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from sqlalchemy import Connection

from slipway.api.answers import file_of
from slipway.api.routing import GET, AnyRequest, route
from slipway.api.services import Services
from slipway.store import counts, workers
from slipway.store.database import Database
from slipway.telemetry.exposition import CONTENT_TYPE
from slipway.telemetry.numbers import Collector, Gauge

PATH = "/metrics"


class Metrics:
    def __init__(self, services: Services) -> None:
        self._telemetry = services.telemetry
        self._telemetry.collectors["operations"] = operations_of(services.database)

    def routes(self) -> list[HTTPRouteHandler]:
        return [route(GET, PATH, self.scrape, gives="text/plain", answers={200: file_of("text/plain")})]

    async def scrape(self, request: AnyRequest) -> ASGIResponse:
        answer = ASGIResponse(body=await self._telemetry.scrape())
        answer.headers["content-type"] = CONTENT_TYPE
        return answer


def operations_of(database: Database) -> Collector:
    """The same from every process: all look into one database."""

    async def collect() -> list[Gauge]:
        return await database.read(_operations)

    return collect


def _operations(connection: Connection) -> list[Gauge]:
    return [
        Gauge(
            "slipway_operations_open",
            "Operations that have not ended, in the whole database.",
            counts.open_operations(connection),
            ("operation", "state"),
        ),
        Gauge(
            "slipway_operations_waiting",
            "Operations that wait for a worker to claim them, in the whole database.",
            {(): counts.unclaimed_operations(connection)},
        ),
        Gauge("slipway_workers", "Workers that are alive.", {(): len(workers.alive(connection))}),
    ]
