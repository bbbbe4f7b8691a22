"""`/v1.0/vims`, as the peer's command line speaks it: the same VIMs in other words, and proved before they are kept."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse
from msgspec import UNSET, Meta, UnsetType

from slipway.api.legacy_credentials import access_of, access_patch, auth_cred_of, interface_of, vim_project_of
from slipway.api.legacy_documents import (
    AllVims,
    LegacyCollection,
    LegacyResources,
    LegacyVersion,
    LegacyVersions,
    Link,
    OneVim,
)
from slipway.api.request_body import Body
from slipway.api.response_schema import json_of
from slipway.api.responses import empty_response, json_response
from slipway.api.routing import BY_HANDLER, DELETE, GET, POST, PUT, AnyRequest, caller_of, read_query, route
from slipway.api.services import Services
from slipway.model.errors import BadRequest, VimError
from slipway.model.requests import Name, Text
from slipway.model.secrets import redact
from slipway.model.vim import OPENSTACK, SHORT_TYPES, Vim
from slipway.vim_registry.registry import VimRequest

ROOT = "/v1.0"
VIMS = f"{ROOT}/vims"
SUFFIX = ".json"
LIST_PARAMETERS = ("id", "name", "fields")

Filled = Annotated[dict[str, Any], Meta(min_length=1)]
_LONG_TYPES = {full: short for short, full in SHORT_TYPES.items()}


class Registration(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """`tenant_id` is read and not used: whose a VIM is, the token says."""

    name: Name
    auth_url: Name
    auth_cred: Filled
    vim_project: Filled
    type: Name = "openstack"
    description: Text | None = None
    is_default: bool = False
    extra: dict[str, Any] | None = None
    tenant_id: str | None = None


class VimChange(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    name: Name | UnsetType = UNSET
    auth_cred: Filled | UnsetType = UNSET
    vim_project: Filled | UnsetType = UNSET
    description: Text | UnsetType | None = UNSET
    is_default: bool | UnsetType = UNSET
    extra: dict[str, Any] | UnsetType | None = UNSET
    tenant_id: str | None = None


class WrappedRegistration(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    vim: Registration


class WrappedChange(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    vim: VimChange


_register = Body(WrappedRegistration)
_change = Body(WrappedChange)


class LegacyVimRoutes:
    def __init__(self, services: Services) -> None:
        self._vims = services.vims
        base = services.base_url.rstrip("/")
        version = LegacyVersion("v1.0", "CURRENT", (Link(f"{base}{ROOT}/", "self"),))
        vims = LegacyCollection("vim", "vims", (Link(f"{base}{VIMS}", "self"),))
        self._versions = msgspec.json.encode(LegacyVersions((version,)))
        self._resources = msgspec.json.encode(LegacyResources((vims,)))

    def routes(self) -> list[HTTPRouteHandler]:
        one = f"{VIMS}/{{name:str}}"  # a suffix is part of it
        own = partial(route, table=BY_HANDLER)
        both, several = (VIMS, VIMS + SUFFIX), {200: json_of(AllVims)}
        return [
            route(GET, "/", self.versions, responses={200: json_of(LegacyVersions)}),
            route(GET, ROOT, self.resources, responses={200: json_of(LegacyResources)}),
            *(
                route(POST, path, self.register, request_body=_register, responses={201: json_of(OneVim)})
                for path in both
            ),
            *(route(GET, path, self.list, parameters=LIST_PARAMETERS, responses=several) for path in both),
            own(GET, one, self.show, parameters=("fields",), responses={200: json_of(OneVim)}),
            own(PUT, one, self.change, request_body=_change, responses={200: json_of(OneVim)}, errors=(502,)),
            own(DELETE, one, self.remove),
        ]

    async def versions(self, request: AnyRequest) -> ASGIResponse:
        return json_response(self._versions)

    async def resources(self, request: AnyRequest) -> ASGIResponse:
        return json_response(self._resources)

    async def register(self, request: AnyRequest) -> ASGIResponse:
        wanted = translated((await _register.read(request)).vim)
        try:
            vim = await self._vims.add(wanted, prove=True, by=caller_of(request))
        except VimError as error:
            raise BadRequest(error.detail) from None
        return _one(vim, 201)

    async def list(self, request: AnyRequest) -> ASGIResponse:
        query = read_query(request, LIST_PARAMETERS)
        found = await self._vims.all(vim_id=query.get("id"), name=query.get("name"), project=caller_of(request).project)
        fields = _fields(query)
        return json_response(msgspec.json.encode({"vims": [_cut(to_legacy(vim), fields) for vim in found]}))

    async def show(self, request: AnyRequest) -> ASGIResponse:
        fields = _fields(read_query(request, ("fields",)))
        return _one(await self._vims.get(_name(request), caller_of(request).project), fields=fields)

    async def change(self, request: AnyRequest) -> ASGIResponse:
        change = (await _change.read(request)).vim
        vim = await self._vims.get(_name(request), caller_of(request).project)
        try:
            vim = await self._vims.modify(vim.id, patch_of(vim, change), prove=True, by=caller_of(request))
        except VimError as error:
            raise BadRequest(error.detail) from None
        return _one(vim)

    async def remove(self, request: AnyRequest) -> ASGIResponse:
        vim = await self._vims.get(_name(request), caller_of(request).project)
        await self._vims.remove(vim.id, by=caller_of(request))
        return empty_response(204)


def translated(given: Registration) -> VimRequest:
    vim_type = SHORT_TYPES.get(given.type, given.type)
    return VimRequest(
        name=given.name,
        vim_type=vim_type,
        description=given.description or None,
        is_default=given.is_default,
        interface_info={"endpoint": _endpoint(vim_type, given.auth_url), **interface_of(given.auth_cred)},
        access_info=access_of(vim_type, given.auth_cred, given.vim_project),
        extra=given.extra or {},
    )


def patch_of(vim: Vim, change: VimChange) -> dict[str, Any]:
    """As a merge patch on our document. `extra` is replaced as a whole: what is left out becomes null."""
    patch: dict[str, Any] = {}
    if change.name is not UNSET:
        patch["name"] = change.name
    if change.description is not UNSET:
        patch["description"] = change.description or None
    if change.is_default is not UNSET:
        patch["isDefault"] = change.is_default
    if change.extra is not UNSET:
        patch["extra"] = dict.fromkeys(vim.extra) | (change.extra or {})
    auth_cred = {} if change.auth_cred is UNSET else change.auth_cred
    vim_project = {} if change.vim_project is UNSET else change.vim_project
    if interface := interface_of(auth_cred):
        patch["interfaceInfo"] = interface
    if access := access_patch(vim.vim_type, access_of(vim.vim_type, auth_cred, vim_project)):
        patch["accessInfo"] = access
    return patch


def to_legacy(vim: Vim) -> dict[str, Any]:
    return {
        "id": vim.id,
        "tenant_id": vim.project,
        "name": vim.name,
        "description": vim.description or "",
        "type": _LONG_TYPES.get(vim.vim_type, vim.vim_type),
        "auth_url": vim.interface_info.get("endpoint", ""),
        "auth_cred": auth_cred_of(vim),
        "vim_project": vim_project_of(vim),
        "is_default": vim.is_default,
        "status": "ACTIVE",
        "placement_attr": {"regions": list(vim.regions)},
        "extra": redact(vim.extra),
        "created_at": vim.created_at,
        "updated_at": None,
    }


def _endpoint(vim_type: str, auth_url: str) -> str:
    """Keystone's address with its version; people write it with and without."""
    plain = auth_url.rstrip("/")
    return plain if vim_type != OPENSTACK or plain.endswith("/v3") else f"{plain}/v3"


def _one(vim: Vim, status: int = 200, fields: frozenset[str] = frozenset()) -> ASGIResponse:
    return json_response(msgspec.json.encode({"vim": _cut(to_legacy(vim), fields)}), status)


def _cut(document: dict[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key in fields} if fields else document


def _fields(query: dict[str, str]) -> frozenset[str]:
    return frozenset(name for name in query.get("fields", "").split(",") if name)


def _name(request: AnyRequest) -> str:
    return str(request.path_params["name"]).removesuffix(SUFFIX)
