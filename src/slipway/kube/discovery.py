"""Which kinds a server serves, under which paths: any kind, with no list of known ones.

    deployments = await api.discovery.resource("apps/v1", "Deployment")
    deployments.path("default", "web", "scale"); deployments.collection("default"); "scale" in deployments.subresources
    path = await api.discovery.path(manifest)

All groups come with one call (two with the core's) where the server has aggregated discovery (Kubernetes 1.27 and
newer), else each group and version is asked once. What is not known is asked for again: whoever brought its
CustomResourceDefinition is likely us.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from slipway.kube import errors, paths
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ref_of

MOST_RESOURCES = 20_000  # that are remembered; a large cluster has some hundred
MOST_VERSIONS = 2_000  # of groups, each of which is one call
NOT_FOR_US = (403, 404, 406)  # a proxy, or a server with half an API: each group is asked then
# v2beta1 is that of Kubernetes 1.27 to 1.29, and says the same.
AGGREGATED = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)


class Get(Protocol):
    def __call__(self, path: str, *, accept: str | None = None) -> Awaitable[Object]: ...


@dataclass(frozen=True)
class Resource:
    """A kind that the server serves."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()  # "scale", "status"

    @property
    def group(self) -> str:
        """ "" for the core's."""
        return self.api_version.rpartition("/")[0]

    def collection(self, namespace: str | None = None) -> str:
        """In all namespaces without one."""
        if self.namespaced and namespace:
            return paths.namespaced(paths.group(self.api_version), namespace, self.plural)
        return f"{paths.group(self.api_version)}/{self.plural}"

    def path(self, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """Of one object. A namespaced one without a namespace is in "default"."""
        found = f"{self.collection(namespace or 'default')}/{paths.segment(name)}"
        return f"{found}/{paths.segment(subresource)}" if subresource else found


class Discovery:
    """What one server serves, remembered for as long as this lives: one operation."""

    def __init__(self, get: Get, server: str) -> None:
        self._get = get
        self._server = server
        self._known: dict[tuple[str, str], Resource] = {}
        self._asked_for_all: set[str] = set()
        self._to_ask: list[str] = []  # groups and versions of a server that tells no more of them at once
        self._asking = asyncio.Lock()  # hundreds of objects that are applied at once ask once

    async def resource(self, api_version: str, kind: str) -> Resource:
        """KubeError (404) names a kind that is not served, and the versions that are."""
        if (api_version, kind) not in self._known:
            await self._learn(api_version, kind)
        if found := self._known.get((api_version, kind)):
            return found
        raise errors.unknown_kind(api_version, kind, self._server, await self._served_versions(api_version, kind))

    async def path(self, manifest: Object) -> str:
        """Of the one object that a manifest is about."""
        ref = ref_of(manifest)
        return (await self.resource(ref.api_version, ref.kind)).path(ref.namespace, ref.name)

    async def everything(self) -> tuple[Resource, ...]:
        """All that is served, but for groups that don't answer or are not for this user to see."""
        async with self._asking:
            for root in ("api", "apis"):
                await self._ask_for_all(root)
            while self._to_ask:
                try:
                    await self._ask_for(self._to_ask[-1])
                except KubeError as error:
                    if error.status is None or (error.status not in NOT_FOR_US and error.status < 500):
                        raise
                self._to_ask.pop()
        return tuple(self._known.values())

    def forget(self) -> None:
        """After a CustomResourceDefinition was changed or removed; a new kind is found without."""
        self._known.clear()
        self._asked_for_all.clear()
        self._to_ask.clear()

    async def _learn(self, api_version: str, kind: str) -> None:
        async with self._asking:
            if (api_version, kind) not in self._known:
                await self._ask_for_all(paths.group(api_version).split("/")[1])
            if (api_version, kind) not in self._known:
                await self._ask_for(api_version)

    async def _ask_for_all(self, root: str) -> None:
        """`root`: "api", the core's, or "apis"."""
        if root in self._asked_for_all:
            return
        try:
            answer = await self._get(f"/{root}", accept=AGGREGATED)
        except KubeError as error:
            if error.status not in NOT_FOR_US:
                raise
            answer = {}
        self._asked_for_all.add(root)
        if answer.get("kind") == "APIGroupDiscoveryList":
            self._remember(_aggregated(_read(answer, _GroupDiscoveries, self._server).items))
        elif root == "api":
            self._to_ask += _read(answer, _CoreVersions, self._server).versions
        else:
            groups = _read(answer, _Groups, self._server).groups
            self._to_ask += [version.name for group in groups for version in group.versions if version.name]
        if len(self._to_ask) > MOST_VERSIONS:
            raise errors.too_large(f"Discovery on {self._server}", f"{MOST_VERSIONS} versions of groups")

    async def _ask_for(self, api_version: str) -> None:
        answer = await self._get_or_none(paths.group(api_version))
        if answer is not None:
            self._remember(_listed(api_version, _read(answer, _ResourceList, self._server)))

    def _remember(self, found: Iterable[Resource]) -> None:
        for resource in found:
            if len(self._known) >= MOST_RESOURCES:
                raise errors.too_large(f"Discovery on {self._server}", f"{MOST_RESOURCES} kinds")
            self._known[resource.api_version, resource.kind] = resource

    async def _served_versions(self, api_version: str, kind: str) -> list[str]:
        """Those of the same group that have this kind, as "group/version"."""
        group, slash, _ = api_version.partition("/")
        if not slash:
            return []
        answer = await self._get_or_none(f"/apis/{paths.segment(group)}")
        for served in _read(answer or {}, _Group, self._server).versions[:20]:
            if (served.name, kind) not in self._known:
                await self._ask_for(served.name)
        return sorted(known for known, of_kind in self._known if of_kind == kind and known.startswith(f"{group}/"))

    async def _get_or_none(self, path: str) -> Object | None:
        try:
            return await self._get(path)
        except KubeError as error:
            if error.status == 404:
                return None
            raise


class _Kind(msgspec.Struct):
    version: str = ""
    kind: str = ""
    group: str = ""


class _Subresource(msgspec.Struct):
    subresource: str


class _ResourceDiscovery(msgspec.Struct):
    resource: str
    scope: str = ""
    verbs: list[str] = []
    response_kind: _Kind | None = msgspec.field(name="responseKind", default=None)
    subresources: list[_Subresource] = []


class _VersionDiscovery(msgspec.Struct):
    version: str
    resources: list[_ResourceDiscovery] = []


class _Metadata(msgspec.Struct):
    name: str = ""


class _GroupDiscovery(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    versions: list[_VersionDiscovery] = []


class _GroupDiscoveries(msgspec.Struct):
    items: list[_GroupDiscovery] = []


class _ListedResource(msgspec.Struct):
    name: str
    kind: str = ""
    namespaced: bool = False
    verbs: list[str] = []


class _ResourceList(msgspec.Struct):
    resources: list[_ListedResource] = []


class _GroupVersion(msgspec.Struct):
    name: str = msgspec.field(name="groupVersion", default="")


class _Group(msgspec.Struct):
    versions: list[_GroupVersion] = []


class _Groups(msgspec.Struct):
    groups: list[_Group] = []


class _CoreVersions(msgspec.Struct):
    versions: list[str] = []


def _aggregated(groups: Iterable[_GroupDiscovery]) -> Iterable[Resource]:
    for group in groups:
        for version in group.versions:
            api_version = f"{group.metadata.name}/{version.version}" if group.metadata.name else version.version
            for found in version.resources:
                if found.response_kind is not None:
                    yield Resource(
                        api_version,
                        found.response_kind.kind,
                        found.resource,
                        found.scope == "Namespaced",
                        frozenset(found.verbs),
                        frozenset(one.subresource for one in found.subresources),
                    )


def _listed(api_version: str, answer: _ResourceList) -> Iterable[Resource]:
    """A subresource is an entry of its own here: "deployments/scale"."""
    subresources: dict[str, set[str]] = {}
    for entry in answer.resources:
        plural, slash, subresource = entry.name.partition("/")
        if slash:
            subresources.setdefault(plural, set()).add(subresource)
    for entry in answer.resources:
        if "/" not in entry.name:
            names = frozenset(subresources.get(entry.name, ()))
            yield Resource(api_version, entry.kind, entry.name, entry.namespaced, frozenset(entry.verbs), names)


def _read(answer: Object, kind: type[Any], server: str) -> Any:
    """Null stands for an empty list, as Go writes it."""
    try:
        return msgspec.convert(_without_null(answer), kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise KubeError(
            f"Discovery on {server}: the answer is not one of Kubernetes: {errors.short(str(error))}"
        ) from None


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(one) for key, one in value.items() if one is not None}
    return [_without_null(one) for one in value] if isinstance(value, list) else value
