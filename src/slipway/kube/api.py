"""A Kubernetes API server, asked over HTTPS: straight, or through a UNIX socket that SSH forwards.

    async with Api(from_kubeconfig(text), socket=path) as api:
        await api.apply(manifest)
        nodes = await api.list("/api/v1/nodes")

Nothing is tried twice in here, for only the step knows what may be: a temporary KubeError says that the engine may.
The one exception is a 401, after which the credentials are renewed once, if somebody can (`renew`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from slipway.kube import errors
from slipway.kube.credentials import Credentials, tls
from slipway.kube.discovery import Discovery
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, Objects, PatchKind, Propagation, are_objects, list_metadata
from slipway.kube.name_list import NameList
from slipway.kube.pages import MOST_LISTED_GUARDED, PAGE, PAGES, PAGES_GUARDED, PageSize
from slipway.model.errors import OutgoingRequestError
from slipway.model.json_documents import has_more_values, memory_of
from slipway.outgoing.guard import Guard
from slipway.outgoing.handshake import closed_if_cancelled

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

TIMEOUT = 30.0  # seconds for one call, from its turn to the last byte
WATCH_SECONDS = 300  # after which the server is to end a watch
WATCH_IDLE = 90.0  # seconds without a word: a watch has at least a bookmark every minute
AT_ONCE = 8  # calls; others wait for their turn
LARGEST = 32 << 20  # bytes of one answer
LARGEST_GUARDED = 4 << 20  # of a cluster that a user registered: it may send anything
MOST_VALUES = 4_000_000  # of one answer, keys included
MOST_VALUES_GUARDED = 250_000
MOST_NAMES = 10_000
DECODED_AT_ONCE = 1 << 16  # bytes; what is larger is decoded beside the event loop
PAGE_OF_NAMES = 100  # whole objects come: a node with its images has some ten thousand bytes
FIELD_MANAGER = "slipway"
JSON = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


class Api:
    def __init__(
        self,
        credentials: Credentials,
        *,
        socket: Path | None = None,
        server_name: str | None = None,
        guard: Guard | None = None,
        token: Callable[[], Awaitable[str]] | None = None,
        renew: Callable[[], Awaitable[Credentials]] | None = None,
        timeout: float = TIMEOUT,
        watch_idle: float = WATCH_IDLE,
        largest: int | None = None,
    ) -> None:
        """`socket`: leads to the server in place of its address. `server_name`: what its certificate must be for.

        `guard`: for an address that a user gave. `token`: asked before each call, for one that ends soon. `renew`:
        asked after a 401, for newer credentials; what was refused is then asked once more.
        """
        self._credentials = credentials
        self._socket = socket
        self._guard = guard
        self._server_name = server_name or credentials.server_name
        self._token = token
        self._renew = renew
        self._renewals = 0
        self._renewing = asyncio.Lock()
        self._timeout, self._watch_idle = timeout, watch_idle
        self._largest = largest or (LARGEST if guard is None else LARGEST_GUARDED)
        self._most_values = MOST_VALUES if guard is None else MOST_VALUES_GUARDED
        self._most_pages = PAGES if guard is None else PAGES_GUARDED
        self._most_listed = None if guard is None else MOST_LISTED_GUARDED
        self._listed = 0
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._discovery = Discovery(self._get_as, credentials.server)
        self._client: httpx.AsyncClient | None = None
        self._former: list[httpx.AsyncClient] = []  # with credentials that were renewed; watches may still use them

    async def __aenter__(self) -> Self:
        self._client = self._new_client()
        return self

    def _new_client(self) -> httpx.AsyncClient:
        import httpx  # a tenth of a second that no start of the server should pay

        who = self._credentials.authorization
        return httpx.AsyncClient(
            base_url=self._credentials.server,
            transport=self._transport(),
            headers={"User-Agent": FIELD_MANAGER, "Accept-Encoding": "identity"}
            | ({"Authorization": who} if who else {}),
            timeout=None,  # noqa: S113 - ours is around everything
            trust_env=False,  # no proxy, no .netrc
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        clients, self._client, self._former = [self._client, *self._former], None, []
        for client in clients:
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

    @property
    def discovery(self) -> Discovery:
        return self._discovery

    async def get(self, path: str, *, metadata_only: bool = False, **query: str) -> Object:
        partial = METADATA_LIST if "limit" in query else METADATA  # a server takes the first that it knows, fit or not
        return await self._get_as(path, accept=partial if metadata_only else None, **query)

    async def _get_as(self, path: str, *, accept: str | None = None, **query: str) -> Object:
        """In the form that is wanted, if the server has it."""
        return await self._read(dict[str, Any], "GET", path, query, accept=_or_json(accept))

    async def list(self, path: str, *, metadata_only: bool = False, **query: str) -> Objects:
        try:
            return await self._pages(path, query, metadata_only)
        except KubeError as error:
            if error.status != 410:
                raise
        # What its pages were cut from is too old by now: once more, from now.
        return await self._pages(path, query, metadata_only)

    async def names(self, path: str) -> Sequence[str]:
        """Of the objects in a list; the first MOST_NAMES."""
        found: Sequence[str] = ()
        size, query = PageSize(PAGE_OF_NAMES), dict[str, str]()
        for _ in range(self._most_pages):
            page = await size.ask(lambda limit: self._read(NameList, "GET", path, {"limit": limit, **query}))
            found = [*found, *page.names][:MOST_NAMES]
            if not page.following or len(found) >= MOST_NAMES:
                break
            query["continue"] = page.following
        return found

    async def text(self, path: str) -> str:
        return (await self._call("GET", path)).decode(errors="replace")

    async def create(self, path: str, body: Object) -> Object:
        return await self._json("POST", path, {"fieldManager": FIELD_MANAGER}, body)

    async def apply(self, manifest: Object) -> Object:
        return await self.server_side_apply(await self._discovery.path(manifest), manifest, force=True)

    async def server_side_apply(self, path: str, manifest: Object, *, force: bool = False) -> Object:
        query = {"fieldManager": FIELD_MANAGER, "force": "true" if force else "false"}
        applied = await self._json("PATCH", path, query, manifest, "application/apply-patch+yaml")
        if not are_objects([applied]):
            raise errors.not_kubernetes(self._asked("PATCH", path), msgspec.json.encode(applied))
        return applied

    async def patch(self, path: str, body: Object | Objects, kind: PatchKind = "merge") -> Object:
        return await self._json("PATCH", path, {"fieldManager": FIELD_MANAGER}, body, PATCHES[kind])

    async def delete(
        self,
        path: str,
        uid: str | None = None,
        grace: int | None = None,
        propagation: Propagation = "Background",
        *,
        version: str | None = None,
    ) -> None:
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        seen = {"uid": uid, "resourceVersion": version}
        if preconditions := {name: value for name, value in seen.items() if value is not None}:
            options["preconditions"] = preconditions
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        try:
            await self._call("DELETE", path, body=options)
        except KubeError as error:
            another = uid is not None and version is None and error.status == 409
            if error.status != 404 and not another:
                raise

    async def watch(self, path: str, *, metadata_only: bool = False, **query: str) -> AsyncGenerator[Object, None]:
        """An event that is an error ends it as a KubeError: 410 when the version to go on from is too old."""
        asked = self._asked("WATCH", path)
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH_SECONDS), **query}
        async with aclosing(self._lines(path, query, METADATA if metadata_only else JSON)) as lines:
            async for line in lines:
                event = await self._decoded(dict[str, Any], line, asked)
                if event.get("type") == "ERROR":
                    status = event.get("object")
                    code = status.get("code") if isinstance(status, dict) else None
                    said = code if isinstance(code, int) and code else 500
                    raise errors.refused(asked, said, msgspec.json.encode(status))
                yield event

    async def _lines(self, path: str, query: dict[str, str], accept: str) -> AsyncGenerator[bytes, None]:
        asked, rest = self._asked("WATCH", path), bytearray()

        async def open_stream(token: str | None) -> httpx.Response:
            with _kube_errors(asked, self._timeout):
                async with asyncio.timeout(self._timeout):
                    return await self._open(asked, "GET", path, query, None, {"Accept": accept}, token)

        response = await self._authenticated(open_stream)
        async with aclosing(response):
            chunks = response.aiter_raw()
            while True:
                with _kube_errors(asked, self._watch_idle):
                    async with asyncio.timeout(self._watch_idle):
                        chunk = await anext(chunks, b"")
                if not chunk:
                    return
                rest += chunk
                if b"\n" in chunk:
                    *lines, rest = rest.split(b"\n")
                    for line in filter(None, lines):
                        yield bytes(line)
                if len(rest) > self._largest:
                    raise errors.too_large(asked, f"{self._largest} bytes")

    async def _pages(self, path: str, query: dict[str, str], metadata_only: bool) -> Objects:
        items: Objects = []
        size, query = PageSize(PAGE), dict(query)
        asked, accept = self._asked("GET", path), _or_json(METADATA_LIST if metadata_only else None)
        for _ in range(self._most_pages):
            answer, page = await size.ask(lambda limit: self._page(path, {"limit": limit, **query}, accept))
            self._listed += memory_of(answer)
            if self._most_listed is not None and self._listed > self._most_listed:
                raise errors.too_large(asked, f"what is taken of one cluster at once, {self._most_listed >> 20} MiB")
            if not are_objects(found := page.get("items") or []):
                raise errors.not_kubernetes(asked, answer)
            items += found
            if not (following := list_metadata(page).get("continue")):
                return items
            query["continue"] = following
        raise errors.too_large(asked, f"{self._most_pages} pages")

    async def _page(self, path: str, query: dict[str, str], accept: str) -> tuple[bytes, Object]:
        answer = await self._call("GET", path, query, accept=accept)
        return answer, await self._decoded(dict[str, Any], answer, self._asked("GET", path))

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
        accept: str = JSON,
    ) -> T:
        answer = await self._call(verb, path, query, body, content_type, accept)
        return await self._decoded(kind, answer, self._asked(verb, path))

    async def _decoded(self, kind: type[T], answer: bytes, asked: str) -> T:
        """An answer as this type. A large one is decoded in a thread, and one of too many values not at all."""
        try:
            if len(answer) <= DECODED_AT_ONCE:
                return msgspec.json.decode(answer, type=kind)
            if await asyncio.to_thread(has_more_values, answer, self._most_values):
                raise errors.AnswerTooLarge(asked, f"{self._most_values} values")
            return await asyncio.to_thread(msgspec.json.decode, answer, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise errors.not_kubernetes(asked, answer) from None

    async def _call(
        self,
        verb: str,
        path: str,
        query: dict[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        asked = self._asked(verb, path)
        headers = {"Accept": accept} | ({"Content-Type": content_type} if body is not None else {})

        async def exchange(token: str | None) -> bytes:
            async with self._turns:
                with _kube_errors(asked, self._timeout):
                    async with asyncio.timeout(self._timeout):
                        response = await self._open(asked, verb, path, query, body, headers, token)
                        return await self._whole(asked, response)

        return await self._authenticated(exchange)

    async def _authenticated(self, ask: Callable[[str | None], Awaitable[T]]) -> T:
        """With the token of the moment. After a 401 the credentials are renewed, and it is asked once more."""
        renewals = self._renewals
        try:
            return await ask(await self._token() if self._token else None)
        except KubeError as error:
            if error.status != 401 or self._renew is None:
                raise
        await self._renew_credentials(renewals)
        return await ask(await self._token() if self._token else None)

    async def _open(
        self,
        asked: str,
        verb: str,
        path: str,
        query: dict[str, str] | None,
        body: Any,
        headers: dict[str, str],
        token: str | None,
    ) -> httpx.Response:
        """The answer to one request, still to be read. One other than 2xx is a KubeError."""
        if self._client is None:
            raise RuntimeError("Api is used outside of its context.")
        who = {"Authorization": f"Bearer {token}"} if token is not None else {}
        name = {"sni_hostname": self._server_name} if self._server_name else {}
        content = None if body is None else msgspec.json.encode(body)
        async with closed_if_cancelled() as trace:
            request = self._client.build_request(
                verb, path, params=query or None, content=content, headers=headers | who,
                extensions={"trace": trace, **name},
            )  # fmt: skip
            response = await self._client.send(request, stream=True)
        if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            await response.aclose()
            raise errors.packed(asked)
        if not 200 <= response.status_code < 300:
            secrets = [*self._credentials.secrets, *([token] if token else []), *errors.secrets_of(body)]
            raise errors.refused(asked, response.status_code, await self._whole(asked, response), secrets)
        return response

    async def _whole(self, asked: str, response: httpx.Response) -> bytes:
        """An answer without end is cut off, and told."""
        taken = bytearray()
        async with aclosing(response):
            async for chunk in response.aiter_raw():
                taken += chunk
                if len(taken) > self._largest:
                    raise errors.AnswerTooLarge(asked, f"{self._largest} bytes")
        return bytes(taken)

    async def _renew_credentials(self, renewals: int) -> None:
        """Once for all calls that were refused with the same ones."""
        async with self._renewing:
            if self._renew is not None and self._renewals == renewals:
                self._credentials = await self._renew()
                self._renewals += 1
                if self._client is not None:
                    self._former.append(self._client)
                    self._client = self._new_client()

    def _asked(self, verb: str, path: str) -> str:
        return errors.short(f"{verb} {path} on {self._credentials.server}")


def _or_json(accept: str | None) -> str:
    return f"{accept},{JSON}" if accept else JSON


@contextmanager
def _kube_errors(asked: str, limit: float) -> Iterator[None]:
    import httpx

    try:
        yield
    except TimeoutError:
        raise errors.too_slow(asked, limit) from None
    except OutgoingRequestError as error:
        raise KubeError(f"{asked}: {error.detail}", temporary=error.temporary) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise errors.unreachable(asked, error) from None
