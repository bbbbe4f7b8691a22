"""VNF packages: their records (SOL003 clause 10). Their content is in package_content.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from msgspec import UNSET, UnsetType

from slipway.api.answers import json_of, page_of, resource
from slipway.api.bodies import PATCH_TYPES, Body
from slipway.api.links import PACKAGES, Links, linked
from slipway.api.listing import Listing
from slipway.api.package_ways import Way
from slipway.api.replies import empty_reply, json_reply, shown
from slipway.api.routing import DELETE, GET, LIST_PARAMETERS, PATCH, POST, AnyRequest, caller_of, route
from slipway.api.services import Services
from slipway.model.errors import BadRequest
from slipway.model.package import OperationalState, VnfPackage
from slipway.model.requests import Request
from slipway.model.secrets import refuse_references
from slipway.store import tables

LEFT_OUT = ("softwareImages", "additionalArtifacts", "userDefinedData", "checksum", "onboardingFailureDetails")


class CreatePackage(Request, frozen=True, kw_only=True):
    user_defined_data: dict[str, Any] = msgspec.field(default_factory=dict)


class ModifyPackage(Request, frozen=True, kw_only=True):
    operational_state: OperationalState | None = None
    user_defined_data: dict[str, Any] | UnsetType | None = UNSET  # null: none any more


_create = Body(CreatePackage)
_modify = Body(ModifyPackage, PATCH_TYPES)


class ReadPackages:
    """What there is, in one of the two ways."""

    def __init__(self, services: Services, way: Way) -> None:
        self._onboarding = services.onboarding
        self._way = way
        self._list = Listing(
            services.database,
            services.page_size,
            tables.packages,
            services.base_url.rstrip("/") + way.collection,
            way.links,
            LEFT_OUT,
            way.only,
        )

    def routes(self) -> list[HTTPRouteHandler]:
        way, page = self._way, {200: page_of(VnfPackage)}
        return [
            route(GET, way.collection, self._list, parameters=LIST_PARAMETERS, answers=page),
            route(GET, way.one, self.show, within=way.within, answers={200: resource(VnfPackage)}),
        ]

    async def show(self, request: AnyRequest) -> ASGIResponse:
        document = shown(await self._onboarding.get(await self._way.id_of(request)))
        return json_reply(linked(document, self._way.links(document)))


class Packages:
    """What can be done with them."""

    def __init__(self, services: Services, links: Links) -> None:
        self._onboarding = services.onboarding
        self._links = links

    def routes(self) -> list[HTTPRouteHandler]:
        one = f"{PACKAGES}/{{id:str}}"
        own = partial(route, within=tables.packages)
        return [
            route(POST, PACKAGES, self.create, takes=_create, answers={201: resource(VnfPackage, "Location")}),
            own(PATCH, one, self.modify, takes=_modify, answers={200: json_of(ModifyPackage)}),
            own(DELETE, one, self.delete),
        ]

    async def create(self, request: AnyRequest) -> ASGIResponse:
        body = await _create.read(request)
        refuse_references(body.user_defined_data)
        package = await self._onboarding.create(body.user_defined_data, caller_of(request).home)
        document, where = shown(package), f"{self._links.packages}/{package.id}"
        return json_reply(linked(document, self._links.package(document)), 201, {"Location": where})

    async def modify(self, request: AnyRequest) -> ASGIResponse:
        """Answers with what was changed (VnfPkgInfoModifications)."""
        body = await _modify.read(request)
        if body == ModifyPackage():
            raise BadRequest("The body names nothing to change; possible are: operationalState, userDefinedData.")
        refuse_references(body.user_defined_data or {})
        data = await self._onboarding.modify(request.path_params["id"], body.operational_state, body.user_defined_data)
        return json_reply(shown(msgspec.structs.replace(body, user_defined_data=data)))

    async def delete(self, request: AnyRequest) -> ASGIResponse:
        await self._onboarding.delete(request.path_params["id"])
        return empty_reply(204)
