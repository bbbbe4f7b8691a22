"""The OpenAPI document, made from the routes themselves and from the types that they read and write."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.routes import BaseRoute, HTTPRoute

from slipway.api.auth_middleware import LCM_PREFIX, LCM_VERSION, VERSIONLESS
from slipway.api.links import LCM_V1
from slipway.api.problems import LEGACY_PREFIX, PROBLEM_JSON, LegacyProblem
from slipway.api.response_schema import OPT, ResponseSchema, RouteSpec
from slipway.api.responses import JSON
from slipway.model.access import DEFAULT_KUBE_TOKEN, LONGEST_KUBE_TOKEN, SHORTEST_KUBE_TOKEN
from slipway.model.errors import ProblemDetails

Json = dict[str, Any]

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
REF = "#/components/schemas/{name}"
TAGS = (
    ("/vnflcm/v2", "VNF lifecycle, version 2"),
    ("/vnflcm/v1", "VNF lifecycle, version 1"),
    ("/vnflcm", "Versions"),
    ("/vnfpkgm/v1/", "VNF packages"),
    ("/vnfpkgm", "Versions"),
    ("/slipway/v1", "Slipway's own"),
    (LEGACY_PREFIX, "VIMs for the stock client"),
    ("/", "Status"),
)


def _seconds(lifetime: timedelta) -> int:
    return int(lifetime.total_seconds())


_TEXT = {"type": "string"}
_FLAG = {"type": "string", "enum": ["", "true"]}

QUERY: dict[str, dict[str, Any]] = {
    "filter": {"description": "Which ones: (eq,vnfInstanceName,a);(gt,metadata/size,3)", "schema": _TEXT},
    "all_fields": {"description": "Everything.", "schema": _FLAG, "allowEmptyValue": True},
    "fields": {"description": "What is mandatory, and these: a,b/c", "schema": _TEXT},
    "exclude_fields": {"description": "All but these: a,b/c; what is mandatory stays.", "schema": _TEXT},
    "exclude-fields": {"description": "The same, as the stock client writes it.", "schema": _TEXT},
    "exclude_default": {
        "description": "As without any selector; with fields: these, too.",
        "schema": _FLAG,
        "allowEmptyValue": True,
    },
    "nextpage_opaque_marker": {"description": "The next page; it comes with the header Link.", "schema": _TEXT},
    "all_records": {"description": "No pages.", "schema": {"type": "string", "enum": ["yes"]}},
    "lifetime_seconds": {
        "description": f"How long the token is valid; by default {_seconds(DEFAULT_KUBE_TOKEN)}.",
        "schema": {
            "type": "integer",
            "minimum": _seconds(SHORTEST_KUBE_TOKEN),
            "maximum": _seconds(LONGEST_KUBE_TOKEN),
        },
    },
    "id": {"description": "Exactly this id.", "schema": _TEXT},
    "name": {"description": "Exactly this name.", "schema": _TEXT},
}
HEADERS = {
    "If-Match": "The ETag that the resource must still have.",
    "Range": "The one part that is wanted: bytes=0-1023",
}
OPTIONAL_HEADERS = frozenset({"Link"})  # of a response, only if there is another page
LINKS = {"type": "object", "additionalProperties": {"type": "object", "properties": {"href": {"type": "string"}}}}


def make_document(routes: Iterable[BaseRoute], public: frozenset[str], version: str) -> Json:
    """`public` are the paths that need no token."""
    specs = list(_declared(routes))
    types = Types(one for _, _, one in specs)
    paths: dict[str, Json] = {path: {} for path, _, _ in specs}
    for path, method, one in sorted(specs, key=lambda each: METHODS.index(each[1])):  # Litestar keeps them in sets
        paths[path][method.lower()] = _operation(path, method, one, types, path in public)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Slipway", "version": version, "description": "An ETSI NFV VNF Manager."},
        "tags": [{"name": name} for name in dict.fromkeys(name for _, name in TAGS)],
        "security": [{"token": []}, {"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
            "schemas": types.components,
        },
    }


class Types:
    """The JSON schemas of all types that routes name."""

    def __init__(self, spec: Iterable[RouteSpec]) -> None:
        responses: list[ResponseSchema] = []
        kinds: dict[Any, None] = {ProblemDetails: None, LegacyProblem: None}
        for one in spec:
            responses += one.responses.values()
            if one.request_body is not None and not isinstance(one.request_body, tuple):
                kinds[one.request_body.kind] = None
        kinds |= {answer.kind: None for answer in responses if answer.kind is not None}
        schemas, found = msgspec.json.schema_components(kinds, ref_template=REF)
        self._schemas: dict[Any, Json] = dict(zip(kinds, schemas, strict=True))
        self.components: dict[str, Json] = dict(sorted(found.items()))
        for kind in {answer.kind: None for answer in responses if answer.linked}:
            whole = self.components[self._schemas[kind]["$ref"].rpartition("/")[2]]
            whole["properties"] = whole["properties"] | {"_links": LINKS}
            whole["required"] = [*whole["required"], "_links"]

    def of(self, kind: Any) -> Json:
        return self._schemas[kind]

    def answered(self, answer: ResponseSchema) -> Json:
        schema = self._schemas[answer.kind]
        return {"type": "array", "items": schema} if answer.page else schema


def _declared(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str, RouteSpec]]:
    for route in routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if isinstance(handler, HTTPRouteHandler) and OPT in handler.opt:
                    for method in sorted(handler.http_methods):
                        yield re.sub(r":\w+\}", "}", route.path), method, handler.opt[OPT]


def _operation(path: str, method: str, spec: RouteSpec, types: Types, public: bool) -> Json:
    operation: Json = {
        "operationId": method.lower() + re.sub(r"\W+", "_", path).rstrip("_"),
        "tags": [next(name for prefix, name in TAGS if path.startswith(prefix))],
        "description": _description(spec, public),
        "parameters": list(_parameters(path, spec)),
    }
    if spec.request_body is not None:
        operation["requestBody"] = {"required": True, "content": _taken(spec, types)}
    operation["responses"] = {
        str(status): _answer(status, answer, path, types) for status, answer in spec.responses.items()
    } | {str(status): _error(status, path, types) for status in sorted(_errors(path, method, spec, public))}
    if public:
        operation["security"] = []
    return operation


def _description(spec: RouteSpec, public: bool) -> str:
    said = inspect.getdoc(spec.handler) if inspect.isroutine(spec.handler) else None
    access = "Needs no token." if public else f"Needs the role {spec.role}."
    return f"{said} {access}" if said else access


def _parameters(path: str, spec: RouteSpec) -> Iterator[Json]:
    for name in re.findall(r"\{(\w+)\}", path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    if _in_version_2(path):
        yield {"name": "Version", "in": "header", "required": True, "schema": {"const": LCM_VERSION}}
    for name in spec.headers:
        yield {"name": name, "in": "header", "description": HEADERS[name], "schema": {"type": "string"}}
    for name in spec.parameters:
        described = QUERY.get(name, {"schema": {"type": "string"}})
        yield {"name": name, "in": "query", **described}


def _taken(spec: RouteSpec, types: Types) -> Json:
    if isinstance(spec.request_body, tuple):
        return {name: {"schema": {"type": "string", "format": "binary"}} for name in spec.request_body}
    body: Any = spec.request_body
    return {name: {"schema": types.of(body.kind)} for name in body.media_types}


def _answer(status: int, answer: ResponseSchema, path: str, types: Types) -> Json:
    described: Json = {"description": HTTPStatus(status).phrase}
    named = (*answer.headers, "Version") if _in_version_2(path) else answer.headers
    if named:
        described["headers"] = {
            name: {"required": name not in OPTIONAL_HEADERS, "schema": {"type": "string"}} for name in named
        }
    if answer.kind is not None:
        described["content"] = {name: {"schema": types.answered(answer)} for name in answer.media_types}
    elif answer.media_types:
        described["content"] = {name: {} for name in answer.media_types}
    return described


def _errors(path: str, method: str, spec: RouteSpec, public: bool) -> set[int]:
    """What a caller must be ready for."""
    statuses = {400, 406, 500, 503, *spec.errors}
    if not public:
        statuses |= {401, 403}
    if "{" in path:
        statuses.add(404)
    if method != "GET":
        statuses.add(409)
    if spec.request_body is not None:
        statuses |= {408, 413, 415}
        if not path.startswith(LCM_V1):
            statuses.add(422)
    return statuses


def _error(status: int, path: str, types: Types) -> Json:
    kind, media_type = (LegacyProblem, JSON) if path.startswith(LEGACY_PREFIX) else (ProblemDetails, PROBLEM_JSON)
    return {"description": HTTPStatus(status).phrase, "content": {media_type: {"schema": types.of(kind)}}}


def _in_version_2(path: str) -> bool:
    return path.startswith(LCM_PREFIX) and path not in VERSIONLESS
