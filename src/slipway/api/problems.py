"""Errors as responses: whatever went wrong becomes one ProblemDetails, which shows nothing of the inside."""

from __future__ import annotations

import logging
import sqlite3
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, InternalServerException
from sqlalchemy.exc import InterfaceError, OperationalError

from slipway.model.errors import ProblemDetails, RangeNotSatisfiable, RequestError, VimError
from slipway.store.poll_loop import DATABASE_UNAVAILABLE

PROBLEM_JSON = "application/problem+json"
LEGACY_PREFIX = "/v1.0"  # whose clients want errors in a shape of their own


class LegacyError(msgspec.Struct):
    type: str
    message: str
    detail: str = ""


class LegacyProblem(msgspec.Struct):
    error: LegacyError = msgspec.field(name="TackerError")


log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


def problem_of(error: Exception, path: str, method: str) -> tuple[ProblemDetails, dict[str, str]]:
    """The problem and the headers that go with it. What is not foreseen is logged."""
    if isinstance(error, RequestError):
        return error.problem, _headers(error)
    if isinstance(error, VimError):
        return ProblemDetails(status=502, title="The VIM refused", detail=error.detail), {}
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _of_routing(error, path, method)
    if isinstance(error, DATABASE_UNAVAILABLE) and not _is_wrong_statement(error):
        log.warning("%s %s: the database does not answer: %s", method, path, error.orig)
        detail = "The database does not answer. Repeat the request in a moment."
        return ProblemDetails(status=503, title="Service Unavailable", detail=detail), {"Retry-After": "2"}
    if not _is_disconnect(error):
        log.error("%s %s failed", method, path, exc_info=error)
    detail = "Slipway could not do this; its log says why."
    return ProblemDetails(status=500, title="Internal Server Error", detail=detail), {}


def encoded(problem: ProblemDetails) -> bytes:
    return _encode(problem)


def encode_problem(problem: ProblemDetails, path: str) -> tuple[bytes, str]:
    """The body of the response, and its media type."""
    if not path.startswith(LEGACY_PREFIX):
        return encoded(problem), PROBLEM_JSON
    kind = (problem.title or HTTPStatus(problem.status).phrase).replace(" ", "")
    return _encode(LegacyProblem(LegacyError(kind, problem.detail))), "application/json"


def handle(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The one exception handler of the application."""
    problem, headers = problem_of(error, request.scope["path"], request.scope["method"])
    body, media_type = encode_problem(problem, request.scope["path"])
    return Response(body, status_code=problem.status, media_type=media_type, headers=headers)


def _headers(error: RequestError) -> dict[str, str]:
    if error.status == HTTPStatus.UNAUTHORIZED:
        return {"WWW-Authenticate": 'Bearer realm="slipway"'}
    if error.status in (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT):
        return {"Connection": "close"}  # otherwise the server goes on reading the body
    if isinstance(error, RangeNotSatisfiable):
        return {"Content-Range": f"bytes */{error.size}"}
    return {}


def _is_wrong_statement(error: OperationalError | InterfaceError) -> bool:
    """SQLite has one class of error for all; a wrong statement is not a matter of trying again."""
    return (
        isinstance(error.orig, sqlite3.Error) and getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    )


def _is_disconnect(error: Exception) -> bool:
    """The client closed the connection while it sent a body; this is how Litestar says so."""
    return isinstance(error, InternalServerException) and "disconnected" in error.detail


def _of_routing(error: HTTPException, path: str, method: str) -> tuple[ProblemDetails, dict[str, str]]:
    """What the framework refuses before any of our code runs."""
    headers = {name.title(): value for name, value in (error.headers or {}).items()}
    details = {
        404: f"There is nothing at {path}.",
        405: f"{method} is not allowed at {path}; it must be one of: {headers.get('Allow', 'none')}.",
    }
    status = error.status_code
    detail = details.get(status, error.detail or HTTPStatus(status).phrase)
    return ProblemDetails(status=status, title=HTTPStatus(status).phrase, detail=detail), headers
