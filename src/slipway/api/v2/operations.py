"""LCM operation occurrences, and what a person decides about them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.answers import ACCEPTED, page_of, resource
from slipway.api.bodies import Body
from slipway.api.links import Links, linked
from slipway.api.listing import ForgivingListing, Listing
from slipway.api.replies import empty_reply, json_reply, shown, without_secrets
from slipway.api.routing import GET, POST, AnyRequest, Handler, route
from slipway.api.services import Services
from slipway.model.operation import CancelMode, Operation
from slipway.model.requests import Request
from slipway.store import operations, tables


class Cancellation(Request, frozen=True, kw_only=True):
    cancel_mode: CancelMode


class Operations:
    """`v1/operations.py` says the same in the words of an older version of the standard."""

    cancellation: Body[Any] = Body(Cancellation)

    def __init__(self, services: Services, links: Links) -> None:
        self._database = services.database
        self._lcm = services.lcm
        self._links = links
        self._list: Listing = ForgivingListing(
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
        own = partial(route, within=tables.operations)
        return [
            route(GET, all_of_them, self._list, parameters=self._list.parameters, answers={200: page_of(Operation)}),
            own(GET, one, self.show, answers={200: resource(Operation)}),
            own(POST, f"{one}/retry", self._deciding(self._lcm.retry), answers={202: ACCEPTED}),
            own(POST, f"{one}/rollback", self._deciding(self._lcm.roll_back), answers={202: ACCEPTED}),
            own(POST, f"{one}/fail", self.fail, answers={200: resource(Operation)}),
            own(POST, f"{one}/cancel", self.cancel, takes=self.cancellation, answers={202: ACCEPTED}),
        ]

    async def show(self, request: AnyRequest) -> ASGIResponse:
        stored = await self._database.read_one(operations.stored, request.path_params["id"])
        return self._whole(without_secrets(stored.encode()))

    async def fail(self, request: AnyRequest) -> ASGIResponse:
        return self._whole(shown(await self._lcm.fail(request.path_params["id"])))

    async def cancel(self, request: AnyRequest) -> ASGIResponse:
        body = await self.cancellation.read(request)
        return self._accepted(await self._lcm.cancel(request.path_params["id"], body.cancel_mode))

    def _deciding(self, decide: Callable[[str], Awaitable[Operation]]) -> Handler:
        async def handle(request: AnyRequest) -> ASGIResponse:
            return self._accepted(await decide(request.path_params["id"]))

        return handle

    def _accepted(self, operation: Operation) -> ASGIResponse:
        return empty_reply(202, f"{self._links.operations}/{operation.id}")

    def _whole(self, document: bytes) -> ASGIResponse:
        return json_reply(linked(document, self._links.operation(document)))
