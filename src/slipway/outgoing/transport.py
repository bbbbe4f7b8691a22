"""An httpx transport that connects only to addresses the guard has checked; Host header and TLS keep the name.

Imported when a client is made: httpx costs a tenth of a second.
"""

from __future__ import annotations

import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

import httpx

from slipway.model.errors import OutgoingRequestError
from slipway.outgoing.handshake import closed_if_cancelled
from slipway.outgoing.tls import client_context

if TYPE_CHECKING:
    from slipway.outgoing.guard import Guard

MOST_TRIED = 4  # addresses of one name
KEPT_OPEN = 8  # connections to one server
SERVERS = 16  # that connections are kept open to
# Sent along with a redirect to another server. Everything else may be a secret.
FORWARDED_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "range", "user-agent"})

Origin = tuple[str, str, int | None]


class GuardedTransport(httpx.AsyncBaseTransport):
    def __init__(
        self, guard: Guard, verify: bool | str | ssl.SSLContext, cert: tuple[str, str] | None, redirects: int
    ) -> None:
        self._guard = guard
        self._redirects = redirects
        self._servers = _Servers(verify, cert)
        self._redirected = _Servers(True if isinstance(verify, ssl.SSLContext) else verify, None)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        home = _origin(request.url)
        for left in range(self._redirects, -1, -1):
            servers = self._servers if _origin(request.url) == home else self._redirected
            response = await self._send(request, servers)
            if not self._redirects or request.method not in ("GET", "HEAD") or not response.has_redirect_location:
                return response
            await response.aclose()
            if left:
                request = _redirected_request(request, response)
        raise OutgoingRequestError(
            f"{home[1]} redirects more than {self._redirects} times. Give the address it leads to."
        )

    async def aclose(self) -> None:
        await self._servers.aclose()
        await self._redirected.aclose()

    async def _send(self, request: httpx.Request, servers: _Servers) -> httpx.Response:
        *first, last = (await self._guard.check(request.url))[:MOST_TRIED]
        pool = servers.pool(request.url)
        for address in first:
            try:
                return await _sent(pool, request, str(address))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await _sent(pool, request, str(last))


class _Servers:
    """Connections, one pool for each server: none is shared by two names that lead to one address."""

    def __init__(self, verify: bool | str | ssl.SSLContext, cert: tuple[str, str] | None) -> None:
        self._verify = verify
        # Read at once, for the maker to hear what is wrong; but what everybody trusts is read when it is needed.
        self._tls: ssl.SSLContext | None = None
        if isinstance(verify, ssl.SSLContext):
            self._tls = verify
        elif cert or verify is not True:
            self._tls = client_context(verify, cert)
        self._pools: dict[Origin, httpx.AsyncHTTPTransport] = {}

    def pool(self, url: httpx.URL) -> httpx.AsyncHTTPTransport:
        origin = _origin(url)
        kept = KEPT_OPEN
        if origin not in self._pools and len(self._pools) >= SERVERS:
            origin, kept = (url.scheme, "", None), 0  # all others: a new connection for each request
        if origin not in self._pools:
            # Whoever asks bounds the number of requests. httpx must not count as well (see kube/api.py).
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=kept)
            self._pools[origin] = httpx.AsyncHTTPTransport(verify=self._context(url), limits=limits, trust_env=False)
        return self._pools[origin]

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    def _context(self, url: httpx.URL) -> ssl.SSLContext:
        if url.scheme != "https":
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # httpx wants one; empty ones are quickly made
        if self._tls is None:
            self._tls = client_context(True)
        return self._tls


async def _sent(pool: httpx.AsyncHTTPTransport, request: httpx.Request, address: str) -> httpx.Response:
    async with closed_if_cancelled() as trace:
        name = request.url.raw_host.decode("ascii")
        pinned = httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,  # the Host of the name among them
            stream=request.stream,
            extensions={"sni_hostname": name, "trace": trace, **request.extensions},
        )
        return await pool.handle_async_request(pinned)


def _redirected_request(request: httpx.Request, response: httpx.Response) -> httpx.Request:
    host = request.url.host
    try:
        url = request.url.join(response.headers["Location"])
    except (httpx.InvalidURL, ValueError):
        raise OutgoingRequestError(f"{host} redirects to something that is not a URL.") from None
    if request.url.scheme == "https" and url.scheme != "https":
        raise OutgoingRequestError(f"{host} redirects to {url.host}, away from https. Give the address it leads to.")
    headers = httpx.Headers(request.headers)
    if _origin(url) != _origin(request.url):
        headers = httpx.Headers({name: value for name, value in headers.items() if name in FORWARDED_HEADERS})
    headers["Host"] = url.netloc.decode("ascii")
    return httpx.Request(request.method, url, headers=headers, extensions=request.extensions)


def _origin(url: httpx.URL) -> Origin:
    return url.scheme, url.host, url.port  # httpx leaves out the port that goes without saying


def no_cookies() -> CookieJar:
    return CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
