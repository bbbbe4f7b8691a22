"""Access tokens: given once, shown never again, taken back by name."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from msgspec import Meta

from slipway.api.request_body import Body
from slipway.api.response_schema import json_of
from slipway.api.responses import empty_response, json_response
from slipway.api.routing import BY_HANDLER, DELETE, GET, POST, AnyRequest, caller_of, route
from slipway.api.services import Services
from slipway.model.access import Role
from slipway.model.errors import Conflict
from slipway.model.requests import Name, Request
from slipway.store.tokens import TokenRecord

TOKENS = "/slipway/v1/tokens"
Project = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class TokenRequest(Request, frozen=True, kw_only=True):
    """Without `project`: for all of them."""

    name: Name
    role: Literal["reader", "operator", "admin"]
    project: Project | None = None


class NewToken(TokenRecord, frozen=True, kw_only=True):
    """The only answer that ever has the token itself."""

    token: str


_add = Body(TokenRequest)


class TokenRoutes:
    def __init__(self, services: Services) -> None:
        self._authenticator = services.authenticator

    def routes(self) -> list[HTTPRouteHandler]:
        return [
            route(POST, TOKENS, self.add, role=Role.ADMIN, request_body=_add, responses={201: json_of(NewToken)}),
            route(GET, TOKENS, self.all, role=Role.ADMIN, responses={200: json_of(list[TokenRecord])}),
            route(DELETE, f"{TOKENS}/{{name:str}}", self.remove, role=Role.ADMIN, table=BY_HANDLER),
        ]

    async def add(self, request: AnyRequest) -> ASGIResponse:
        body = await _add.read(request)
        if self._authenticator is None:
            raise Conflict("Access control is off (--no-auth): no token is needed, and none is made.")
        record, token = await self._authenticator.add(
            caller_of(request), body.name, Role[body.role.upper()], body.project
        )
        return json_response(msgspec.json.encode(msgspec.to_builtins(record) | {"token": token}), 201)

    async def all(self, request: AnyRequest) -> ASGIResponse:
        return json_response(
            msgspec.json.encode(await self._authenticator.all(caller_of(request)) if self._authenticator else [])
        )

    async def remove(self, request: AnyRequest) -> ASGIResponse:
        if self._authenticator is None:
            raise Conflict("Access control is off (--no-auth): there are no tokens.")
        await self._authenticator.remove(caller_of(request), request.path_params["name"])
        return empty_response(204)
