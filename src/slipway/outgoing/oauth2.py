"""OAuth2 tokens: fetched from a token endpoint, cached until shortly before they expire.

`TokenCache` is for any grant; `fetch_token` asks by client credentials. `BearerAuth` puts a token into a request.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, TypeGuard
from weakref import WeakValueDictionary

import msgspec

from slipway.outgoing.responses import read_limited

if TYPE_CHECKING:
    import httpx

EARLY = 30.0  # seconds before its expiry a token is replaced: a call that begins with it should end with it
MOST_TOKENS = 256
LARGEST = 1 << 16  # bytes of a response
DEFAULT_LIFETIME = 300.0  # seconds, of a token whose response names none


class TokenError(Exception):
    """A token endpoint gave no token; `status` is that of its response."""

    def __init__(self, token_url: str, status: int) -> None:
        super().__init__(f"{token_url}: {status}")
        self.token_url, self.status = token_url, status


@dataclass(frozen=True)
class ClientCredentials:
    """Without `client_secret` the client is known by its TLS certificate."""

    token_url: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Token:
    value: str = field(repr=False)
    expires: float  # by the clock of the cache
    refresh_token: str | None = field(default=None, repr=False)


# Given the token that was cached before, which may hold a refresh token.
FetchToken = Callable[[Token | None], Awaitable[Token]]


class TokenCache:
    """Bounded. Keys hold the whole credential and whose it is, and are kept as digests: the same secret in the same
    project gets the same token, no other project does. Requests for one token at the same time wait for one fetch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._tokens: OrderedDict[bytes, Token] = OrderedDict()
        self._locks: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._tokens)

    async def get(self, credential: str, fetch: FetchToken) -> str:
        key = _digest(credential)
        async with self._locks.setdefault(key, asyncio.Lock()):
            token = self._tokens.get(key)
            if token is None or token.expires - EARLY <= self.clock():
                token = await fetch(token)
            self._keep(key, token)
            return token.value

    async def renew(self, credential: str, fetch: FetchToken) -> str:
        """A new token, whatever is cached: whether the credential is still accepted only the endpoint knows."""
        key = _digest(credential)
        async with self._locks.setdefault(key, asyncio.Lock()):
            token = await fetch(None)
            self._keep(key, token)
            return token.value

    def forget(self, credential: str) -> None:
        self._tokens.pop(_digest(credential), None)

    def _keep(self, key: bytes, token: Token) -> None:
        self._tokens[key] = token
        self._tokens.move_to_end(key)
        while len(self._tokens) > MOST_TOKENS:
            self._tokens.popitem(last=False)


async def fetch_token(client: httpx.AsyncClient, credentials: ClientCredentials, clock: Callable[[], float]) -> Token:
    """By client credentials. TokenError when there is none; what the guard and httpx raise goes through."""
    form = {"grant_type": "client_credentials"}
    auth = None
    if credentials.client_secret is None:
        form["client_id"] = credentials.client_id
    else:
        auth = (credentials.client_id, credentials.client_secret)
    async with client.stream("POST", credentials.token_url, data=form, auth=auth) as response:
        body = await read_limited(response, LARGEST)
    try:
        found = msgspec.json.decode(body, type=_TokenResponse)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _TokenResponse("")
    if response.status_code != 200 or not is_token(found.access_token):
        raise TokenError(credentials.token_url, response.status_code)
    return Token(found.access_token, clock() + found.expires_in)


def is_token(value: object) -> TypeGuard[str]:
    """Whether it can be sent in a header: nothing in it may end the line."""
    return isinstance(value, str) and value.isascii() and value.isprintable() and " " not in value and value != ""


class _TokenResponse(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float = DEFAULT_LIFETIME


def _digest(credential: str) -> bytes:
    return sha256(credential.encode()).digest()
