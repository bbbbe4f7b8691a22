"""What the rest of Slipway asks of a Kubernetes API. A real one answers, or a simulated one in its place.

Paths begin with a slash, as `slipway.kube.paths` makes them. Whatever goes wrong is a KubeError.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import msgspec

from slipway.kube.errors import KubeError
from slipway.model.errors import StepError

if TYPE_CHECKING:
    from slipway.kube.discovery import Discovery

Object = dict[str, Any]
Objects = list[Object]
PatchKind = Literal["merge", "strategic", "json"]
Propagation = Literal["Background", "Foreground", "Orphan"]
ReportProgress = Callable[[str], None]  # progress, for people


@dataclass(frozen=True, order=True)
class ObjectRef:
    """The name of one object. `namespace` is None for kinds that have none, or when the manifest does not say."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class KubeApi(Protocol):
    async def get(self, path: str, *, metadata_only: bool = False, **query: str) -> Object:
        """`metadata_only`: of an object or of a list, all but the metadata stays on the server."""
        ...

    async def list(self, path: str, *, metadata_only: bool = False, **query: str) -> Objects:
        """Every item, however many pages the server makes of them."""
        ...

    async def text(self, path: str) -> str:
        """For what answers with plain text, such as /readyz."""
        ...

    async def create(self, path: str, body: Object) -> Object:
        """`path` is that of the collection, or of a subresource such as `eviction` or `token`."""
        ...

    async def apply(self, manifest: Object) -> Object:
        """Make it so, whether it is there or not. Fields that the manifest does not name stay as others left them."""
        ...

    async def patch(self, path: str, body: Object | Objects, kind: PatchKind = "merge") -> Object: ...

    async def delete(
        self, path: str, uid: str | None = None, grace: int | None = None, *, version: str | None = None
    ) -> None:
        """No error when it is not there, nor when another one with that name is (`uid` differs).

        `version`: the resourceVersion that it was seen with; where it has changed since, that is a 409.
        """
        ...


class ObjectApi(KubeApi, Protocol):
    """And what it takes to keep objects of any kind: `apply.py`, `deletion.py`, `watch.py`, `owners.py` use it."""

    @property
    def discovery(self) -> Discovery: ...

    async def server_side_apply(self, path: str, manifest: Object, *, force: bool = False) -> Object:
        """Without `force`, a field that another manager has set to another value is a 409, with its causes."""
        ...

    def watch(self, path: str, *, metadata_only: bool = False, **query: str) -> AsyncGenerator[Object, None]:
        """One connection's events, `{"type": ..., "object": ...}`, until the server ends it. Close it (`aclosing`)."""
        ...

    async def delete(
        self,
        path: str,
        uid: str | None = None,
        grace: int | None = None,
        propagation: Propagation = "Background",
        *,
        version: str | None = None,
    ) -> None: ...


class _Metadata(msgspec.Struct, rename="camel"):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
    uid: str = ""  # an API server in memory, as tests of Cluster API have, gives none
    namespace: Annotated[str, msgspec.Meta(max_length=253)] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[dict[str, Any]] | None = None
    finalizers: list[str] | None = None
    managed_fields: list[dict[str, Any]] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata


def are_objects(found: Any) -> bool:
    """Whether a server's answer is a list of objects: one that is not Kubernetes' may send anything in their place."""
    try:
        msgspec.convert(found, list[_Object])
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


def uid_of(found: Object) -> str:
    """KubeError when the server gave it none: nobody could tell it from another one of its name."""
    uid = found["metadata"].get("uid")
    if not isinstance(uid, str) or not uid:
        raise KubeError(
            f"{found.get('kind') or 'The object'} {found['metadata'].get('name')} has no metadata.uid.",
            cure="a Kubernetes API server gives each object one; see which server this is.",
        )
    return uid


def list_metadata(page: Object) -> Object:
    """Of a page of a list, or a bookmark: how it goes on, and the version that it is of."""
    metadata = page.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def ref_of(manifest: Object) -> ObjectRef:
    """StepError when it lacks what names an object."""
    api_version, kind, metadata = (manifest.get(key) for key in ("apiVersion", "kind", "metadata"))
    name, namespace = (metadata.get(key) if isinstance(metadata, dict) else None for key in ("name", "namespace"))
    if not (isinstance(api_version, str) and isinstance(kind, str) and isinstance(name, str)) or not (
        namespace is None or isinstance(namespace, str)
    ):
        raise StepError(
            "A Kubernetes manifest lacks apiVersion, kind or metadata.name.",
            cure="complete it; a name can't be generated.",
        )
    return ObjectRef(api_version, kind, name, namespace or None)
