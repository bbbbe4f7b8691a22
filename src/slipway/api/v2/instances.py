"""VNF instances and the operations on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.answers import ACCEPTED, page_of, resource
from slipway.api.bodies import PATCH_TYPES, Body
from slipway.api.entity_tags import expected_version
from slipway.api.links import Links, linked
from slipway.api.listing import Listing
from slipway.api.replies import empty_reply, json_reply, shown, without_secrets
from slipway.api.routing import DELETE, GET, PATCH, POST, AnyRequest, Handler, caller_of, route
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
    "change_ext_conn": OperationType.CHANGE_EXT_CONN,
    "change_vnfpkg": OperationType.CHANGE_VNFPKG,
}


class Instances:
    """`v1/instances.py` says the same in the words of an older version of the standard."""

    actions: ClassVar[Mapping[str, OperationType]] = ACTIONS
    creation: ClassVar[Body[Any]] = Body(CreateRequest)
    modification: ClassVar[Body[Any]] = Body(ModifyRequest, PATCH_TYPES)
    bodies: ClassVar[Mapping[OperationType, Body[Any]]] = {
        kind: Body(rules.request) for kind, rules in OPERATIONS.items()
    }
    shape: ClassVar[type[Any]] = VnfInstance
    without_package = 422

    def __init__(self, services: Services, links: Links) -> None:
        self._database = services.database
        self._lcm = services.lcm
        self._links = links
        self._list: Listing = Listing(
            services.database,
            services.page_size,
            tables.instances,
            links.instances,
            links.instance,
            VnfInstance.details,
        )

    def routes(self) -> list[HTTPRouteHandler]:
        all_of_them = self._links.instances_path
        one = f"{all_of_them}/{{id:str}}"
        own = partial(route, within=tables.instances)
        begun = partial(own, answers={202: ACCEPTED})
        return [
            route(
                POST,
                all_of_them,
                self.create,
                takes=self.creation,
                answers={201: resource(self.shape, "Location", "ETag")},
                refuses=(self.without_package,),
            ),
            route(GET, all_of_them, self._list, parameters=self._list.parameters, answers={200: page_of(self.shape)}),
            own(GET, one, self.show, answers={200: resource(self.shape, "ETag")}),
            begun(PATCH, one, self.modify, takes=self.modification, headers=("If-Match",), refuses=(412,)),
            own(DELETE, one, self.delete),
            *(
                begun(POST, f"{one}/{action}", self._action(kind), takes=self.bodies[kind])
                for action, kind in self.actions.items()
            ),
        ]

    async def create(self, request: AnyRequest) -> ASGIResponse:
        instance = await self._lcm.create(await self.creation.read(request), caller_of(request).home)
        return await self._shown(instance, 201, {"Location": f"{self._links.instances}/{instance.vnf.id}"})

    async def show(self, request: AnyRequest) -> ASGIResponse:
        stored, version = await self._database.read_one(instances.stored, request.path_params["id"])
        return self._whole(without_secrets(stored.encode()), version, 200, {})

    async def modify(self, request: AnyRequest) -> ASGIResponse:
        body = await self.modification.read(request)
        return await self._begin(request, OperationType.MODIFY_INFO, body, await self._expected(request))

    async def delete(self, request: AnyRequest) -> ASGIResponse:
        await self._lcm.delete(request.path_params["id"])
        return empty_reply(204)

    def _action(self, kind: OperationType) -> Handler:
        body = self.bodies[kind]

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
        _, version = await self._database.read_one(instances.stored, request.path_params["id"])
        return expected_version(condition, version)

    async def _shown(self, instance: Instance, status: int, headers: dict[str, str]) -> ASGIResponse:
        return self._whole(shown(instance.vnf), instance.version, status, headers)

    def _whole(self, document: bytes, version: int, status: int, headers: dict[str, str]) -> ASGIResponse:
        headers["ETag"] = f'"{version}"'
        return json_reply(linked(document, self._links.instance(document)), status, headers)
