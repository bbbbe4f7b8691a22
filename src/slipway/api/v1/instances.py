"""VNF instances and the operations on them, in v1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

import msgspec
from litestar.response.base import ASGIResponse
from sqlalchemy import Connection

from slipway.api.links import Links, linked
from slipway.api.request_body import PATCH_TYPES, Body
from slipway.api.responses import json_response, to_redacted_json
from slipway.api.routing import AnyRequest, Handler, caller_of
from slipway.api.services import Services
from slipway.api.v1 import documents
from slipway.api.v1.instance_filters import in_the_core
from slipway.api.v1.listing import Documents, TranslatedListing
from slipway.api.v1.requests import OPERATIONS, CreateVnfRequest, VnfInfoModificationRequest
from slipway.api.v1.vim_connections import V1VimConnection, check_type
from slipway.api.v2.instances import InstanceRoutes
from slipway.model.errors import BadRequest, NotFound, RequestError, Unprocessable
from slipway.model.instance import Instance
from slipway.model.operation import OperationType
from slipway.model.requests import AnyRequest as OperationRequest
from slipway.model.requests import ModifyRequest
from slipway.model.vim import Vim
from slipway.store import instances, packages, tables, vims

_decode = msgspec.json.Decoder().decode


class InstanceRoutesV1(InstanceRoutes):
    """v1 has no 422: what a body names and can't be used is a 404 when a VNF is created, and a 400 later on."""

    actions: ClassVar = {kind.value.lower(): kind for kind in OPERATIONS}
    creation: ClassVar = Body(CreateVnfRequest, strict=False)
    modification: ClassVar = Body(VnfInfoModificationRequest, PATCH_TYPES, strict=False)
    bodies: ClassVar = {kind: Body(request, strict=False) for kind, request in OPERATIONS.items()}
    shape: ClassVar = documents.VnfInstanceOfV1
    without_package = 404

    def __init__(self, services: Services, links: Links) -> None:
        super().__init__(services, links)
        self._list = TranslatedListing(
            services.database,
            services.page_size,
            tables.instances,
            links.instances,
            links.instance,
            translate=_translated,
            ask=in_the_core,
        )

    async def create(self, request: AnyRequest) -> ASGIResponse:
        body = (await self.creation.read(request)).translated()
        with _instead_of_422(NotFound):
            instance = await self._lcm.create_instance(body, caller_of(request).home)
        return await self._shown(instance, 201, {"Location": f"{self._links.instances}/{instance.vnf.id}"})

    async def show(self, request: AnyRequest) -> ASGIResponse:
        instance = await self._database.read_one(instances.get, request.path_params["id"])
        return await self._shown(instance, 200, {})

    async def modify(self, request: AnyRequest) -> ASGIResponse:
        asked = await self.modification.read(request)
        body = await self._database.read(_modification, asked, request.path_params["id"])
        return await self._begin(request, OperationType.MODIFY_INFO, body, await self._expected(request))

    def _action(self, kind: OperationType) -> Handler:
        body = self.bodies[kind]

        async def begin(request: AnyRequest) -> ASGIResponse:
            asked = await body.read(request)
            if named := [one for one in getattr(asked, "vim_connection_info", None) or () if one.vim_id]:
                await self._database.read(_check_types, named, request.path_params["id"])
            return await self._begin(request, kind, asked.translated(), None)

        return begin

    async def _begin(
        self, request: AnyRequest, kind: OperationType, body: OperationRequest, if_version: int | None
    ) -> ASGIResponse:
        with _instead_of_422(BadRequest):
            return await super()._begin(request, kind, body, if_version)

    async def _shown(self, instance: Instance, status: int, headers: dict[str, str]) -> ASGIResponse:
        document = to_redacted_json(instance.vnf)
        package_id = await self._database.read_one(packages.id_of, instance.vnf.vnfd_id, instance.project)
        headers["ETag"] = f'"{instance.version}"'
        body = msgspec.json.encode(documents.instance(_decode(document), package_id))
        return json_response(linked(body, self._links.instance(document)), status, headers)


def _translated(connection: Connection, found: Documents) -> Documents:
    package_ids = packages.ids_for(connection, {one["id"] for one in found})
    return [documents.instance(one, package_ids.get(one["id"])) for one in found]


def _modification(connection: Connection, body: VnfInfoModificationRequest, instance_id: str) -> ModifyRequest:
    project = instances.get(connection, instance_id).project

    def vnfd_of(package_id: str) -> str:
        with _named("vnfPkgId"):
            if vnfd_id := packages.get(connection, package_id, project).vnfd_id:
                return vnfd_id
        raise BadRequest(f"vnfPkgId: VNF package {package_id} is not onboarded.")

    def vim_of(vim_id: str) -> Vim:
        with _named("vimConnectionInfo.vimId"):
            return vims.get_by_name(connection, vim_id, project)

    return body.translated(vnfd_of, vim_of)


def _check_types(connection: Connection, named: Sequence[V1VimConnection], instance_id: str) -> None:
    project = instances.get(connection, instance_id).project
    for one in named:
        with _named(f"vimConnectionInfo.{one.id}.vimId"):
            check_type(one, vims.get_by_name(connection, one.vim_id or "", project))


@contextmanager
def _named(attribute: str) -> Iterator[None]:
    """What a body names and isn't there is the body's mistake."""
    try:
        yield
    except NotFound as error:
        raise BadRequest(f"{attribute}: {error.detail}") from None


@contextmanager
def _instead_of_422(kind: type[RequestError]) -> Iterator[None]:
    try:
        yield
    except Unprocessable as error:
        raise kind(error.detail) from None
