"""Clusters that VNF instances are: how they do, and the way in."""

from __future__ import annotations

from functools import partial

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.answers import json_of
from slipway.api.replies import json_reply
from slipway.api.routing import GET, AnyRequest, route
from slipway.api.services import Services
from slipway.cluster.health import ClusterHealth
from slipway.model.access import Role
from slipway.store import tables


class Kubeconfig(msgspec.Struct):
    kubeconfig: str


class Clusters:
    def __init__(self, services: Services) -> None:
        self._clusters = services.clusters

    def routes(self) -> list[HTTPRouteHandler]:
        one = "/slipway/v1/clusters/{id:str}"
        own = partial(route, within=tables.instances, refuses=(409, 502))
        secret = {200: json_of(Kubeconfig, "Cache-Control")}
        return [
            own(GET, one, self.health, answers={200: json_of(ClusterHealth)}),
            own(GET, f"{one}/kubeconfig", self.kubeconfig, needs=Role.ADMIN, answers=secret),
        ]

    async def health(self, request: AnyRequest) -> ASGIResponse:
        return json_reply(msgspec.json.encode(await self._clusters.health(request.path_params["id"])))

    async def kubeconfig(self, request: AnyRequest) -> ASGIResponse:
        """A secret. It goes over the wire to whoever may do everything anyway."""
        text = await self._clusters.kubeconfig(request.path_params["id"])
        return json_reply(msgspec.json.encode(Kubeconfig(text)), headers={"Cache-Control": "no-store"})
