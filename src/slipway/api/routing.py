"""From a method and a path to a handler. The checks that every route needs stand here, and cost next to nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from litestar import Request
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from litestar.types import Empty

from slipway.api.negotiation import acceptable
from slipway.api.replies import JSON
from slipway.model.errors import BadRequest

GET, POST, PUT, PATCH, DELETE = HttpMethod.GET, HttpMethod.POST, HttpMethod.PUT, HttpMethod.PATCH, HttpMethod.DELETE

AnyRequest = Request[Any, Any, Any]
Handler = Callable[[AnyRequest], Awaitable[ASGIResponse]]

LIST_PARAMETERS = ("filter", "all_fields", "fields", "exclude_fields", "exclude_default", "nextpage_opaque_marker")


def route(
    method: HttpMethod,
    path: str,
    handler: Handler,
    *,
    gives: str | None = JSON,
    parameters: tuple[str, ...] = (),
    max_bytes: int | None = None,
) -> HTTPRouteHandler:
    """`gives` is the media type of the answer; None when the handler looks at Accept itself."""

    async def handle(request: AnyRequest) -> ASGIResponse:
        if gives is not None:
            acceptable(request.headers.get("accept"), (gives,))
        if request.scope["query_string"]:
            read_query(request, parameters)
        return await handler(request)

    return HTTPRouteHandler(
        path,
        http_method=[method],
        status_code=200,  # what the handler answers counts; this only keeps Litestar from guessing
        name=f"{method.value} {path}",
        request_max_body_size=Empty if max_bytes is None else max_bytes,
    )(handle)


def read_query(request: AnyRequest, known: tuple[str, ...]) -> dict[str, str]:
    """The parameters of the query, or BadRequest when one is unknown, repeated or no text."""
    try:
        pairs = parse_qsl(request.scope["query_string"].decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise BadRequest("The query is not valid UTF-8, percent-encoded.") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            possible = f"possible are: {', '.join(known)}" if known else "none is possible here"
            raise BadRequest(f"There is no query parameter {name!r}; {possible}.")
        if name in found:
            raise BadRequest(f"The query parameter {name!r} is given twice.")
        if "\0" in value:
            raise BadRequest(f"{name}: zero characters are not possible.")
        found[name] = value
    return found
