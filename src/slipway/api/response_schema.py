"""What a route takes and answers, declared with the route and described at /schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.api.responses import JSON
from slipway.model.access import Role

if TYPE_CHECKING:
    from slipway.api.request_body import Body

OPT = "declared"  # where a route keeps what it declares


class ResponseSchema(msgspec.Struct, frozen=True):
    """`kind` is the type of the JSON in it; None: there is no body, or it is something else than JSON.

    `linked`: it has `_links`. `page`: it is a list of them.
    """

    kind: Any = None
    media_types: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    linked: bool = False
    page: bool = False


ResponseSchemas = Mapping[int, ResponseSchema]

NOTHING = ResponseSchema()
ACCEPTED = ResponseSchema(headers=("Location",))


def json_of(kind: Any, *headers: str) -> ResponseSchema:
    return ResponseSchema(kind, (JSON,), headers)


def resource(kind: Any, *headers: str) -> ResponseSchema:
    return ResponseSchema(kind, (JSON,), headers, linked=True)


def page_of(kind: Any) -> ResponseSchema:
    return ResponseSchema(kind, (JSON,), ("Link",), linked=True, page=True)


def file_of(*media_types: str) -> ResponseSchema:
    return ResponseSchema(None, media_types)


class RouteSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`request_body` reads the body, or names the media types of one that is not JSON. `headers` are those it reads.

    `errors` are the statuses of errors that not every route of its kind has.
    """

    handler: Any
    role: Role
    request_body: Body[Any] | tuple[str, ...] | None
    responses: ResponseSchemas
    errors: tuple[int, ...]
    parameters: tuple[str, ...]
    headers: tuple[str, ...]
