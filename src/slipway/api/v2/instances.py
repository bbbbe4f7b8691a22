"""VNF instances and the operations on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from slipway.api.links import Links, linked
from slipway.api.listing import Listing
from slipway.api.request_body import PATCH_TYPES, Body
from slipway.api.response_schema import ACCEPTED, page_of, resource
from slipway.api.responses import empty_response, json_response, redact_json, to_redacted_json
from slipway.api.routing import DELETE, GET, PATCH, POST, AnyRequest, Handler, caller_of, route
from slipway.api.services import Services
from slipway.lcm.operations import OPERATIONS
from slipway.model.errors import PreconditionFailed
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


class InstanceRoutes:
    """Version 2; `v1/instances.py` translates version 1 into it."""

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
        own = partial(route, table=tables.instances)
        begun = partial(own, responses={202: ACCEPTED})
        return [
            route(
                POST,
                all_of_them,
                self.create,
                request_body=self.creation,
                responses={201: resource(self.shape, "Location", "ETag")},
                errors=(self.without_package,),
            ),
            route(GET, all_of_them, self._list, parameters=self._list.parameters, responses={200: page_of(self.shape)}),
            own(GET, one, self.show, responses={200: resource(self.shape, "ETag")}),
            begun(PATCH, one, self.modify, request_body=self.modification, headers=("If-Match",), errors=(412,)),
            own(DELETE, one, self.delete),
            *(
                begun(POST, f"{one}/{action}", self._action(kind), request_body=self.bodies[kind])
                for action, kind in self.actions.items()
            ),
        ]

    async def create(self, request: AnyRequest) -> ASGIResponse:
        instance = await self._lcm.create_instance(await self.creation.read(request), caller_of(request).home)
        return await self._shown(instance, 201, {"Location": f"{self._links.instances}/{instance.vnf.id}"})

    async def show(self, request: AnyRequest) -> ASGIResponse:
        stored, version = await self._database.read_one(instances.stored, request.path_params["id"])
        return self._whole(redact_json(stored.encode()), version, 200, {})

    async def modify(self, request: AnyRequest) -> ASGIResponse:
        body = await self.modification.read(request)
        return await self._begin(request, OperationType.MODIFY_INFO, body, await self._expected(request))

    async def delete(self, request: AnyRequest) -> ASGIResponse:
        await self._lcm.delete_instance(request.path_params["id"])
        return empty_response(204)

    def _action(self, kind: OperationType) -> Handler:
        body = self.bodies[kind]

        async def begin(request: AnyRequest) -> ASGIResponse:
            return await self._begin(request, kind, await body.read(request), None)

        return begin

    async def _begin(
        self, request: AnyRequest, kind: OperationType, body: OperationRequest, if_version: int | None
    ) -> ASGIResponse:
        operation = await self._lcm.start_operation(kind, request.path_params["id"], body, if_version=if_version)
        return empty_response(202, f"{self._links.operations}/{operation.id}")

    async def _expected(self, request: AnyRequest) -> int | None:
        if (condition := request.headers.get("if-match")) is None:
            return None
        _, version = await self._database.read_one(instances.stored, request.path_params["id"])
        return _expected_version(condition, version)

    async def _shown(self, instance: Instance, status: int, headers: dict[str, str]) -> ASGIResponse:
        return self._whole(to_redacted_json(instance.vnf), instance.version, status, headers)

    def _whole(self, document: bytes, version: int, status: int, headers: dict[str, str]) -> ASGIResponse:
        headers["ETag"] = f'"{version}"'
        return json_response(linked(document, self._links.instance(document)), status, headers)


def _expected_version(condition: str, current: int) -> int | None:
    """If-Match: the version that a change must find; None when any will do. PreconditionFailed when it is another."""
    if condition.strip() == "*":
        return None
    if f'"{current}"' in {tag.strip() for tag in condition.split(",")}:
        return current
    raise PreconditionFailed(f'If-Match: the resource was changed; its ETag is now "{current}". Read it again.')
