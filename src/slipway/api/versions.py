"""Which versions of the standard's interfaces there are."""

from __future__ import annotations

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.auth_middleware import LCM_PREFIX, LCM_VERSION
from slipway.api.links import LCM_V1
from slipway.api.response_schema import json_of
from slipway.api.responses import json_response
from slipway.api.routing import GET, AnyRequest, route

V1_VERSION = "1.3.0"
PACKAGES_V1 = "/vnfpkgm/v1"
PACKAGES_VERSION = "1.2.0"


class ApiVersion(msgspec.Struct, rename="camel"):
    version: str
    is_deprecated: bool = False


class ApiVersionInformation(msgspec.Struct, rename="camel"):
    uri_prefix: str
    api_versions: tuple[ApiVersion, ...]


def version_routes() -> list[HTTPRouteHandler]:
    return [
        _versions("/vnflcm", V1_VERSION, LCM_VERSION),
        _versions(LCM_V1, V1_VERSION),
        _versions(LCM_PREFIX, LCM_VERSION),
        _versions("/vnfpkgm", PACKAGES_VERSION),
        _versions(PACKAGES_V1, PACKAGES_VERSION),
    ]


def _versions(prefix: str, *versions: str) -> HTTPRouteHandler:
    known = tuple(ApiVersion(version) for version in versions)
    body = msgspec.json.encode(ApiVersionInformation(prefix, known))

    async def handle(request: AnyRequest) -> ASGIResponse:
        return json_response(body)

    return route(GET, f"{prefix}/api_versions", handle, responses={200: json_of(ApiVersionInformation)})
