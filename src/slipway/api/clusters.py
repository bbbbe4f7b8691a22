"""Clusters that VNF instances are: their health, and their kubeconfig."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.response_schema import json_of
from slipway.api.responses import json_response
from slipway.api.routing import GET, AnyRequest, read_query, route
from slipway.api.services import Services
from slipway.cluster.health import ClusterHealth
from slipway.cluster_access.clusters import Kubeconfig
from slipway.model.access import DEFAULT_KUBE_TOKEN, LONGEST_KUBE_TOKEN, SHORTEST_KUBE_TOKEN, Role
from slipway.model.errors import BadRequest
from slipway.store import tables

LIFETIME = "lifetime_seconds"


class ClusterRoutes:
    def __init__(self, services: Services) -> None:
        self._clusters = services.clusters

    def routes(self) -> list[HTTPRouteHandler]:
        one = "/slipway/v1/clusters/{id:str}"
        own = partial(route, table=tables.instances, errors=(409, 502))
        secret = {200: json_of(Kubeconfig, "Cache-Control")}
        return [
            own(GET, one, self.health, responses={200: json_of(ClusterHealth)}),
            own(GET, f"{one}/kubeconfig", self.kubeconfig, role=Role.ADMIN, parameters=(LIFETIME,), responses=secret),
        ]

    async def health(self, request: AnyRequest) -> ASGIResponse:
        return json_response(msgspec.json.encode(await self._clusters.health(request.path_params["id"])))

    async def kubeconfig(self, request: AnyRequest) -> ASGIResponse:
        """A secret. It goes over the wire to whoever may do everything anyway."""
        lifetime = _lifetime(read_query(request, (LIFETIME,)))
        found = await self._clusters.kubeconfig(request.path_params["id"], lifetime)
        return json_response(msgspec.json.encode(found), headers={"Cache-Control": "no-store"})


def _lifetime(query: dict[str, str]) -> timedelta:
    if (text := query.get(LIFETIME)) is None:
        return DEFAULT_KUBE_TOKEN
    least, most = int(SHORTEST_KUBE_TOKEN.total_seconds()), int(LONGEST_KUBE_TOKEN.total_seconds())
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise BadRequest(f"{LIFETIME}: must be a number of seconds from {least} to {most}.")
    return timedelta(seconds=int(text))
