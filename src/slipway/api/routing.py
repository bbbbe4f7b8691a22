"""From a method and a path to a handler. The checks that every route needs stand here, and cost next to nothing.

What nobody said is denied: a route that changes something needs an operator, and a path that names something must say
in which table it stands, so that it is there for callers of its own project only.
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

from slipway.api.answers import NOTHING, OPT, Answers, Declared
from slipway.api.negotiation import acceptable
from slipway.api.replies import JSON
from slipway.model.access import Caller, Role
from slipway.model.errors import BadRequest, Forbidden, NotFound
from slipway.store import tables
from slipway.store.row_by_key import RowByKey

if TYPE_CHECKING:
    from slipway.api.bodies import Body

GET, POST, PUT, PATCH, DELETE = HttpMethod.GET, HttpMethod.POST, HttpMethod.PUT, HttpMethod.PATCH, HttpMethod.DELETE

AnyRequest = Request[Any, Any, Any]
Handler = Callable[[AnyRequest], Awaitable[ASGIResponse]]

LIST_PARAMETERS = ("filter", "all_fields", "fields", "exclude_fields", "exclude_default", "nextpage_opaque_marker")


BY_HANDLER = "by handler"  # it looks for what the path names among the caller's own things itself
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
    within: Table | str | None = None,
    needs: Role | None = None,
    gives: str | None = JSON,
    parameters: tuple[str, ...] = (),
    max_bytes: int | None = None,
    takes: Body[Any] | tuple[str, ...] | None = None,
    answers: Answers | None = None,
    refuses: tuple[int, ...] = (),
    headers: tuple[str, ...] = (),
) -> HTTPRouteHandler:
    """`within` is the table of what the path's `id` names. `needs` is the least role; without it a reader may read, and
    an operator may do the rest. `gives` is the media type of the answer; None when the handler looks at Accept itself.

    What is told at /schema: `takes`, `answers` (of a DELETE: nothing, 204), `refuses`, `headers` (see answers.py).
    """
    if within is None and "{" in path:
        raise ValueError(f"{path} names something: say within which table")
    least = needs or (Role.READER if method is GET else Role.OPERATOR)

    async def handle(request: AnyRequest) -> ASGIResponse:
        caller = caller_of(request)
        if caller.role < least:
            raise Forbidden(f"{method.value} {path} needs the role {least}; your token has the role {caller.role}.")
        if isinstance(within, Table):
            await must_be_own(request, within, request.path_params["id"])
        if gives is not None:
            acceptable(request.headers.get("accept"), (gives,))
        if request.scope["query_string"]:
            read_query(request, parameters)
        return await handler(request)

    declared = Declared(
        handler=handler,
        needs=least,
        takes=takes,
        answers={204: NOTHING} if answers is None and method is DELETE else answers or {},
        refuses=refuses,
        parameters=parameters,
        headers=headers,
    )
    return HTTPRouteHandler(
        path,
        http_method=[method],
        status_code=200,  # what the handler answers counts; this only keeps Litestar from guessing
        name=f"{method.value} {path}",
        request_max_body_size=Empty if max_bytes is None else max_bytes,
        opt={OPT: declared},
    )(handle)


def caller_of(request: AnyRequest) -> Caller:
    caller: Caller = request.scope["user"]
    return caller


async def must_be_own(request: AnyRequest, table: Table, wanted: str) -> None:
    """What belongs to others is not there."""
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
            possible = f"possible are: {', '.join(known)}" if known else "none is possible here"
            raise BadRequest(f"There is no query parameter {name!r}; {possible}.")
        if name in found:
            raise BadRequest(f"The query parameter {name!r} is given twice.")
        if "\0" in value:
            raise BadRequest(f"{name}: zero characters are not possible.")
        found[name] = value
    return found
