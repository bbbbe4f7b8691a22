"""Clusters that VNF instances are: how they do, and the way in."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.answers import json_of
from slipway.api.replies import json_reply
from slipway.api.routing import GET, AnyRequest, read_query, route
from slipway.api.services import Services
from slipway.cluster.health import ClusterHealth
from slipway.kube.account import FETCHED, LONGEST, SHORTEST
from slipway.lcm.standing_clusters import Kubeconfig
from slipway.model.access import Role
from slipway.model.errors import BadRequest
from slipway.store import tables

LIFETIME = "lifetime_seconds"


class Clusters:
    def __init__(self, services: Services) -> None:
        self._clusters = services.clusters

    def routes(self) -> list[HTTPRouteHandler]:
        one = "/slipway/v1/clusters/{id:str}"
        own = partial(route, within=tables.instances, refuses=(409, 502))
        secret = {200: json_of(Kubeconfig, "Cache-Control")}
        return [
            own(GET, one, self.health, answers={200: json_of(ClusterHealth)}),
            own(GET, f"{one}/kubeconfig", self.kubeconfig, needs=Role.ADMIN, parameters=(LIFETIME,), answers=secret),
        ]

    async def health(self, request: AnyRequest) -> ASGIResponse:
        return json_reply(msgspec.json.encode(await self._clusters.health(request.path_params["id"])))

    async def kubeconfig(self, request: AnyRequest) -> ASGIResponse:
        """A secret. It goes over the wire to whoever may do everything anyway."""
        lifetime = _lifetime(read_query(request, (LIFETIME,)))
        found = await self._clusters.kubeconfig(request.path_params["id"], lifetime)
        return json_reply(msgspec.json.encode(found), headers={"Cache-Control": "no-store"})


def _lifetime(query: dict[str, str]) -> timedelta:
    if (text := query.get(LIFETIME)) is None:
        return FETCHED
    least, most = int(SHORTEST.total_seconds()), int(LONGEST.total_seconds())
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise BadRequest(f"{LIFETIME}: must be a number of seconds from {least} to {most}.")
    return timedelta(seconds=int(text))
