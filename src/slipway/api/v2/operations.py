"""LCM operation occurrences: list, show, retry, rollback, fail, cancel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.links import Links, linked
from slipway.api.listing import LenientListing, Listing
from slipway.api.request_body import Body
from slipway.api.response_schema import ACCEPTED, page_of, resource
from slipway.api.responses import empty_response, json_response, redact_json, to_redacted_json
from slipway.api.routing import GET, POST, AnyRequest, Handler, route
from slipway.api.services import Services
from slipway.model.operation import CancelMode, Operation
from slipway.model.requests import Request
from slipway.store import operations, tables


class Cancellation(Request, frozen=True, kw_only=True):
    cancel_mode: CancelMode


class OperationRoutes:
    """Version 2; `v1/operations.py` translates version 1 into it."""

    cancellation: Body[Any] = Body(Cancellation)

    def __init__(self, services: Services, links: Links) -> None:
        self._database = services.database
        self._lcm = services.lcm
        self._links = links
        self._list: Listing = LenientListing(
            services.database,
            services.page_size,
            tables.operations,
            links.operations,
            links.operation,
            Operation.details,
        )

    def routes(self) -> list[HTTPRouteHandler]:
        all_of_them = self._links.operations_path
        one = f"{all_of_them}/{{id:str}}"
        own = partial(route, table=tables.operations)
        return [
            route(GET, all_of_them, self._list, parameters=self._list.parameters, responses={200: page_of(Operation)}),
            own(GET, one, self.show, responses={200: resource(Operation)}),
            own(POST, f"{one}/retry", self._deciding(self._lcm.retry), responses={202: ACCEPTED}),
            own(POST, f"{one}/rollback", self._deciding(self._lcm.roll_back), responses={202: ACCEPTED}),
            own(POST, f"{one}/fail", self.fail, responses={200: resource(Operation)}),
            own(POST, f"{one}/cancel", self.cancel, request_body=self.cancellation, responses={202: ACCEPTED}),
        ]

    async def show(self, request: AnyRequest) -> ASGIResponse:
        stored = await self._database.read_one(operations.stored, request.path_params["id"])
        return self._whole(redact_json(stored.encode()))

    async def fail(self, request: AnyRequest) -> ASGIResponse:
        return self._whole(to_redacted_json(await self._lcm.fail(request.path_params["id"])))

    async def cancel(self, request: AnyRequest) -> ASGIResponse:
        body = await self.cancellation.read(request)
        return self._accepted(await self._lcm.cancel(request.path_params["id"], body.cancel_mode))

    def _deciding(self, decide: Callable[[str], Awaitable[Operation]]) -> Handler:
        async def handle(request: AnyRequest) -> ASGIResponse:
            return self._accepted(await decide(request.path_params["id"]))

        return handle

    def _accepted(self, operation: Operation) -> ASGIResponse:
        return empty_response(202, f"{self._links.operations}/{operation.id}")

    def _whole(self, document: bytes) -> ASGIResponse:
        return json_response(linked(document, self._links.operation(document)))
