"""LCM operation occurrences, and what a person decides about them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.bodies import Body
from slipway.api.links import OPERATIONS, Links, linked
from slipway.api.listing import Listing
from slipway.api.replies import empty_reply, json_reply, shown
from slipway.api.routing import GET, LIST_PARAMETERS, POST, AnyRequest, Handler, route
from slipway.api.services import Services
from slipway.model.operation import CancelMode, Operation
from slipway.model.requests import Request
from slipway.store import operations, tables


class Cancellation(Request, frozen=True, kw_only=True):
    cancel_mode: CancelMode


_cancel = Body(Cancellation)


class Operations:
    def __init__(self, services: Services, links: Links) -> None:
        self._database = services.database
        self._lcm = services.lcm
        self._links = links
        self._list = Listing(
            services.database,
            services.page_size,
            tables.operations,
            links.operations,
            links.operation,
            Operation.details,
        )

    def routes(self) -> list[HTTPRouteHandler]:
        one = f"{OPERATIONS}/{{id:str}}"
        return [
            route(GET, OPERATIONS, self._list, parameters=LIST_PARAMETERS),
            route(GET, one, self.show),
            route(POST, f"{one}/retry", _accepted(self._lcm.retry)),
            route(POST, f"{one}/rollback", _accepted(self._lcm.roll_back)),
            route(POST, f"{one}/fail", self.fail),
            route(POST, f"{one}/cancel", self.cancel),
        ]

    async def show(self, request: AnyRequest) -> ASGIResponse:
        return self._shown(await self._database.read_one(operations.get, request.path_params["id"]))

    async def fail(self, request: AnyRequest) -> ASGIResponse:
        return self._shown(await self._lcm.fail(request.path_params["id"]))

    async def cancel(self, request: AnyRequest) -> ASGIResponse:
        body = await _cancel.read(request)
        await self._lcm.cancel(request.path_params["id"], body.cancel_mode)
        return empty_reply(202)

    def _shown(self, operation: Operation) -> ASGIResponse:
        document = shown(operation)
        return json_reply(linked(document, self._links.operation(document)))


def _accepted(decide: Callable[[str], Awaitable[Operation]]) -> Handler:
    async def handle(request: AnyRequest) -> ASGIResponse:
        await decide(request.path_params["id"])
        return empty_reply(202)

    return handle
