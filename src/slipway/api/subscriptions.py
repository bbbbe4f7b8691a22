"""Subscriptions of one interface, and the state of their deliveries."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from msgspec import UNSET, UnsetType
from sqlalchemy import Connection

from slipway.api.links import LinkBuilder, LinkFields, linked
from slipway.api.listing import Listing, ListQuery
from slipway.api.request_body import Body
from slipway.api.response_schema import ACCEPTED, json_of, page_of, resource
from slipway.api.responses import empty_response, json_response
from slipway.api.routing import DELETE, GET, LIST_PARAMETERS, POST, AnyRequest, caller_of, route
from slipway.api.selectors import Selection
from slipway.api.services import Services
from slipway.model.errors import BadRequest
from slipway.model.subscription import (
    Interface,
    LcmSubscriptionRequest,
    PackageSubscriptionRequest,
    Subscription,
    Verbosity,
)
from slipway.store import tables
from slipway.store.filters import Filter, Operator
from slipway.store.paging import Page
from slipway.store.subscriptions import Delivery

REQUESTS: dict[Interface, type[Any]] = {
    Interface.LCM_V1: LcmSubscriptionRequest,
    Interface.LCM_V2: LcmSubscriptionRequest,
    Interface.PACKAGES: PackageSubscriptionRequest,
}
DELIVERIES = "/slipway/v1/subscriptions"


class SubscriptionView(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """What is shown of a subscription. `verbosity` is a matter of version 2 of the lifecycle interface."""

    id: str
    callback_uri: str
    filter: dict[str, Any] = {}
    verbosity: Verbosity | UnsetType = UNSET


ADDED = {201: resource(SubscriptionView, "Location"), 303: ACCEPTED}  # 303: it was there already


class SubscriptionRoutes:
    def __init__(self, services: Services, interface: Interface) -> None:
        self._subscription_service = services.subscription_service
        self._interface = interface
        self._path = f"/{interface}/subscriptions"
        self._url = services.base_url.rstrip("/") + self._path
        self._body = Body(REQUESTS[interface])
        self._links_of = LinkBuilder(LinkFields, self._links_to)
        self._list = SubscriptionListing(services, interface, self._url, self._links_of)

    def routes(self) -> list[HTTPRouteHandler]:
        own = partial(route, table=tables.subscriptions)
        one = f"{self._path}/{{id:str}}"
        return [
            route(POST, self._path, self.add, request_body=self._body, responses=ADDED),
            route(GET, self._path, self._list, parameters=LIST_PARAMETERS, responses={200: page_of(SubscriptionView)}),
            own(GET, one, self.show, responses={200: resource(SubscriptionView)}),
            own(DELETE, one, self.remove),
        ]

    async def add(self, request: AnyRequest) -> ASGIResponse:
        body = await self._body.read(request)
        subscription, new = await self._subscription_service.add(self._interface, body, caller_of(request).home)
        location = f"{self._url}/{subscription.id}"
        if not new:
            return empty_response(303, location)
        return self._shown(subscription, 201, {"Location": location})

    async def show(self, request: AnyRequest) -> ASGIResponse:
        return self._shown(await self._subscription_service.get(self._interface, request.path_params["id"]))

    async def remove(self, request: AnyRequest) -> ASGIResponse:
        await self._subscription_service.remove(self._interface, request.path_params["id"])
        return empty_response(204)

    def _shown(
        self, subscription: Subscription, status: int = 200, headers: dict[str, str] | None = None
    ) -> ASGIResponse:
        whole = msgspec.to_builtins(subscription)
        hidden = Subscription.kept_back + (("verbosity",) if self._interface is not Interface.LCM_V2 else ())
        if self._interface is Interface.LCM_V2:
            whole["verbosity"] = subscription.verbosity.value
        document = msgspec.json.encode({name: value for name, value in whole.items() if name not in hidden})
        return json_response(linked(document, self._links_of(document)), status, headers)

    def _links_to(self, head: LinkFields) -> str:
        return msgspec.json.encode({"self": {"href": f"{self._url}/{head.id}"}}).decode()


class SubscriptionListing(Listing):
    """In version 2 of the lifecycle interface `verbosity` is required: a list always shows it. Others don't know it."""

    def __init__(self, services: Services, interface: Interface, url: str, links: Any) -> None:
        super().__init__(services.database, services.page_size, tables.subscriptions, url, links)
        self._only = Filter(Operator.EQ, ("interface",), (interface.value,))
        self._has_verbosity = interface is Interface.LCM_V2
        self._hidden = Subscription.kept_back if self._has_verbosity else (*Subscription.kept_back, "verbosity")

    def _read(self, connection: Connection, query: ListQuery) -> tuple[bytes, str | None]:
        for one in query.filters:
            if one.path[0] in self._hidden:
                raise BadRequest(f"filter {one.name}: there is no attribute {one.path[0]!r} to filter on.")
        left_out = [name for name in query.selection.without if name != "verbosity"]
        query.selection.without = (*left_out, *self._hidden)
        return super()._read(connection, replace(query, filters=(*query.filters, self._only)))

    def _joined(self, connection: Connection, page: Page, selection: Selection) -> bytes:
        parts = []
        for item in page.items:
            document = msgspec.json.decode(item)
            chosen = selection.cut(document)
            if self._has_verbosity:
                chosen = chosen | {"verbosity": document.get("verbosity", Verbosity.FULL)}
            parts.append(linked(msgspec.json.encode(chosen), self._links(item)))
        return b"[%s]" % b",".join(parts)


class DeliveryRoutes:
    """The state of deliveries: what is pending, what failed and why."""

    def __init__(self, services: Services) -> None:
        self._subscription_service = services.subscription_service

    def routes(self) -> list[HTTPRouteHandler]:
        path = f"{DELIVERIES}/{{id:str}}/delivery"
        return [route(GET, path, self.show, table=tables.subscriptions, responses={200: json_of(Delivery)})]

    async def show(self, request: AnyRequest) -> ASGIResponse:
        return json_response(msgspec.json.encode(await self._subscription_service.delivery(request.path_params["id"])))
