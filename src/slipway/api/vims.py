"""Registered VIMs, and the rules for faults of simulated ones."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.bodies import PATCH_TYPES, Body
from slipway.api.links import VIMS, Links, linked
from slipway.api.listing import Listing
from slipway.api.replies import empty_reply, json_reply, shown
from slipway.api.routing import DELETE, GET, LIST_PARAMETERS, PATCH, POST, PUT, AnyRequest, route
from slipway.api.services import Services
from slipway.lcm.vim_registry import VimRequest
from slipway.model.vim import Vim
from slipway.store import tables

_add = Body(VimRequest)
_modify = Body(dict[str, Any], PATCH_TYPES)
_rules = Body(list[Any])


class Vims:
    def __init__(self, services: Services, links: Links) -> None:
        self._vims = services.vims
        self._links = links
        self._list = Listing(services.database, services.page_size, tables.vims, links.vims, links.vim)

    def routes(self) -> list[HTTPRouteHandler]:
        one = f"{VIMS}/{{name:str}}"
        return [
            route(POST, VIMS, self.add),
            route(GET, VIMS, self._list, parameters=LIST_PARAMETERS),
            route(GET, one, self.show),
            route(PATCH, one, self.modify),
            route(DELETE, one, self.remove),
            route(POST, f"{one}/check", self.check),
            route(GET, f"{one}/rules", self.rules),
            route(PUT, f"{one}/rules", self.set_rules),
            route(DELETE, f"{one}/rules", self.clear_rules),
        ]

    async def add(self, request: AnyRequest) -> ASGIResponse:
        vim = await self._vims.add(await _add.read(request))
        return self._shown(vim, 201, {"Location": f"{self._links.vims}/{vim.id}"})

    async def show(self, request: AnyRequest) -> ASGIResponse:
        return self._shown(await self._vims.get(request.path_params["name"]))

    async def modify(self, request: AnyRequest) -> ASGIResponse:
        return self._shown(await self._vims.modify(request.path_params["name"], await _modify.read(request)))

    async def remove(self, request: AnyRequest) -> ASGIResponse:
        await self._vims.remove(request.path_params["name"])
        return empty_reply(204)

    async def check(self, request: AnyRequest) -> ASGIResponse:
        return json_reply(msgspec.json.encode(await self._vims.check(request.path_params["name"])))

    async def rules(self, request: AnyRequest) -> ASGIResponse:
        return json_reply(msgspec.json.encode(await self._vims.rules(request.path_params["name"])))

    async def set_rules(self, request: AnyRequest) -> ASGIResponse:
        rules = await self._vims.set_rules(request.path_params["name"], await _rules.read(request))
        return json_reply(msgspec.json.encode(rules))

    async def clear_rules(self, request: AnyRequest) -> ASGIResponse:
        await self._vims.set_rules(request.path_params["name"], [])
        return empty_reply(204)

    def _shown(self, vim: Vim, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
        document = shown(vim)
        return json_reply(linked(document, self._links.vim(document)), status, headers)
