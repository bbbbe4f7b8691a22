"""Which versions of the lifecycle interface there are."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.gate import LCM_PREFIX, LCM_VERSION
from slipway.api.replies import json_reply
from slipway.api.routing import GET, AnyRequest, Handler, route


def version_routes() -> list[HTTPRouteHandler]:
    return [
        route(GET, "/vnflcm/api_versions", _versions("/vnflcm")),
        route(GET, f"{LCM_PREFIX}/api_versions", _versions(LCM_PREFIX)),
    ]


def _versions(prefix: str) -> Handler:
    document: dict[str, Any] = {
        "uriPrefix": prefix,
        "apiVersions": [{"version": LCM_VERSION, "isDeprecated": False}],
    }
    body = msgspec.json.encode(document)

    async def handle(request: AnyRequest) -> ASGIResponse:
        return json_reply(body)

    return handle
