"""How an SDK that blocks and speaks by `requests` gets out: through the guarded httpx client, like everything else.

    loop = LoopThread()
    session = guarded_session(GuardedAdapter(guard, loop, verify=context))     # a requests.Session for any thread

So resolving, checking and connecting are written once (guard.py, transport.py). A request is bounded as a whole, its
answer in bytes and values. Imported when a session is made: requests costs a tenth of a second.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from io import BytesIO
from typing import Any, NamedTuple, TypeVar

import httpx
import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers

from slipway.model.errors import OutgoingRequestError
from slipway.model.json_documents import has_more_values
from slipway.outgoing.guard import Guard
from slipway.outgoing.responses import read_limited

SECONDS = 60.0  # for one request, from resolving the name to the last byte
BLOCK = 1 << 20  # bytes of a body that is read while it is sent
OURS = frozenset({"user-agent", "accept-encoding", "host"})  # headers that the guarded client sets

T = TypeVar("T")


class AnswerLimits(NamedTuple):
    largest: int  # bytes
    most_values: int  # of it as JSON, which SDKs read into objects of a hundred bytes each


LIMITS = AnswerLimits(16 << 20, 500_000)  # a listing of all that a large VNF has


class LoopThread:
    """An event loop in a thread of its own, for threads that must wait for what runs on it."""

    def __init__(self, name: str = "outgoing") -> None:
        self._name = name
        self._lock = threading.RLock()  # the garbage collector may call `start` while this thread holds it
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing = asyncio.Event()
        self._closed = False
        self._last: set[asyncio.Future[None]] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What it returns or raises; ConnectionError when this is closed before it ended."""
        try:
            return self.start(work).result()
        except CancelledError:
            raise requests.ConnectionError("Slipway is about to stop") from None

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self._closed:
                work.close()
                ended: Future[T] = Future()
                ended.cancel()
                return ended
            return asyncio.run_coroutine_threadsafe(work, self._running())

    def finish(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Not waited for here, but by `close`: for whoever the garbage collector calls."""
        self.start(self._kept(last))

    def close(self) -> None:
        """Whatever else has not ended is cancelled."""
        with self._lock:
            if self._loop is not None and not self._closed:
                self._loop.call_soon_threadsafe(self._closing.set)
            self._closed = True
        if self._thread is not None:
            self._thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            started: Future[asyncio.AbstractEventLoop] = Future()
            self._thread = threading.Thread(
                target=lambda: asyncio.run(self._serve(started)), name=self._name, daemon=True
            )
            self._thread.start()
            self._loop = started.result()
        return self._loop

    async def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        started.set_result(asyncio.get_running_loop())
        await self._closing.wait()
        await asyncio.gather(*self._last, return_exceptions=True)

    async def _kept(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.ensure_future(last())
        self._last.add(task)
        task.add_done_callback(self._last.discard)


class GuardedAdapter(BaseAdapter):
    """`redirects`: how many are followed, for GET; another server gets no headers, so no token either.

    `limits`: of the answer to a request.
    """

    def __init__(
        self,
        guard: Guard,
        loop: LoopThread,
        *,
        verify: bool | str | ssl.SSLContext = True,
        redirects: int = 0,
        seconds: float = SECONDS,
        limits: Callable[[requests.PreparedRequest], AnswerLimits] = lambda _: LIMITS,
    ) -> None:
        super().__init__()
        self._client = guard.client(timeout=None, verify=verify, redirects=redirects)
        self._loop = loop
        self._seconds = seconds
        self._limits = limits

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """OutgoingRequestError when the guard refuses. `verify`, `cert` and `proxies` are not for a session to say."""
        seconds = timeout if isinstance(timeout, int | float) and timeout else self._seconds
        return self._loop.run(self._sent(request, seconds))

    def close(self) -> None:
        self._loop.finish(self._client.aclose)

    async def _sent(self, request: requests.PreparedRequest, seconds: float) -> requests.Response:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in OURS}
        largest, most_values = self._limits(request)
        try:
            async with (
                asyncio.timeout(seconds) as limit,
                self._client.stream(
                    request.method or "GET",
                    request.url or "",
                    headers=headers,
                    content=_content(request.body, limit, seconds),
                ) as response,
            ):
                body = await read_limited(response, largest)
            if has_more_values(body, most_values):
                host = response.request.url.host
                raise OutgoingRequestError(f"The response of {host} has more than {most_values} values.")
        except TimeoutError:
            raise requests.ReadTimeout(f"not answered within {seconds:g} s", request=request) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            kind = requests.exceptions.SSLError if is_caused_by_tls(error) else requests.ConnectionError
            raise kind(str(error) or type(error).__name__, request=request) from error
        return self._response(request, response, body)

    def _response(self, request: requests.PreparedRequest, response: httpx.Response, body: bytes) -> requests.Response:
        made = requests.Response()
        made.status_code = response.status_code
        made.reason = response.reason_phrase
        made.headers = CaseInsensitiveDict(response.headers)
        made.encoding = get_encoding_from_headers(made.headers)
        made.url = request.url or ""
        made.request = request
        made.raw = BytesIO(body)
        return made


def guarded_session(adapter: GuardedAdapter) -> requests.Session:
    """Takes nothing from the environment: no proxy, no .netrc, no CA bundle."""
    session = requests.Session()
    session.trust_env = False
    for prefix in list(session.adapters):
        session.mount(prefix, adapter)
    return session


def is_caused_by_tls(error: BaseException | None) -> bool:
    for _ in range(10):
        if error is None or isinstance(error, ssl.SSLError):
            break
        error = error.__cause__ or error.__context__
    return isinstance(error, ssl.SSLError)


def _content(body: Any, limit: asyncio.Timeout, seconds: float) -> bytes | AsyncIterator[bytes] | None:
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else _blocks(body, limit, seconds)


async def _blocks(body: Any, limit: asyncio.Timeout, seconds: float) -> AsyncIterator[bytes]:
    """An image may take long: each block that the server took gives it another `seconds`."""
    loop = asyncio.get_running_loop()
    blocks: Iterator[bytes] = iter(lambda: body.read(BLOCK), b"") if hasattr(body, "read") else iter(body)
    while block := await asyncio.to_thread(lambda: next(blocks, b"")):
        limit.reschedule(loop.time() + seconds)
        yield block
