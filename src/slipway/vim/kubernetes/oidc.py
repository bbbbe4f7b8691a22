"""Tokens for clusters that believe an OpenID provider: fetched with a password, kept until they end, then renewed."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import msgspec

from slipway.model.errors import VimError, VimFault
from slipway.outside.guard import Guard
from slipway.vim.asking import Answer, ask, said

BEFORE_THE_END = 30.0  # seconds: a call that begins with a token should end with it
UNKNOWN_LIFE = 60.0  # of a token that does not say when it ends
MOST_KEPT = 256


@dataclass(frozen=True)
class OidcAccount:
    token_url: str
    client_id: str
    username: str
    password: str = field(repr=False)
    client_secret: str | None = field(default=None, repr=False)

    @property
    def secrets(self) -> list[str]:
        return [self.password, *([self.client_secret] if self.client_secret else [])]


@dataclass(frozen=True)
class _Kept:
    id_token: str = field(repr=False)
    ends: float
    refresh_token: str | None = field(repr=False)


class IdTokens:
    """One for a driver. In memory only; whoever waits for the same token waits for one request."""

    def __init__(self, guard: Guard | None = None, clock: Callable[[], float] = time.time) -> None:
        self._guard = guard
        self._clock = clock
        self._kept: dict[OidcAccount, _Kept] = {}
        self._locks: WeakValueDictionary[OidcAccount, asyncio.Lock] = WeakValueDictionary()  # of those who log in now

    async def get(self, account: OidcAccount, tls: ssl.SSLContext) -> str:
        """A token that is good for a while yet."""
        async with self._locks.setdefault(account, asyncio.Lock()):
            kept = self._kept.get(account)
            if kept is None or kept.ends - BEFORE_THE_END <= self._clock():
                kept = await self._renewed(account, kept, tls)
                self._keep(account, kept)
            return kept.id_token

    async def log_in(self, account: OidcAccount, tls: ssl.SSLContext) -> str:
        """A new token, by the password: what was kept says nothing about whether the password still holds."""
        async with self._locks.setdefault(account, asyncio.Lock()):
            kept = await self._by_password(account, tls)
            self._keep(account, kept)
            return kept.id_token

    async def _renewed(self, account: OidcAccount, kept: _Kept | None, tls: ssl.SSLContext) -> _Kept:
        if kept is not None and kept.refresh_token:
            form = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
            answer = await self._ask(account, form, tls)
            if answer.status == 200 and answer.document().get("id_token"):
                return self._read(account, answer, kept.refresh_token)
        return await self._by_password(account, tls)  # a refresh token ends as well, or is no longer liked

    async def _by_password(self, account: OidcAccount, tls: ssl.SSLContext) -> _Kept:
        form = {"grant_type": "password", "username": account.username, "password": account.password, "scope": "openid"}
        return self._read(account, await self._ask(account, form, tls))

    async def _ask(self, account: OidcAccount, form: dict[str, str], tls: ssl.SSLContext) -> Answer:
        form["client_id"] = account.client_id
        if account.client_secret:
            form["client_secret"] = account.client_secret
        return await ask("POST", account.token_url, tls=tls, guard=self._guard, form=form)

    def _read(self, account: OidcAccount, answer: Answer, refresh_token: str | None = None) -> _Kept:
        document = answer.document()
        if answer.status != 200:
            raise _refused(account, answer, document)
        token = document.get("id_token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token or not token:
            raise VimError(
                f"The token endpoint {account.token_url} gave no id_token.",
                VimFault.PERMANENT,
                cure="let the client have the scope openid, and give the URL of the token endpoint itself.",
            )
        renewed = document.get("refresh_token", refresh_token)
        return _Kept(token, _end_of(token, document, self._clock()), renewed if isinstance(renewed, str) else None)

    def _keep(self, account: OidcAccount, kept: _Kept) -> None:
        self._kept.pop(account, None)
        self._kept[account] = kept
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]


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
        except (msgspec.MsgspecError, binascii.Error, ValueError):
            claims = None
        end = claims.get("exp") if isinstance(claims, dict) else None
        if isinstance(end, int | float):
            return float(end)
    life = document.get("expires_in")
    return now + (float(life) if isinstance(life, int | float) else UNKNOWN_LIFE)


def _refused(account: OidcAccount, answer: Answer, document: dict[str, Any]) -> VimError:
    reason = document.get("error_description") or document.get("error") or answer.body.decode(errors="replace")
    what = f"The token endpoint {account.token_url} answered {answer.status}"
    said_so = f"{what}: {said(reason, account.secrets) or 'no reason given'}."
    if document.get("error") in ("invalid_client", "unauthorized_client"):
        cure = "correct client_id and client_secret, and let the client use the password grant."
        return VimError(said_so, VimFault.AUTH, cure=cure)
    if answer.status in (400, 401, 403) and document.get("error"):
        return VimError(said_so, VimFault.AUTH, cure=f"correct the password of {account.username}, or the client.")
    if answer.status == 429 or answer.status >= 500:
        return VimError(said_so, VimFault.TEMPORARY)
    return VimError(said_so, VimFault.PERMANENT, cure="give the URL of the token endpoint itself.")
