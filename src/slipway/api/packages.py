"""VNF packages: their records (SOL003 clause 10). Their content is in package_content.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from msgspec import UNSET, UnsetType
from sqlalchemy import Table

from slipway.api.links import ONBOARDED_PACKAGES, PACKAGES, LinkBuilder, Links, linked
from slipway.api.listing import Listing
from slipway.api.request_body import PATCH_TYPES, Body
from slipway.api.response_schema import json_of, page_of, resource
from slipway.api.responses import empty_response, json_response, to_redacted_json
from slipway.api.routing import BY_HANDLER, DELETE, GET, LIST_PARAMETERS, PATCH, POST, AnyRequest, caller_of, route
from slipway.api.services import Services
from slipway.model.errors import BadRequest
from slipway.model.package import OperationalState, PackageWarning, VnfPackage
from slipway.model.requests import Request
from slipway.model.secrets import refuse_references
from slipway.onboarding.onboarding import Onboarding
from slipway.store import tables
from slipway.store.filters import Filter, parse

WARNINGS = "/slipway/v1/vnf_packages/{id:str}/warnings"
LEFT_OUT = ("softwareImages", "additionalArtifacts", "userDefinedData", "checksum", "onboardingFailureDetails")


class CreatePackage(Request, frozen=True, kw_only=True):
    user_defined_data: dict[str, Any] = msgspec.field(default_factory=dict)


class ModifyPackage(Request, frozen=True, kw_only=True):
    operational_state: OperationalState | None = None
    user_defined_data: dict[str, Any] | UnsetType | None = UNSET  # null: none any more


_create = Body(CreatePackage)
_modify = Body(ModifyPackage, PATCH_TYPES)


@dataclass(frozen=True)
class PackagePaths:
    """One of the two ways to the same packages: all of them by their ids, the onboarded ones by the ids of their VNFDs.

    `item` is the path of a package, `id_of` finds the id of the package that such a path names; `only` and `links` are
    for lists.
    """

    collection: str
    item: str
    table: Table | str
    id_of: Callable[[AnyRequest], Awaitable[str]]
    only: tuple[Filter, ...]
    links: LinkBuilder[Any]


def packages_by_id(links: Links) -> PackagePaths:
    async def id_of(request: AnyRequest) -> str:
        return str(request.path_params["id"])

    return PackagePaths(PACKAGES, f"{PACKAGES}/{{id:str}}", tables.packages, id_of, (), links.package)


def packages_by_vnfd(onboarding: Onboarding, links: Links) -> PackagePaths:
    async def id_of(request: AnyRequest) -> str:
        return await onboarding.id_of(request.path_params["vnfdId"], caller_of(request).project)

    item = f"{ONBOARDED_PACKAGES}/{{vnfdId:str}}"
    only = parse("(eq,onboardingState,ONBOARDED)")
    return PackagePaths(ONBOARDED_PACKAGES, item, BY_HANDLER, id_of, only, links.onboarded_package)


class PackageReadRoutes:
    """Lists and shows packages, by one of the two paths."""

    def __init__(self, services: Services, paths: PackagePaths) -> None:
        self._onboarding = services.onboarding
        self._paths = paths
        self._list = Listing(
            services.database,
            services.page_size,
            tables.packages,
            services.base_url.rstrip("/") + paths.collection,
            paths.links,
            LEFT_OUT,
            paths.only,
        )

    def routes(self) -> list[HTTPRouteHandler]:
        paths, page = self._paths, {200: page_of(VnfPackage)}
        return [
            route(GET, paths.collection, self._list, parameters=LIST_PARAMETERS, responses=page),
            route(GET, paths.item, self.show, table=paths.table, responses={200: resource(VnfPackage)}),
        ]

    async def show(self, request: AnyRequest) -> ASGIResponse:
        document = to_redacted_json(await self._onboarding.get(await self._paths.id_of(request)))
        return json_response(linked(document, self._paths.links(document)))


class PackageWarningRoutes:
    """What the standard's record of a package has no attribute for."""

    def __init__(self, services: Services) -> None:
        self._onboarding = services.onboarding

    def routes(self) -> list[HTTPRouteHandler]:
        responses = {200: json_of(list[PackageWarning])}
        return [route(GET, WARNINGS, self.show, table=tables.packages, responses=responses)]

    async def show(self, request: AnyRequest) -> ASGIResponse:
        return json_response(msgspec.json.encode(await self._onboarding.warnings(request.path_params["id"])))


class PackageRoutes:
    """Creates, modifies and deletes packages."""

    def __init__(self, services: Services, links: Links) -> None:
        self._onboarding = services.onboarding
        self._links = links

    def routes(self) -> list[HTTPRouteHandler]:
        one = f"{PACKAGES}/{{id:str}}"
        own = partial(route, table=tables.packages)
        return [
            route(POST, PACKAGES, self.create, request_body=_create, responses={201: resource(VnfPackage, "Location")}),
            own(PATCH, one, self.modify, request_body=_modify, responses={200: json_of(ModifyPackage)}),
            own(DELETE, one, self.delete),
        ]

    async def create(self, request: AnyRequest) -> ASGIResponse:
        body = await _create.read(request)
        refuse_references(body.user_defined_data)
        package = await self._onboarding.create(body.user_defined_data, caller_of(request).home)
        document, where = to_redacted_json(package), f"{self._links.packages}/{package.id}"
        return json_response(linked(document, self._links.package(document)), 201, {"Location": where})

    async def modify(self, request: AnyRequest) -> ASGIResponse:
        """Answers with what was changed (VnfPkgInfoModifications)."""
        body = await _modify.read(request)
        if body == ModifyPackage():
            raise BadRequest("The body changes nothing; it must have one of: operationalState, userDefinedData.")
        refuse_references(body.user_defined_data or {})
        data = await self._onboarding.modify(request.path_params["id"], body.operational_state, body.user_defined_data)
        return json_response(to_redacted_json(msgspec.structs.replace(body, user_defined_data=data)))

    async def delete(self, request: AnyRequest) -> ASGIResponse:
        await self._onboarding.delete(request.path_params["id"])
        return empty_response(204)
