"""Clusters that VNF instances are: how they do, and the way in."""

from __future__ import annotations

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.replies import json_reply
from slipway.api.routing import GET, AnyRequest, route
from slipway.api.services import Services


class Clusters:
    def __init__(self, services: Services) -> None:
        self._clusters = services.clusters

    def routes(self) -> list[HTTPRouteHandler]:
        one = "/slipway/v1/clusters/{id:str}"
        return [route(GET, one, self.health), route(GET, f"{one}/kubeconfig", self.kubeconfig)]

    async def health(self, request: AnyRequest) -> ASGIResponse:
        return json_reply(msgspec.json.encode(await self._clusters.health(request.path_params["id"])))

    async def kubeconfig(self, request: AnyRequest) -> ASGIResponse:
        """A secret. It goes over the wire to whoever may do everything anyway."""
        text = await self._clusters.kubeconfig(request.path_params["id"])
        return json_reply(msgspec.json.encode({"kubeconfig": text}), headers={"Cache-Control": "no-store"})
