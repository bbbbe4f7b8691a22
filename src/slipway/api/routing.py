"""Routes: a method and a path with their handler, and the checks that every route needs: role, project, Accept, query.

Denied by default: a route that changes something needs an operator, and a path with an id must name the table of what
it identifies, so that it is found by callers of its own project only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from litestar import Request
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from litestar.types import Empty
from sqlalchemy import Connection, Table

from slipway.api.response_schema import NOTHING, OPT, ResponseSchemas, RouteSpec
from slipway.api.responses import JSON, negotiate
from slipway.model.access import Caller, Role
from slipway.model.errors import BadRequest, Forbidden, NotFound
from slipway.store import tables
from slipway.store.database import RowByKey

if TYPE_CHECKING:
    from slipway.api.request_body import Body

GET, POST, PUT, PATCH, DELETE = HttpMethod.GET, HttpMethod.POST, HttpMethod.PUT, HttpMethod.PATCH, HttpMethod.DELETE

AnyRequest = Request[Any, Any, Any]
Handler = Callable[[AnyRequest], Awaitable[ASGIResponse]]

LIST_PARAMETERS = ("filter", "all_fields", "fields", "exclude_fields", "exclude_default", "nextpage_opaque_marker")


BY_HANDLER = "by handler"  # the handler looks the id up itself, in the caller's project
NOUNS = {
    tables.instances: "VNF instance",
    tables.operations: "LCM operation occurrence",
    tables.packages: "VNF package",
    tables.subscriptions: "subscription",
}

_PROJECTS = {table: RowByKey(table.c.id, table.c.project) for table in NOUNS}


def route(
    method: HttpMethod,
    path: str,
    handler: Handler,
    *,
    table: Table | str | None = None,
    role: Role | None = None,
    media_type: str | None = JSON,
    parameters: tuple[str, ...] = (),
    max_bytes: int | None = None,
    request_body: Body[Any] | tuple[str, ...] | None = None,
    responses: ResponseSchemas | None = None,
    errors: tuple[int, ...] = (),
    headers: tuple[str, ...] = (),
) -> HTTPRouteHandler:
    """`table` is where the path's `id` is looked up. `role` is the least role; by default a reader may read, and an
    operator may do the rest. `media_type` is that of the response; None when the handler looks at Accept itself.

    Described at /schema: `request_body`, `responses` (of a DELETE by default 204), `errors`, `headers`; see RouteSpec.
    """
    if table is None and "{" in path:
        raise ValueError(f"{path} has an id: the route must name its table")
    least = role or (Role.READER if method is GET else Role.OPERATOR)

    async def handle(request: AnyRequest) -> ASGIResponse:
        caller = caller_of(request)
        if caller.role < least:
            raise Forbidden(f"{method.value} {path} needs the role {least}; your token has the role {caller.role}.")
        if isinstance(table, Table):
            await must_be_own(request, table, request.path_params["id"])
        if media_type is not None:
            negotiate(request.headers.get("accept"), (media_type,))
        if request.scope["query_string"]:
            read_query(request, parameters)
        return await handler(request)

    spec = RouteSpec(
        handler=handler,
        role=least,
        request_body=request_body,
        responses={204: NOTHING} if responses is None and method is DELETE else responses or {},
        errors=errors,
        parameters=parameters,
        headers=headers,
    )
    return HTTPRouteHandler(
        path,
        http_method=[method],
        status_code=200,  # what the handler answers counts; this only keeps Litestar from guessing
        name=f"{method.value} {path}",
        request_max_body_size=Empty if max_bytes is None else max_bytes,
        opt={OPT: spec},
    )(handle)


def caller_of(request: AnyRequest) -> Caller:
    caller: Caller = request.scope["user"]
    return caller


async def must_be_own(request: AnyRequest, table: Table, wanted: str) -> None:
    """NotFound for what belongs to another project, as for what does not exist."""
    if (project := caller_of(request).project) is None:
        return
    if await request.app.state.database.read_one(_project_of, table, wanted) != project:
        raise NotFound(f"There is no {NOUNS[table]} {wanted}.")


def _project_of(connection: Connection, table: Table, wanted: str) -> str | None:
    row = _PROJECTS[table](connection, wanted)
    return row[0] if row else None


def read_query(request: AnyRequest, known: tuple[str, ...]) -> dict[str, str]:
    """The parameters of the query, or BadRequest when one is unknown, repeated or no text."""
    try:
        pairs = parse_qsl(request.scope["query_string"].decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise BadRequest("The query is not valid UTF-8, percent-encoded.") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            allowed = f"must be one of: {', '.join(known)}" if known else "none is allowed here"
            raise BadRequest(f"There is no query parameter {name!r}; {allowed}.")
        if name in found:
            raise BadRequest(f"The query parameter {name!r} is given twice.")
        if "\0" in value:
            raise BadRequest(f"{name}: zero characters are not allowed.")
        found[name] = value
    return found
