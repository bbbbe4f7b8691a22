"""Tokens for clusters that believe an OpenID provider: fetched with a password, kept until they end, then renewed."""

from __future__ import annotations

import base64
import binascii
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from slipway.model.access import DEFAULT_PROJECT
from slipway.model.errors import VimError, VimFault
from slipway.outgoing.guard import Guard
from slipway.outgoing.oauth2 import Token, TokenCache, is_token
from slipway.outgoing.responses import server_message
from slipway.vim.http import HttpResponse, ask

UNKNOWN_LIFE = 60.0  # of a token that does not say when it ends


@dataclass(frozen=True)
class OidcAccount:
    token_url: str
    client_id: str
    username: str
    password: str = field(repr=False)
    client_secret: str | None = field(default=None, repr=False)
    project: str = DEFAULT_PROJECT  # whose VIM it is for
    trusted: str = ""  # by which certificates: a token that came otherwise is not used

    @property
    def credential(self) -> str:
        """All that a token depends on."""
        login = (self.token_url, self.client_id, self.username, self.password, self.client_secret)
        return msgspec.json.encode((*login, self.project, self.trusted)).decode()

    @property
    def secrets(self) -> list[str]:
        return [self.password, *([self.client_secret] if self.client_secret else [])]


class IdTokens:
    """One for a driver. In memory only; whoever waits for the same token waits for one request."""

    def __init__(self, guard: Guard | None = None, clock: Callable[[], float] = time.time) -> None:
        self._guard = guard
        self._tokens = TokenCache(clock)

    async def get(self, account: OidcAccount, tls: ssl.SSLContext) -> str:
        """A token that is good for a while yet."""
        return await self._tokens.get(account.credential, lambda known: self._renewed(account, known, tls))

    async def log_in(self, account: OidcAccount, tls: ssl.SSLContext) -> str:
        """A new token, by the password: what was kept says nothing about whether the password still holds."""
        return await self._tokens.renew(account.credential, lambda _: self._by_password(account, tls))

    async def _renewed(self, account: OidcAccount, known: Token | None, tls: ssl.SSLContext) -> Token:
        if known is not None and known.refresh_token:
            form = {"grant_type": "refresh_token", "refresh_token": known.refresh_token}
            answer = await self._ask(account, form, tls)
            if answer.status == 200 and answer.document().get("id_token"):
                return self._read(account, answer, known.refresh_token)
        return await self._by_password(account, tls)  # a refresh token ends as well, or is no longer liked

    async def _by_password(self, account: OidcAccount, tls: ssl.SSLContext) -> Token:
        form = {"grant_type": "password", "username": account.username, "password": account.password, "scope": "openid"}
        return self._read(account, await self._ask(account, form, tls))

    async def _ask(self, account: OidcAccount, form: dict[str, str], tls: ssl.SSLContext) -> HttpResponse:
        form["client_id"] = account.client_id
        if account.client_secret:
            form["client_secret"] = account.client_secret
        return await ask("POST", account.token_url, tls=tls, guard=self._guard, form=form)

    def _read(self, account: OidcAccount, answer: HttpResponse, refresh_token: str | None = None) -> Token:
        document = answer.document()
        if answer.status != 200:
            raise _refused(account, answer, document)
        token = document.get("id_token")
        if not is_token(token):
            raise VimError(
                f"The token endpoint {account.token_url} gave no id_token.",
                VimFault.PERMANENT,
                cure="let the client have the scope openid, and give the URL of the token endpoint itself.",
            )
        renewed = document.get("refresh_token", refresh_token)
        return Token(
            token, _end_of(token, document, self._tokens.clock()), renewed if isinstance(renewed, str) else None
        )


def is_token_url(given: str) -> bool:
    try:
        parts = urlsplit(given)
        _ = parts.port
    except ValueError:
        return False
    clean = given.isprintable() and " " not in given and "@" not in parts.netloc and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and clean


def _end_of(token: str, document: dict[str, Any], now: float) -> float:
    """What the token says itself; or the answer, which speaks of the access token; or a guess."""
    parts = token.split(".")
    if len(parts) == 3:
        try:
            claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError):
            claims = None
        if (end := _seconds(claims.get("exp") if isinstance(claims, dict) else None)) is not None:
            return end
    life = _seconds(document.get("expires_in"))
    return now + (UNKNOWN_LIFE if life is None else life)


def _seconds(value: Any) -> float | None:
    """None for what no clock shows."""
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None


def _refused(account: OidcAccount, answer: HttpResponse, document: dict[str, Any]) -> VimError:
    reason = document.get("error_description") or document.get("error") or answer.body.decode(errors="replace")
    what = f"The token endpoint {account.token_url} answered {answer.status}"
    said_so = f"{what}: {server_message(reason, account.secrets) or 'no reason given'}."
    if document.get("error") in ("invalid_client", "unauthorized_client"):
        cure = "correct client_id and client_secret, and let the client use the password grant."
        return VimError(said_so, VimFault.AUTH, cure=cure)
    if answer.status in (400, 401, 403) and document.get("error"):
        return VimError(said_so, VimFault.AUTH, cure=f"correct the password of {account.username}, or the client.")
    if answer.status == 429 or answer.status >= 500:
        return VimError(said_so, VimFault.TEMPORARY)
    return VimError(said_so, VimFault.PERMANENT, cure="give the URL of the token endpoint itself.")
