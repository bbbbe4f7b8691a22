"""The guard against server-side request forgery (SSRF): for callbacks, upload URIs, token endpoints, VIM URLs, and
for the machines that a VIM names.

    async with guard.client(timeout=10) as client, client.stream("GET", uri) as response:
        body = await read_limited(response, 1 << 20)

A name is resolved once for each request, every address of it is checked, and the connection goes to one of those:
a name that answers differently the next time gains nothing. Whoever only wants to know beforehand asks `check`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Protocol

from slipway.model.errors import OutgoingRequestError
from slipway.outgoing.addresses import Address, Network, contains_loopback, read_networks, refusal
from slipway.outgoing.own_addresses import OwnAddresses

if TYPE_CHECKING:
    import ssl

    import httpx

TIMEOUT = 30.0  # seconds for each part of a request
RESOLVING = 5.0  # seconds
MOST_ADDRESSES = 64  # of one name
# Those who listen here don't speak HTTP, and some take a request for commands.
OTHER_SERVICES = frozenset((
    7, 9, 13, 19, 20, 21, 22, 23, 25, 53, 69, 110, 111, 119, 135, 139, 143, 161, 179, 389, 445, 465, 514, 515, 554, 587,
    636, 873, 993, 995, 1433, 1521, 2049, 3306, 3389, 5432, 5672, 5900, 6379, 11211, 27017,
))  # fmt: skip

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


class _Settings(Protocol):
    @property
    def reached_from_this_machine_only(self) -> bool: ...
    @property
    def allowed_networks(self) -> tuple[str, ...]: ...


async def system_resolver(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True)
class Guard:
    """`networks`: only those; none named is all. `loopback`: whether this machine itself may be meant."""

    networks: tuple[Network, ...] = ()
    loopback: bool = False
    resolver: Resolver = system_resolver
    resolving: float = RESOLVING
    is_own: Callable[[Address], bool] = field(default_factory=OwnAddresses)

    @classmethod
    def from_settings(cls, settings: _Settings, *, listens: bool = True) -> Guard:
        """Loopback is allowed where only this machine's own users reach the API, which a worker cannot know."""
        networks = read_networks(settings.allowed_networks)
        alone = listens and settings.reached_from_this_machine_only
        return cls(networks, alone or contains_loopback(networks))

    def read(self, url: str) -> httpx.URL:
        """The address as it would be used. OutgoingRequestError when it can't be one, whatever it resolves to."""
        import httpx

        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError, ValueError):
            raise OutgoingRequestError("This is not a URL. Give one such as https://host:port/path.") from None
        return _well_formed(parsed)

    async def check(self, url: str | httpx.URL) -> tuple[Address, ...]:
        """Every address behind a URL, all of them checked. OutgoingRequestError names the host and the cure."""
        parsed = self.read(url) if isinstance(url, str) else _well_formed(url)
        host = parsed.raw_host.decode("ascii")
        addresses = await self._resolved(host, _port(parsed))
        for address in addresses:
            self._check(address, host if host == str(address) else f"{host} ({address})")
        return addresses

    def check_form(self, url: str) -> None:
        """What can be said of a URL without a name server: how it is written, and the host if it is an address."""
        host = self.read(url).raw_host.decode("ascii")
        try:
            address = ip_address(host)
        except ValueError:  # a name
            return
        self._check(address, host)

    def check_address(self, text: str) -> None:
        """As `check`, of an IP address that is connected to otherwise than by HTTP."""
        try:
            address = ip_address(_without_zone(text))
        except ValueError:
            raise OutgoingRequestError(f"{text[:255]!r} is no IP address, which a machine is reached at.") from None
        self._check(address, text)

    def transport(
        self, *, verify: bool | str | ssl.SSLContext = True, cert: tuple[str, str] | None = None, redirects: int = 0
    ) -> httpx.AsyncBaseTransport:
        """For an httpx client that the caller makes. See `client`."""
        from slipway.outgoing.transport import GuardedTransport

        return GuardedTransport(self, verify, cert, redirects)

    def client(
        self,
        *,
        timeout: float | None = TIMEOUT,
        verify: bool | str | ssl.SSLContext = True,
        cert: tuple[str, str] | None = None,
        auth: tuple[str, str] | httpx.Auth | None = None,
        redirects: int = 0,
    ) -> httpx.AsyncClient:
        """`verify`: by whom a server must be vouched for (a CA as PEM). `cert`: certificate and key, both as PEM.

        `redirects`: how many are followed, for GET and HEAD. Whom one leads to gets neither headers nor certificate.
        """
        import httpx

        from slipway.outgoing.transport import no_cookies

        return httpx.AsyncClient(
            transport=self.transport(verify=verify, cert=cert, redirects=redirects),
            headers={"User-Agent": "slipway", "Accept-Encoding": "identity"},
            auth=auth,
            cookies=no_cookies(),
            timeout=timeout,
            trust_env=False,  # no proxy, no .netrc
        )

    def _check(self, address: Address, shown: str) -> None:
        if why := refusal(address, self.networks, self.loopback, self.is_own):
            raise OutgoingRequestError(f"{shown} is {why}. {_cure(why, address)}")

    async def _resolved(self, host: str, port: int) -> tuple[Address, ...]:
        try:
            return (ip_address(host),)
        except ValueError:
            pass
        try:
            async with asyncio.timeout(self.resolving):
                found = await self.resolver(host, port)
            addresses = tuple(ip_address(text) for text in found)
        except TimeoutError:
            raise OutgoingRequestError(
                f"The name {host} was not resolved within {self.resolving:g} s. Look at the name server.",
                temporary=True,
            ) from None
        except (OSError, ValueError):  # ValueError: a label that no name has
            addresses = ()
        if not addresses:
            raise OutgoingRequestError(
                f"{host} is not known here. Correct the name, or give an address.", temporary=True
            )
        if len(addresses) > MOST_ADDRESSES:
            raise OutgoingRequestError(f"{host} has {len(addresses)} addresses. Give one.")
        return addresses


def _well_formed(url: httpx.URL) -> httpx.URL:
    if not url.scheme:
        raise OutgoingRequestError("The URL has no scheme. Give one such as https://host:port/path.")
    if url.scheme not in ("http", "https"):
        shown = f"{url.scheme[:20]!r}"
        raise OutgoingRequestError(
            f"The scheme must be one of: http, https; it is {shown}. Give https://host:port/path."
        )
    if not url.raw_host:
        raise OutgoingRequestError("The URL names no host. Give one such as https://host:port/path.")
    host = url.host[:255]
    if url.userinfo:
        raise OutgoingRequestError(f"The URL of {host} has a user or a password in it. Give those in their own fields.")
    _without_zone(host)
    if not 1 <= (port := _port(url)) <= 65535:
        raise OutgoingRequestError(f"{port} is not a port of {host}. Give one from 1 to 65535.")
    if port in OTHER_SERVICES:
        raise OutgoingRequestError(
            f"Port {port} of {host} belongs to a service that is not HTTP. Give the port of the API."
        )
    return url


def _without_zone(host: str) -> str:
    if "%" in host:
        raise OutgoingRequestError(f"{host} names an interface of this machine. Give an address without a zone.")
    return host


def _port(url: httpx.URL) -> int:
    if url.port is None:
        return 443 if url.scheme == "https" else 80
    return url.port


def _cure(why: str, address: Address) -> str:
    if "allowed networks" in why:
        return "Give another, or have its network added to the setting allowed_networks."
    if "loopback" in why:
        return "Give another, or have 127.0.0.0/8 added to the setting allowed_networks."
    if "machine" in why:
        return f"Give another, or have {ip_network(address)} added to the setting allowed_networks."
    return "Give the address of the server itself; these are never allowed."
