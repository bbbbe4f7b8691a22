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
from slipway.api.legacy_vims import LegacyVims
from slipway.api.links import LCM_V1, Links
from slipway.api.metrics import PATH as METRICS
from slipway.api.metrics import Metrics
from slipway.api.origins import Origins
from slipway.api.package_content import PackageContent, PackageUpload
from slipway.api.package_ways import by_id, by_vnfd
from slipway.api.packages import Packages, ReadPackages
from slipway.api.plans import Plans
from slipway.api.schema import PAGE, SCHEMA, Schema
from slipway.api.services import Services
from slipway.api.status import HEALTH, Status
from slipway.api.subscriptions import Deliveries, Subscriptions
from slipway.api.tokens import Tokens
from slipway.api.v1.instances import Instances as InstancesOfV1
from slipway.api.v1.operations import Operations as OperationsOfV1
from slipway.api.v2.instances import Instances
from slipway.api.v2.operations import Operations
from slipway.api.versions import version_routes
from slipway.api.vims import Vims
from slipway.model.errors import RequestError
from slipway.model.subscription import Interface

_LCM_HEADERS = ((b"version", LCM_VERSION.encode()), (b"accept-ranges", b"none"))


def make_app(services: Services, *, whole: bool = True) -> Litestar:
    """Not `whole`: only what those need who watch a worker."""
    routes = _routes(services) if whole else [*Status(services).routes(), *Metrics(services).routes()]
    return Application(services, routes)


class Application(Litestar):
    """Litestar runs middleware behind its router, so that unknown paths pass it by; the gate stands before both."""

    def __init__(self, services: Services, routes: list[HTTPRouteHandler]) -> None:
        public = frozenset({HEALTH, SCHEMA, PAGE, *([METRICS] if services.metrics_public else [])})
        super().__init__(
            route_handlers=[*routes, *Schema(services.version, public).routes()],
            exception_handlers={Exception: problems.handle},
            request_max_body_size=services.max_body_bytes,
            openapi_config=None,
            logging_config=None,
        )
        self.state.database = services.database
        self.state.body_seconds = services.body_seconds
        self._origins = Origins(services.base_url, tokens=services.callers is not None)
        self._gate = Gate(services.callers, public)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        if scope["path"].startswith(LCM_PREFIX):
            send = _with_lcm_headers(send)
        try:
            self._origins.check(scope["method"], scope["headers"])
            scope["user"] = await self._gate.enter(scope["path"], scope["headers"])
        except RequestError as error:
            await _refuse(error, scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _routes(services: Services) -> list[HTTPRouteHandler]:
    links = Links(services.base_url, nfvo_url=services.nfvo_url)
    links_of_v1 = Links(services.base_url, LCM_V1, nfvo_url=services.nfvo_url)
    return [
        *Status(services).routes(),
        *Metrics(services).routes(),
        *version_routes(),
        *Instances(services, links).routes(),
        *Operations(services, links).routes(),
        *InstancesOfV1(services, links_of_v1).routes(),
        *OperationsOfV1(services, links_of_v1).routes(),
        *Packages(services, links).routes(),
        *PackageUpload(services).routes(),
        *(
            one
            for way in (by_id(links), by_vnfd(services.onboarding, links))
            for one in (*ReadPackages(services, way).routes(), *PackageContent(services, way).routes())
        ),
        *Vims(services, links).routes(),
        *LegacyVims(services).routes(),
        *Plans(services).routes(),
        *Clusters(services).routes(),
        *Tokens(services).routes(),
        *(one for interface in Interface for one in Subscriptions(services, interface).routes()),
        *Deliveries(services).routes(),
    ]


async def _refuse(error: RequestError, scope: Scope, receive: Receive, send: Send) -> None:
    problem, headers = problems.problem_of(error, scope["path"], scope["method"])  # type: ignore[typeddict-item]
    body, media_type = problems.written(problem, scope["path"])
    answer = ASGIResponse(body=body, status_code=problem.status, headers=headers, media_type=media_type)
    await answer(scope, receive, send)


def _with_lcm_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *_LCM_HEADERS]
        await send(message)

    return send_with_headers
