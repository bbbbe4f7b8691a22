"""What the rest of Slipway asks of a Kubernetes API. A real one answers, or a simulated one in its place.

Paths begin with a slash, as `slipway.kube.paths` makes them. Whatever goes wrong is a KubeError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

Object = dict[str, Any]
Objects = list[Object]
PatchKind = Literal["merge", "strategic", "json"]
ReportProgress = Callable[[str], None]  # progress, for people


class KubeApi(Protocol):
    async def get(self, path: str, **query: str) -> Object: ...

    async def list(self, path: str, **query: str) -> Objects:
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

    async def delete(self, path: str, uid: str | None = None, grace: int | None = None) -> None:
        """No error when it is not there, nor when another one with that name is (`uid` differs)."""
        ...
