"""The HTTP application: authentication before all routes, one handler for all errors."""

from __future__ import annotations

from typing import Any

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from litestar.types import Message, Receive, Scope, Send

from slipway.api import problems
from slipway.api.auth_middleware import LCM_PREFIX, LCM_VERSION, AuthMiddleware
from slipway.api.clusters import ClusterRoutes
from slipway.api.drift import DriftRoutes
from slipway.api.legacy_vims import LegacyVimRoutes
from slipway.api.links import LCM_V1, Links
from slipway.api.metrics import PATH as METRICS
from slipway.api.metrics import MetricsRoutes
from slipway.api.origin_check import OriginCheck
from slipway.api.package_content import PackageContentRoutes, PackageUploadRoutes
from slipway.api.packages import (
    PackageReadRoutes,
    PackageRoutes,
    PackageWarningRoutes,
    packages_by_id,
    packages_by_vnfd,
)
from slipway.api.plans import PlanRoutes
from slipway.api.schema import PAGE, SCHEMA, SchemaRoutes
from slipway.api.services import Services
from slipway.api.status import HEALTH, StatusRoutes
from slipway.api.subscriptions import DeliveryRoutes, SubscriptionRoutes
from slipway.api.tokens import TokenRoutes
from slipway.api.v1.instances import InstanceRoutesV1
from slipway.api.v1.operations import OperationRoutesV1
from slipway.api.v2.instances import InstanceRoutes
from slipway.api.v2.operations import OperationRoutes
from slipway.api.versions import version_routes
from slipway.api.vims import VimRoutes
from slipway.model.errors import RequestError
from slipway.model.subscription import Interface

_LCM_HEADERS = ((b"version", LCM_VERSION.encode()), (b"accept-ranges", b"none"))


def make_app(services: Services, *, whole: bool = True) -> Litestar:
    """Not `whole`: only health and metrics, for a worker in a process of its own."""
    routes = _routes(services) if whole else [*StatusRoutes(services).routes(), *MetricsRoutes(services).routes()]
    return Application(services, routes)


class Application(Litestar):
    """Litestar runs middleware behind its router, where unknown paths would not be authenticated; here it is before."""

    def __init__(self, services: Services, routes: list[HTTPRouteHandler]) -> None:
        public = frozenset({HEALTH, SCHEMA, PAGE, *([METRICS] if services.metrics_public else [])})
        super().__init__(
            route_handlers=[*routes, *SchemaRoutes(services.version, public).routes()],
            exception_handlers={Exception: problems.handle},
            request_max_body_size=services.max_body_bytes,
            openapi_config=None,
            logging_config=None,
        )
        self.state.database = services.database
        self.state.body_seconds = services.body_seconds
        self._origin_check = OriginCheck(services.base_url, tokens=services.authenticator is not None)
        self._auth = AuthMiddleware(services.authenticator, public)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        if scope["path"].startswith(LCM_PREFIX):
            send = _with_lcm_headers(send)
        try:
            self._origin_check.check(scope["method"], scope["headers"])
            scope["user"] = await self._auth.enter(scope["path"], scope["headers"])
        except RequestError as error:
            await _refuse(error, scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _routes(services: Services) -> list[HTTPRouteHandler]:
    links = Links(services.base_url, nfvo_url=services.nfvo_url)
    links_of_v1 = Links(services.base_url, LCM_V1, nfvo_url=services.nfvo_url)
    return [
        *StatusRoutes(services).routes(),
        *MetricsRoutes(services).routes(),
        *version_routes(),
        *InstanceRoutes(services, links).routes(),
        *OperationRoutes(services, links).routes(),
        *InstanceRoutesV1(services, links_of_v1).routes(),
        *OperationRoutesV1(services, links_of_v1).routes(),
        *PackageRoutes(services, links).routes(),
        *PackageUploadRoutes(services).routes(),
        *PackageWarningRoutes(services).routes(),
        *(
            one
            for paths in (packages_by_id(links), packages_by_vnfd(services.onboarding, links))
            for one in (*PackageReadRoutes(services, paths).routes(), *PackageContentRoutes(services, paths).routes())
        ),
        *VimRoutes(services, links).routes(),
        *LegacyVimRoutes(services).routes(),
        *PlanRoutes(services).routes(),
        *ClusterRoutes(services).routes(),
        *DriftRoutes(services).routes(),
        *TokenRoutes(services).routes(),
        *(one for interface in Interface for one in SubscriptionRoutes(services, interface).routes()),
        *DeliveryRoutes(services).routes(),
    ]


async def _refuse(error: RequestError, scope: Scope, receive: Receive, send: Send) -> None:
    problem, headers = problems.problem_of(error, scope["path"], scope["method"])  # type: ignore[typeddict-item]
    body, media_type = problems.encode_problem(problem, scope["path"])
    answer = ASGIResponse(body=body, status_code=problem.status, headers=headers, media_type=media_type)
    await answer(scope, receive, send)


def _with_lcm_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *_LCM_HEADERS]
        await send(message)

    return send_with_headers
