"""Whether Slipway is alive, and what it is."""

from __future__ import annotations

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.response_schema import json_of
from slipway.api.responses import json_response
from slipway.api.routing import GET, AnyRequest, route
from slipway.api.services import Services
from slipway.store import workers

HEALTH = "/health"


class HealthView(msgspec.Struct):
    status: str
    version: str


class InfoView(msgspec.Struct):
    version: str
    database: str
    workers: int


class StatusRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._health = msgspec.json.encode(HealthView("ok", services.version))

    def routes(self) -> list[HTTPRouteHandler]:
        return [
            route(GET, HEALTH, self.health, responses={200: json_of(HealthView)}),
            route(GET, "/slipway/v1/info", self.info, responses={200: json_of(InfoView)}),
        ]

    async def health(self, request: AnyRequest) -> ASGIResponse:
        """Answers as long as the process does, without the database."""
        return json_response(self._health)

    async def info(self, request: AnyRequest) -> ASGIResponse:
        database = self._services.database
        alive = await database.read(workers.alive)
        view = InfoView(self._services.version, database.url.get_backend_name(), len(alive))
        return json_response(msgspec.json.encode(view))
