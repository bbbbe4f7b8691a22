"""Registered VIMs, and the rules for faults of simulated ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.links import VIMS, Links, linked
from slipway.api.listing import Listing
from slipway.api.request_body import PATCH_TYPES, Body
from slipway.api.response_schema import json_of, page_of, resource
from slipway.api.responses import empty_response, json_response, to_redacted_json
from slipway.api.routing import BY_HANDLER, DELETE, GET, LIST_PARAMETERS, PATCH, POST, PUT, AnyRequest, caller_of, route
from slipway.api.services import Services
from slipway.model.vim import Vim
from slipway.store import tables
from slipway.vim.fault_rules import Rule
from slipway.vim_registry.registry import Health, NewVim

_add = Body(NewVim)
_modify = Body(dict[str, Any], PATCH_TYPES)
_rules = Body(list[Any])


class VimRoutes:
    def __init__(self, services: Services, links: Links) -> None:
        self._vims = services.vims
        self._links = links
        self._list = Listing(services.database, services.page_size, tables.vims, links.vims, links.vim)

    def routes(self) -> list[HTTPRouteHandler]:
        one = f"{VIMS}/{{name:str}}"
        own = partial(route, table=BY_HANDLER)
        return [
            route(POST, VIMS, self.add, request_body=_add, responses={201: resource(Vim, "Location")}, errors=(502,)),
            route(GET, VIMS, self._list, parameters=LIST_PARAMETERS, responses={200: page_of(Vim)}),
            own(GET, one, self.show, responses={200: resource(Vim)}),
            own(PATCH, one, self.modify, request_body=_modify, responses={200: resource(Vim)}, errors=(502,)),
            own(DELETE, one, self.remove),
            own(POST, f"{one}/check", self.check, responses={200: json_of(Health)}),
            own(GET, f"{one}/rules", self.rules, responses={200: json_of(list[Rule])}, errors=(409,)),
            own(PUT, f"{one}/rules", self.set_rules, request_body=_rules, responses={200: json_of(list[Rule])}),
            own(DELETE, f"{one}/rules", self.clear_rules),
        ]

    async def add(self, request: AnyRequest) -> ASGIResponse:
        vim = await self._vims.add(await _add.read(request), by=caller_of(request))
        return self._shown(vim, 201, {"Location": f"{self._links.vims}/{vim.id}"})

    async def show(self, request: AnyRequest) -> ASGIResponse:
        return self._shown(await self._own(request))

    async def modify(self, request: AnyRequest) -> ASGIResponse:
        vim, patch = await self._own(request), await _modify.read(request)
        return self._shown(await self._vims.modify(vim.id, patch, by=caller_of(request)))

    async def remove(self, request: AnyRequest) -> ASGIResponse:
        await self._vims.remove((await self._own(request)).id, by=caller_of(request))
        return empty_response(204)

    async def check(self, request: AnyRequest) -> ASGIResponse:
        return json_response(msgspec.json.encode(await self._vims.check((await self._own(request)).id)))

    async def rules(self, request: AnyRequest) -> ASGIResponse:
        return json_response(msgspec.json.encode(await self._vims.rules((await self._own(request)).id)))

    async def set_rules(self, request: AnyRequest) -> ASGIResponse:
        rules = await self._vims.set_rules((await self._own(request)).id, await _rules.read(request))
        return json_response(msgspec.json.encode(rules))

    async def clear_rules(self, request: AnyRequest) -> ASGIResponse:
        await self._vims.set_rules((await self._own(request)).id, [])
        return empty_response(204)

    async def _own(self, request: AnyRequest) -> Vim:
        return await self._vims.get(request.path_params["name"], caller_of(request).project)

    def _shown(self, vim: Vim, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
        document = to_redacted_json(vim)
        return json_response(linked(document, self._links.vim(document)), status, headers)
