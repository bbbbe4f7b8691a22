"""A Kubernetes API server, asked over HTTPS: straight, or through a UNIX socket that SSH forwards.

    async with Api(from_kubeconfig(text), socket=path) as api:
        await api.apply(manifest)
        nodes = await api.list("/api/v1/nodes")

Nothing is tried twice in here, for only the step knows what may be: a temporary KubeError says that the engine may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from slipway.kube import errors
from slipway.kube.credentials import Credentials, tls
from slipway.kube.discovery import Discovery
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, Objects, PatchKind
from slipway.model.errors import OutgoingRequestError
from slipway.model.json_documents import has_more_values
from slipway.outgoing.guard import Guard
from slipway.outgoing.handshake import closed_if_cancelled

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

TIMEOUT = 30.0  # seconds for one call, from its turn to the last byte
AT_ONCE = 8  # calls; others wait for their turn
LARGEST = 32 << 20  # bytes of one answer
LARGEST_GUARDED = 4 << 20  # of a cluster that a user registered: it may send anything
MOST_VALUES = 4_000_000  # of one answer, keys included
MOST_VALUES_GUARDED = 250_000
MOST_NAMES = 10_000
DECODED_AT_ONCE = 1 << 16  # bytes; what is larger is decoded beside the event loop
PAGE = 500
PAGE_OF_NAMES = 100  # whole objects come: a node with its images has some ten thousand bytes
PAGES = 1000
PAGES_GUARDED = 100
FIELD_MANAGER = "slipway"
JSON = "application/json"
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


class _Metadata(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata | None = None


class _ListMetadata(msgspec.Struct):
    following: str = msgspec.field(name="continue", default="")


class _Names(msgspec.Struct):
    """A list of which nothing is kept but the names."""

    items: list[_Named] | None = None
    metadata: _ListMetadata | None = None


class Api:
    def __init__(
        self,
        credentials: Credentials,
        *,
        socket: Path | None = None,
        server_name: str | None = None,
        guard: Guard | None = None,
        token: Callable[[], Awaitable[str]] | None = None,
        timeout: float = TIMEOUT,
        largest: int | None = None,
    ) -> None:
        """`socket`: leads to the server in place of its address. `server_name`: what its certificate must be for.

        `guard`: for an address that a user gave. `token`: asked before each call, for one that ends soon.
        """
        self._credentials = credentials
        self._socket = socket
        self._guard = guard
        self._server_name = server_name or credentials.server_name
        self._token = token
        self._timeout = timeout
        self._largest = largest or (LARGEST if guard is None else LARGEST_GUARDED)
        self._most_values = MOST_VALUES if guard is None else MOST_VALUES_GUARDED
        self._most_pages = PAGES if guard is None else PAGES_GUARDED
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._discovery = Discovery(self.get, credentials.server)
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        import httpx  # a tenth of a second that no start of the server should pay

        who = self._credentials.authorization
        self._client = httpx.AsyncClient(
            base_url=self._credentials.server,
            transport=self._transport(),
            headers={"User-Agent": FIELD_MANAGER, "Accept-Encoding": "identity"}
            | ({"Authorization": who} if who else {}),
            timeout=None,  # noqa: S113 - ours is around everything
            trust_env=False,  # no proxy, no .netrc
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client:
            await client.aclose()

    def _transport(self) -> httpx.AsyncBaseTransport:
        import httpx

        context = tls(self._credentials)
        if self._guard is not None:
            return self._guard.transport(verify=context)
        # Their number is bounded by the turns. httpx must not count as well: a cancelled call may keep its place for
        # ever, and eight of them would end all calls. Such a connection is closed with the others, when we leave.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=AT_ONCE)
        path = str(self._socket) if self._socket else None
        return httpx.AsyncHTTPTransport(verify=context, uds=path, limits=limits)

    async def get(self, path: str, **query: str) -> Object:
        return await self._json("GET", path, query)

    async def list(self, path: str, **query: str) -> Objects:
        try:
            return await self._pages(path, query)
        except KubeError as error:
            if error.status != 410:
                raise
        return await self._pages(path, query)  # what its pages were cut from is too old by now: once more, from now

    async def names(self, path: str) -> Sequence[str]:
        """Of the objects in a list; the first MOST_NAMES."""
        found: Sequence[str] = ()
        query = {"limit": str(PAGE_OF_NAMES)}
        for _ in range(self._most_pages):
            page = await self._read(_Names, "GET", path, query)
            found = [*found, *(item.metadata.name if item.metadata else "" for item in page.items or ())][:MOST_NAMES]
            following = page.metadata.following if page.metadata else ""
            if not following or len(found) >= MOST_NAMES:
                break
            query["continue"] = following
        return found

    async def text(self, path: str) -> str:
        return (await self._call("GET", path)).decode(errors="replace")

    async def create(self, path: str, body: Object) -> Object:
        return await self._json("POST", path, {"fieldManager": FIELD_MANAGER}, body)

    async def apply(self, manifest: Object) -> Object:
        path = await self._discovery.path(manifest)
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._json("PATCH", path, query, manifest, "application/apply-patch+yaml")

    async def patch(self, path: str, body: Object | Objects, kind: PatchKind = "merge") -> Object:
        return await self._json("PATCH", path, {"fieldManager": FIELD_MANAGER}, body, PATCHES[kind])

    async def delete(self, path: str, uid: str | None = None, grace: int | None = None) -> None:
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            await self._call("DELETE", path, body=options)
        except KubeError as error:
            if error.status != 404 and not (uid is not None and error.status == 409):
                raise

    async def _pages(self, path: str, query: dict[str, str]) -> Objects:
        items: Objects = []
        query = {"limit": str(PAGE), **query}
        for _ in range(self._most_pages):
            page = await self._json("GET", path, query)
            items += page.get("items") or []
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return items
            query["continue"] = following
        raise errors.too_large(self._asked("GET", path), f"{self._most_pages} pages")

    async def _json(
        self, verb: str, path: str, query: dict[str, str] | None = None, body: Any = None, content_type: str = JSON
    ) -> Object:
        return await self._read(dict[str, Any], verb, path, query, body, content_type)

    async def _read(
        self,
        kind: type[T],
        verb: str,
        path: str,
        query: dict[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> T:
        """An answer as this type. A large one is decoded in a thread, and one of too many values not at all."""
        answer = await self._call(verb, path, query, body, content_type)
        try:
            if len(answer) <= DECODED_AT_ONCE:
                return msgspec.json.decode(answer, type=kind)
            if await asyncio.to_thread(has_more_values, answer, self._most_values):
                raise errors.too_large(self._asked(verb, path), f"{self._most_values} values")
            return await asyncio.to_thread(msgspec.json.decode, answer, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise errors.not_kubernetes(self._asked(verb, path), answer) from None

    async def _call(
        self, verb: str, path: str, query: dict[str, str] | None = None, body: Any = None, content_type: str = JSON
    ) -> bytes:
        import httpx

        asked = self._asked(verb, path)
        token = await self._token() if self._token else None
        async with self._turns:
            try:
                async with asyncio.timeout(self._timeout):
                    status, answer = await self._exchange(verb, path, query, body, content_type, token)
            except TimeoutError:
                raise errors.too_slow(asked, self._timeout) from None
            except OutgoingRequestError as error:
                raise KubeError(f"{asked}: {error.detail}", temporary=error.temporary) from None
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                raise errors.unreachable(asked, error) from None
        if not 200 <= status < 300:
            secrets = [*self._credentials.secrets, *([token] if token else []), *errors.secrets_of(body)]
            raise errors.refused(asked, status, answer, secrets)
        return answer

    async def _exchange(
        self, verb: str, path: str, query: dict[str, str] | None, body: Any, content_type: str, token: str | None
    ) -> tuple[int, bytes]:
        """One request. An answer without end is cut off, and told."""
        if self._client is None:
            raise RuntimeError("Api is used outside of its context.")
        content = None if body is None else msgspec.json.encode(body)
        headers = {"Accept": JSON} | ({"Content-Type": content_type} if content is not None else {})
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        name = {"sni_hostname": self._server_name} if self._server_name else {}
        taken = bytearray()
        async with (
            closed_if_cancelled() as trace,
            self._client.stream(
                verb, path, params=query or None, content=content, headers=headers, extensions={"trace": trace, **name}
            ) as response,
        ):
            if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
                raise errors.packed(self._asked(verb, path))
            async for chunk in response.aiter_raw():
                taken += chunk
                if len(taken) > self._largest:
                    raise errors.too_large(self._asked(verb, path), f"{self._largest} bytes")
        return response.status_code, bytes(taken)

    def _asked(self, verb: str, path: str) -> str:
        return errors.short(f"{verb} {path} on {self._credentials.server}")
