"""VNF instances and the operations on them."""

from __future__ import annotations

from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.bodies import PATCH_TYPES, Body
from slipway.api.entity_tags import expected_version
from slipway.api.links import INSTANCES, Links, linked
from slipway.api.listing import Listing
from slipway.api.replies import empty_reply, json_reply, shown
from slipway.api.routing import DELETE, GET, LIST_PARAMETERS, PATCH, POST, AnyRequest, Handler, route
from slipway.api.services import Services
from slipway.lcm.operations import OPERATIONS
from slipway.model.instance import Instance, VnfInstance
from slipway.model.operation import OperationType
from slipway.model.requests import AnyRequest as OperationRequest
from slipway.model.requests import CreateRequest, ModifyRequest
from slipway.store import instances, tables

ACTIONS = {
    "instantiate": OperationType.INSTANTIATE,
    "terminate": OperationType.TERMINATE,
    "scale": OperationType.SCALE,
    "heal": OperationType.HEAL,
    "change_vnfpkg": OperationType.CHANGE_VNFPKG,
}

_create = Body(CreateRequest)
_modify = Body(ModifyRequest, PATCH_TYPES)


class Instances:
    def __init__(self, services: Services, links: Links) -> None:
        self._database = services.database
        self._lcm = services.lcm
        self._links = links
        self._list = Listing(
            services.database,
            services.page_size,
            tables.instances,
            links.instances,
            links.instance,
            VnfInstance.details,
        )

    def routes(self) -> list[HTTPRouteHandler]:
        one = f"{INSTANCES}/{{id:str}}"
        return [
            route(POST, INSTANCES, self.create),
            route(GET, INSTANCES, self._list, parameters=LIST_PARAMETERS),
            route(GET, one, self.show),
            route(PATCH, one, self.modify),
            route(DELETE, one, self.delete),
            *(route(POST, f"{one}/{action}", self._action(kind)) for action, kind in ACTIONS.items()),
        ]

    async def create(self, request: AnyRequest) -> ASGIResponse:
        instance = await self._lcm.create(await _create.read(request))
        return self._shown(instance, 201, {"Location": f"{self._links.instances}/{instance.vnf.id}"})

    async def show(self, request: AnyRequest) -> ASGIResponse:
        instance = await self._database.read_one(instances.get, request.path_params["id"])
        return self._shown(instance, 200, {})

    async def modify(self, request: AnyRequest) -> ASGIResponse:
        body = await _modify.read(request)
        return await self._begin(request, OperationType.MODIFY_INFO, body, await self._expected(request))

    async def delete(self, request: AnyRequest) -> ASGIResponse:
        await self._lcm.delete(request.path_params["id"])
        return empty_reply(204)

    def _action(self, kind: OperationType) -> Handler:
        body = Body(OPERATIONS[kind].request)

        async def begin(request: AnyRequest) -> ASGIResponse:
            return await self._begin(request, kind, await body.read(request), None)

        return begin

    async def _begin(
        self, request: AnyRequest, kind: OperationType, body: OperationRequest, if_version: int | None
    ) -> ASGIResponse:
        operation = await self._lcm.begin(kind, request.path_params["id"], body, if_version=if_version)
        return empty_reply(202, f"{self._links.operations}/{operation.id}")

    async def _expected(self, request: AnyRequest) -> int | None:
        if (condition := request.headers.get("if-match")) is None:
            return None
        current = await self._database.read_one(instances.get, request.path_params["id"])
        return expected_version(condition, current.version)

    def _shown(self, instance: Instance, status: int, headers: dict[str, str]) -> ASGIResponse:
        document = shown(instance.vnf)
        headers["ETag"] = f'"{instance.version}"'
        return json_reply(linked(document, self._links.instance(document)), status, headers)
