"""How Slipway shows an NFVO who it is: not at all, by user and password, or by a token (OAuth2 client credentials)."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import msgspec

from slipway.outside.guard import read_limited

if TYPE_CHECKING:
    import httpx

LARGEST = 1 << 16  # bytes of an answer
EARLY = 30.0  # seconds before its end a token is fetched anew


class LoginFailed(Exception):
    """Why, and the cure, in words for a person."""

    def __init__(self, why: str, *, temporary: bool = False) -> None:
        super().__init__(why)
        self.temporary = temporary


class Login(Protocol):
    async def headers(self, client: httpx.AsyncClient) -> dict[str, str]: ...

    def forget(self) -> bool:
        """Whether it may help to log in anew, which the next call then does."""
        ...


class Anonymous:
    async def headers(self, client: httpx.AsyncClient) -> dict[str, str]:
        return {}

    def forget(self) -> bool:
        return False


@dataclass(frozen=True)
class Basic:
    user: str
    password: str = field(repr=False)

    async def headers(self, client: httpx.AsyncClient) -> dict[str, str]:
        both = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {both}"}

    def forget(self) -> bool:
        return False


class _Token(msgspec.Struct):
    access_token: str
    expires_in: float = 300.0


class OAuth2:
    def __init__(self, token_url: str, client_id: str, client_secret: str) -> None:
        self._url = token_url
        self._client = Basic(client_id, client_secret)
        self._token: str | None = None
        self._ends = 0.0

    async def headers(self, client: httpx.AsyncClient) -> dict[str, str]:
        token = self._token
        if token is None or self._ends <= time.monotonic() + EARLY:
            token = await self._fetched(client)
        return {"Authorization": f"Bearer {token}"}

    def forget(self) -> bool:
        self._token = None
        return True

    async def _fetched(self, client: httpx.AsyncClient) -> str:
        headers = await self._client.headers(client)
        form = {"grant_type": "client_credentials"}
        async with client.stream("POST", self._url, data=form, headers=headers) as response:
            body = await read_limited(response, LARGEST)
        if response.status_code != 200:
            raise LoginFailed(
                f"nfvo_token_url answered {response.status_code}. Cure: correct nfvo_token_url, nfvo_client_id and "
                "nfvo_client_secret_file.",
                temporary=response.status_code >= 500,
            )
        try:
            token = msgspec.json.decode(body, type=_Token)
        except (msgspec.DecodeError, UnicodeDecodeError):
            token = _Token("")
        if not token.access_token.isascii() or not token.access_token.isprintable() or not token.access_token:
            raise LoginFailed("nfvo_token_url gave no token. Cure: see that it is a token endpoint of OAuth2.")
        self._token, self._ends = token.access_token, time.monotonic() + token.expires_in
        return token.access_token
