"""The token of an OAuth2 client in its requests. Imported when a request is made, like httpx itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx

from slipway.outgoing.oauth2 import ClientCredentials, Token, TokenCache, fetch_token


class BearerAuth(httpx.Auth):
    """`client` asks the token endpoint. `credential` is all that a token depends on: see TokenCache.

    A token that is answered with 401 is forgotten; whoever sends the request again sends a new one.
    """

    def __init__(
        self, tokens: TokenCache, credential: str, credentials: ClientCredentials, client: httpx.AsyncClient
    ) -> None:
        self._tokens = tokens
        self._credential = credential
        self._credentials = credentials
        self._client = client

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        request.headers["Authorization"] = f"Bearer {await self._tokens.get(self._credential, self._fetch)}"
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED:
            self._tokens.forget(self._credential)

    async def _fetch(self, known: Token | None) -> Token:
        return await fetch_token(self._client, self._credentials, self._tokens.clock)
