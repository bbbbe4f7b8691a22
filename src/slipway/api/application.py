"""The HTTP application: one gate before all routes, one handler for all errors."""

from __future__ import annotations

from typing import Any

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from litestar.types import Message, Receive, Scope, Send

from slipway.api import problems
from slipway.api.clusters import Clusters
from slipway.api.gate import LCM_PREFIX, LCM_VERSION, Gate
from slipway.api.links import Links
from slipway.api.package_content import PackageContent
from slipway.api.packages import Packages
from slipway.api.plans import Plans
from slipway.api.services import Services
from slipway.api.status import Status
from slipway.api.v2.instances import Instances
from slipway.api.v2.operations import Operations
from slipway.api.versions import version_routes
from slipway.api.vims import Vims
from slipway.model.errors import RequestError

_LCM_HEADERS = ((b"version", LCM_VERSION.encode()), (b"accept-ranges", b"none"))


def make_app(services: Services) -> Litestar:
    return Application(services)


class Application(Litestar):
    """Litestar runs middleware behind its router, so that unknown paths pass it by; the gate stands before both."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            route_handlers=_routes(services),
            exception_handlers={Exception: problems.handle},
            request_max_body_size=services.max_body_bytes,
            openapi_config=None,
            logging_config=None,
        )
        self._gate = Gate(services.token)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        if scope["path"].startswith(LCM_PREFIX):
            send = _with_lcm_headers(send)
        try:
            self._gate.check(scope["path"], scope["headers"])
        except RequestError as error:
            await _refuse(error, scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _routes(services: Services) -> list[HTTPRouteHandler]:
    links = Links(services.base_url)
    return [
        *Status(services).routes(),
        *version_routes(),
        *Instances(services, links).routes(),
        *Operations(services, links).routes(),
        *Packages(services, links).routes(),
        *PackageContent(services).routes(),
        *Vims(services, links).routes(),
        *Plans(services).routes(),
        *Clusters(services).routes(),
    ]


async def _refuse(error: RequestError, scope: Scope, receive: Receive, send: Send) -> None:
    problem, headers = problems.problem_of(error, scope["path"], scope["method"])  # type: ignore[typeddict-item]
    body = problems.encoded(problem)
    answer = ASGIResponse(body=body, status_code=problem.status, headers=headers, media_type=problems.PROBLEM_JSON)
    await answer(scope, receive, send)


def _with_lcm_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *_LCM_HEADERS]
        await send(message)

    return send_with_headers
