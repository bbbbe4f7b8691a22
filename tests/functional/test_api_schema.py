"""What /schema says of every route holds, whatever is asked. The requests are made from the document itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

from slipway.api.application import make_app
from slipway.api.problems import LegacyProblem
from slipway.model.errors import ProblemDetails
from slipway.store.database import Database
from tests.functional.schema_world import Json, fill, leading_to, loopback_world, telling_of
from tests.unit.api.world import BASE_URL, TOKEN, World, a_world

pytestmark = pytest.mark.sqlite_suffices

METHODS = {"get", "post", "put", "patch", "delete", "trace"}
CHECKS: list[Any] = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
# For each route: some in `make test`, which is on SQLite, and more in the group postgresql.
SOME = {GenerationMode.POSITIVE: 4, GenerationMode.NEGATIVE: 1}
MORE = {GenerationMode.POSITIVE: 12, GenerationMode.NEGATIVE: 3}
PATIENT = (502,)  # the outside refuses

schemathesis.serializer.alias("application/zip", "application/octet-stream")


def client_of(world: World) -> httpx.AsyncClient:
    """Without any header of its own."""
    app: Any = make_app(world.services)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url=BASE_URL)


def must_be_a_problem(answer: httpx.Response) -> None:
    if answer.request.url.path.startswith("/v1.0"):
        assert answer.headers["content-type"] == "application/json"
        assert msgspec.json.decode(answer.content, type=LegacyProblem).error.message
    else:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = msgspec.json.decode(answer.content, type=ProblemDetails)
        assert problem.status == answer.status_code
        assert problem.detail


async def sent(client: httpx.AsyncClient, case: Any) -> httpx.Response:
    case.headers["X-Auth-Token"] = TOKEN
    prepared = requests.Request(**case.as_transport_kwargs(base_url=BASE_URL)).prepare()
    assert prepared.method
    assert prepared.url
    headers = [(name.encode(), _raw(value)) for name, value in prepared.headers.items()]
    return await client.request(prepared.method, prepared.url, headers=headers, content=prepared.body)


def _raw(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def must_be_as_declared(case: Any, answer: httpx.Response) -> None:
    assert answer.status_code < 500 or answer.status_code in PATIENT, answer.text
    if answer.status_code >= 400:
        must_be_a_problem(answer)
    case.validate_response(answer, checks=CHECKS)


def test_requests_as_declared(database: Database, tmp_path: Path) -> None:
    walk(database, tmp_path, GenerationMode.POSITIVE, telling_of)


def test_requests_that_are_wrong(database: Database, tmp_path: Path) -> None:
    walk(database, tmp_path, GenerationMode.NEGATIVE, leading_to)


def walk(database: Database, directory: Path, mode: GenerationMode, adapt: Callable[[Json, Json], Json]) -> None:
    """`adapt` makes the document that requests are made from, out of the one that Slipway gives and what is there."""
    with asyncio.Runner() as runner:
        context = loopback_world(database, directory)
        world = runner.run(context.__aenter__())
        client = client_of(world)
        try:
            known = runner.run(fill(world))
            document = adapt(runner.run(client.get("/schema")).json(), known)
            examples = (SOME if database.is_sqlite else MORE)[mode]
            problems = Walk(runner, client, document, mode, examples).problems()
            assert not problems, "\n\n".join(problems)
        finally:
            runner.run(world.services.onboarding.close())
            runner.run(client.aclose())
            runner.run(context.__aexit__(None, None, None))


class Walk:
    """Over all routes: those that look first, those that remove last."""

    def __init__(
        self,
        runner: asyncio.Runner,
        client: httpx.AsyncClient,
        document: Json,
        mode: GenerationMode,
        examples: int,
    ) -> None:
        self._runner = runner
        self._client = client
        self._mode = mode
        self._schema = schemathesis.openapi.from_dict(document)
        self._examples = examples

    def problems(self) -> list[str]:
        results: list[Any] = list(self._schema.get_all_operations())
        operations = [result.ok() for result in results]
        order = ("get", "post", "put", "patch", "delete")
        ordered = sorted(operations, key=lambda one: order.index(one.method))
        return [problem for operation in ordered for problem in self._problems_of(operation)]

    def _problems_of(self, operation: Any) -> list[str]:
        """One at most. It is noted rather than raised: to try it again would not meet the same world."""
        found: list[str] = []

        @settings(
            max_examples=self._examples,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=self._mode))
        def check(case: Any) -> None:
            if not found:
                answer = self._runner.run(sent(self._client, case))
                try:
                    must_be_as_declared(case, answer)
                except (AssertionError, FailureGroup, msgspec.MsgspecError) as error:
                    found.append(f"{operation.label} ({self._mode.value}): {error}")

        with suppress(Unsatisfiable):  # there is nothing that could be wrong in a request
            check()
        return found


async def test_other_methods_are_refused(database: Database, tmp_path: Path) -> None:
    async with a_world(database, tmp_path) as world, client_of(world) as client:
        paths = (await client.get("/schema")).json()["paths"]
        for path, declared in paths.items():
            for method in sorted(METHODS - declared.keys()):
                headers = {"X-Auth-Token": TOKEN, "Version": "2.0.0"}
                answer = await client.request(method.upper(), path.replace("{", "").replace("}", ""), headers=headers)
                assert answer.status_code == 405, f"{method} {path}: {answer.text}"
                assert set(answer.headers["allow"].lower().split(", ")) == {*declared, "options"}, path
                must_be_a_problem(answer)


async def test_the_document_is_whole(database: Database, tmp_path: Path) -> None:
    """It is valid OpenAPI, has every route, and each says what it answers. Whoever asks needs no token."""
    async with a_world(database, tmp_path) as world, client_of(world) as client:
        answer = await client.get("/schema")
        assert answer.headers["content-type"] == "application/json"
        document = answer.json()
        schemathesis.openapi.from_dict(document).validate()
        shown = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
        routes = make_app(world.services).routes
        there = {(re.sub(r":\w+\}", "}", one.path), method) for one in routes for method in one.methods - {"OPTIONS"}}
        assert shown == there
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                good = [status for status in operation["responses"] if status < "400"]
                assert good, f"{method} {path} does not say what it answers: give route() answers="
                if method in ("put", "patch"):
                    assert "requestBody" in operation, f"{method} {path} does not say what it takes"
        operation_ids = [one["operationId"] for methods in document["paths"].values() for one in methods.values()]
        assert len(set(operation_ids)) == len(operation_ids)
        assert [one for one in re.findall(r'"\$ref":"#([^"]*)"', answer.text) if not _found(document, one)] == []


def _found(document: Json, pointer: str) -> bool:
    here: Any = document
    for name in pointer.strip("/").split("/"):
        if name not in here:
            return False
        here = here[name]
    return True
