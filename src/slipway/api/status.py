"""Whether Slipway is alive, and what it is."""

from __future__ import annotations

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.replies import json_reply
from slipway.api.routing import GET, AnyRequest, route
from slipway.api.services import Services
from slipway.store import workers


class Status:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._health = msgspec.json.encode({"status": "ok", "version": services.version})

    def routes(self) -> list[HTTPRouteHandler]:
        return [route(GET, "/health", self.health), route(GET, "/slipway/v1/info", self.info)]

    async def health(self, request: AnyRequest) -> ASGIResponse:
        """Answers as long as the process does: it asks nobody."""
        return json_reply(self._health)

    async def info(self, request: AnyRequest) -> ASGIResponse:
        database = self._services.database
        alive = await database.read(workers.alive)
        document = {
            "version": self._services.version,
            "database": database.url.get_backend_name(),
            "workers": len(alive),
        }
        return json_reply(msgspec.json.encode(document))
