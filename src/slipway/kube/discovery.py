"""Which path an object of any kind has: the server is asked once for each group and version, and told apart by kind."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol

from slipway.kube import errors, paths
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object
from slipway.model.errors import StepError


class Get(Protocol):
    def __call__(self, path: str) -> Awaitable[Object]: ...


@dataclass(frozen=True)
class Resource:
    plural: str
    namespaced: bool


class Discovery:
    def __init__(self, get: Get, server: str) -> None:
        self._get = get
        self._server = server
        self._known: dict[str, dict[str, Resource]] = {}

    async def path(self, manifest: Object) -> str:
        """Of the one object that a manifest is about."""
        api_version, kind, metadata = _identity(manifest)
        resource = await self._resource(api_version, kind)
        name = metadata["name"]
        if resource.namespaced:
            return paths.namespaced(_group(api_version), metadata.get("namespace") or "default", resource.plural, name)
        return f"{_group(api_version)}/{resource.plural}/{paths.segment(name)}"

    async def _resource(self, api_version: str, kind: str) -> Resource:
        """A kind that was not there before may be by now: whoever installed it is likely us."""
        if kind not in self._known.get(api_version, {}):
            self._known[api_version] = await self._kinds(api_version, kind)
        if resource := self._known[api_version].get(kind):
            return resource
        raise errors.unknown_kind(api_version, kind, self._server)

    async def _kinds(self, api_version: str, kind: str) -> dict[str, Resource]:
        try:
            found = await self._get(_group(api_version))
        except KubeError as error:
            if error.status == 404:
                raise errors.unknown_kind(api_version, kind, self._server) from None
            raise
        return {
            entry["kind"]: Resource(entry["name"], bool(entry.get("namespaced")))
            for entry in found.get("resources") or []
            if "/" not in entry["name"]  # a subresource
        }


def _group(api_version: str) -> str:
    """ "v1" is the core's, all others have a group."""
    group, slash, version = api_version.partition("/")
    if slash:
        return f"/apis/{paths.segment(group)}/{paths.segment(version)}"
    return f"/api/{paths.segment(group)}"


def _identity(manifest: Object) -> tuple[str, str, dict[str, Any]]:
    api_version, kind, metadata = (manifest.get(key) for key in ("apiVersion", "kind", "metadata"))
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not (
        isinstance(api_version, str) and isinstance(kind, str) and isinstance(metadata, dict) and isinstance(name, str)
    ):
        raise StepError(
            "A Kubernetes manifest lacks apiVersion, kind or metadata.name.",
            cure="complete it; a name can't be generated.",
        )
    return api_version, kind, metadata
