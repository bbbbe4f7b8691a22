"""What this API is, for programs (OpenAPI) and for people (a page). Made at the first request, then kept."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.response_schema import file_of, json_of
from slipway.api.responses import json_response
from slipway.api.routing import GET, AnyRequest, route

SCHEMA = "/schema"
PAGE = f"{SCHEMA}/page"
HTML = "text/html"

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class SchemaRoutes:
    """`public` are the paths that need no token; these two are among them."""

    def __init__(self, version: str, public: frozenset[str]) -> None:
        self._version = version
        self._public = public
        self._document: dict[str, Any] | None = None
        self._encoded = b""
        self._page = b""

    def routes(self) -> list[HTTPRouteHandler]:
        return [
            route(GET, SCHEMA, self.show, responses={200: json_of(dict[str, Any])}),
            route(GET, PAGE, self.page, media_type=HTML, responses={200: file_of(HTML)}),
        ]

    async def show(self, request: AnyRequest) -> ASGIResponse:
        """This document."""
        if not self._encoded:
            self._encoded = msgspec.json.encode(self._made(request))
        return json_response(self._encoded)

    async def page(self, request: AnyRequest) -> ASGIResponse:
        """The same for people. It has no scripts, and asks for nothing else."""
        from slipway.api.openapi_page import make_page

        if not self._page:
            self._page = make_page(self._made(request)).encode()
        return ASGIResponse(body=self._page, media_type=HTML, headers=_HEADERS)

    def _made(self, request: AnyRequest) -> dict[str, Any]:
        from slipway.api.openapi import make_document

        if self._document is None:
            self._document = make_document(request.app.routes, self._public, self._version)
        return self._document
