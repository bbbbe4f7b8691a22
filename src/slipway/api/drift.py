"""What others have done to a VNF on its VIM, asked now."""

from __future__ import annotations

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.response_schema import json_of
from slipway.api.responses import json_response
from slipway.api.routing import GET, AnyRequest, route
from slipway.api.services import Services
from slipway.store import tables


class DriftView(msgspec.Struct):
    """`known`: its VIM can tell. `problems`: sentences; none when all is as Slipway left it."""

    known: bool
    problems: tuple[str, ...] = ()


class DriftRoutes:
    def __init__(self, services: Services) -> None:
        self._lcm = services.lcm

    def routes(self) -> list[HTTPRouteHandler]:
        path = "/slipway/v1/vnf_instances/{id:str}/drift"
        return [
            route(GET, path, self.drift, table=tables.instances, errors=(409, 502), responses={200: json_of(DriftView)})
        ]

    async def drift(self, request: AnyRequest) -> ASGIResponse:
        found = await self._lcm.drift(request.path_params["id"])
        return json_response(msgspec.json.encode(DriftView(found is not None, found or ())))
