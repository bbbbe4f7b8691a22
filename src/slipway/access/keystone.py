"""Tokens of a Keystone: who they belong to is asked of the Keystone that the settings name, and of no other.

Slipway asks as a user of its own (Keystone requires one), whose token it fetches by password and renews. Where
Keystone does not answer, a token cannot be checked: that is Unavailable, not an invalid token.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.access.identity_provider import highest_role
from slipway.model.access import Caller, Role
from slipway.model.credential_cache import CredentialCache
from slipway.model.errors import OutgoingRequestError, Unavailable
from slipway.outgoing.guard import Guard
from slipway.outgoing.oauth2 import is_token
from slipway.outgoing.responses import read_limited

if TYPE_CHECKING:
    import httpx

TIMEOUT = 10.0  # seconds for one request, all of it
LARGEST = 1 << 20  # bytes of an answer
LONGEST = 16384  # characters of a token
CACHE_SECONDS = 60.0  # of an answer; a revoked token works no longer than that
MOST_KEPT = 4096
REQUESTS_AT_ONCE = 16  # requests; others wait for their turn
EARLY = 120.0  # seconds before the end of our own token
QUEUE_TIMEOUT = 20.0  # seconds for everything, one's turn included
RETRY_LOGIN_AFTER = 10.0  # seconds after our password was refused: a Keystone may lock out who insists

log = logging.getLogger(__name__)


class _Unknown(Enum):
    UNKNOWN = "unknown"


UNKNOWN = _Unknown.UNKNOWN


@dataclass(frozen=True)
class ServiceUser:
    name: str
    password: str = field(repr=False)
    project: str
    user_domain: str = "Default"
    project_domain: str = "Default"


@dataclass(frozen=True)
class _Own:
    token: str = field(repr=False)
    ends: float


class Keystone:
    """`guard`: the address is the operator's own, so one that allows loopback will do."""

    def __init__(
        self,
        url: str,
        guard: Guard,
        user: ServiceUser,
        roles: Mapping[str, Role],
        *,
        verify: bool | str = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url = url.rstrip("/").removesuffix("/v3") + "/v3/auth/tokens"
        self._guard = guard
        self._user = user
        self._roles = dict(roles)
        self._verify = verify
        self._clock = clock
        self._valid: CredentialCache[Caller] = CredentialCache(MOST_KEPT, clock)
        self._invalid: CredentialCache[bool] = CredentialCache(
            MOST_KEPT, clock
        )  # apart: a flood of them forgets no caller
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._login = asyncio.Lock()
        self._own: _Own | None = None
        self._refused: tuple[float, str] | None = None
        self._last_logged = (0.0, "")
        self._client: httpx.AsyncClient | None = None

    async def authenticate(self, token: str) -> Caller | None:
        """Who sends it; None when Keystone does not know it, or it has no role here."""
        if not is_token(token) or len(token) > LONGEST:
            return None
        if (known := self._known(token)) is not UNKNOWN:
            return known
        try:
            async with asyncio.timeout(QUEUE_TIMEOUT), self._slots:
                if (known := self._known(token)) is not UNKNOWN:  # by now
                    return known
                body = await self._look_up(token)
        except TimeoutError:
            raise self._unavailable("has too many requests under way") from None
        return self._keep(token, body)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _known(self, token: str) -> Caller | _Unknown | None:
        if (caller := self._valid.get(token)) is not None:
            return caller
        return None if self._invalid.get(token) else UNKNOWN

    def _keep(self, token: str, body: dict[str, Any] | None) -> Caller | None:
        now = self._clock()
        caller, ends = (None, now) if body is None else self._read(body)
        if caller is None or ends <= now:
            self._invalid.keep(token, True, now + CACHE_SECONDS)
            return None
        self._valid.keep(token, caller, min(ends, now + CACHE_SECONDS))
        return caller

    async def _look_up(self, token: str) -> dict[str, Any] | None:
        """Keystone's `token`; None when it knows none."""
        own = await self._own_token()
        status, body, _ = await self._ask("GET", {"X-Auth-Token": own, "X-Subject-Token": token})
        if status == 401:  # ours was revoked
            own = await self._own_token(refused=own)
            status, body, _ = await self._ask("GET", {"X-Auth-Token": own, "X-Subject-Token": token})
        if status in (400, 404):
            return None
        if status in (401, 403):
            raise self._unavailable(f"answers {status} to {self._user.name}; let that user validate tokens")
        found = _token_of(body)
        if status != 200 or not found:
            raise self._unavailable(f"answers {status} without a token; is keystone_url a Keystone v3?")
        return found

    async def _own_token(self, refused: str | None = None) -> str:
        """Concurrent callers wait for one login."""
        async with self._login:
            own = self._own
            if own is None or own.token == refused or own.ends - EARLY <= self._clock():
                own = self._own = await self._log_in()
            return own.token

    async def _log_in(self) -> _Own:
        if self._refused and self._refused[0] > self._clock():
            raise self._unavailable(self._refused[1])
        status, body, headers = await self._ask("POST", {}, _login(self._user))
        if status == 401:
            why = f"does not know {self._user.name} by this password; correct keystone_user and keystone_password_file"
            self._refused = (self._clock() + RETRY_LOGIN_AFTER, why)
            raise self._unavailable(why)
        token = headers.get("X-Subject-Token")
        if status != 201 or not token:
            raise self._unavailable(f"answers {status} to a login")
        self._refused = None
        return _Own(token, _moment(_token_of(body)) or self._clock() + CACHE_SECONDS)

    async def _ask(
        self, method: str, headers: dict[str, str], document: object = None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        import httpx

        if self._client is None:
            self._client = self._guard.client(timeout=None, verify=self._verify)
        content = None if document is None else msgspec.json.encode(document)
        kind = {"Accept": "application/json"} | ({"Content-Type": "application/json"} if content else {})
        url = self._url if document else f"{self._url}?nocatalog"
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                self._client.stream(method, url, headers=kind | headers, content=content) as response,
            ):
                return response.status_code, await read_limited(response, LARGEST), response.headers
        except TimeoutError:
            raise self._unavailable(f"does not answer within {TIMEOUT:g} s") from None
        except OutgoingRequestError as error:
            raise self._unavailable(f"is not asked: {error.detail.rstrip('.')}") from None
        except httpx.HTTPError as error:
            raise self._unavailable(f"cannot be reached: {error or type(error).__name__}") from None

    def _read(self, body: dict[str, Any]) -> tuple[Caller | None, float]:
        """A token without a project, or without a role that is known here, is not accepted."""
        user, project, roles = body.get("user"), body.get("project"), body.get("roles")
        role = highest_role((entry.get("name") for entry in _dicts(roles)), self._roles)
        name = user.get("name") if isinstance(user, dict) else None
        project_id = project.get("id") if isinstance(project, dict) else None
        ends = _moment(body)
        if role is None or ends is None or not _is_text(name) or not _is_text(project_id):
            return None, 0.0
        return Caller(str(name), role, str(project_id)), ends

    def _unavailable(self, why: str) -> Unavailable:
        """The reason is for the log only: the caller is not authenticated."""
        if self._last_logged[1] != why or self._last_logged[0] + RETRY_LOGIN_AFTER <= self._clock():
            self._last_logged = (self._clock(), why)
            log.warning("Keystone at %s %s.", self._url, why)
        return Unavailable(
            "This token cannot be checked now: Keystone does not answer as it should. Try again; the "
            "server's log says why."
        )


def _login(user: ServiceUser) -> dict[str, Any]:
    who = {"name": user.name, "password": user.password, "domain": {"name": user.user_domain}}
    scope = {"project": {"name": user.project, "domain": {"name": user.project_domain}}}
    return {"auth": {"identity": {"methods": ["password"], "password": {"user": who}}, "scope": scope}}


def _token_of(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, dict[str, Any]]).get("token", {})
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _moment(token: Mapping[str, Any]) -> float | None:
    try:
        ends = datetime.fromisoformat(str(token.get("expires_at")))
    except ValueError:
        return None
    return ends.timestamp() if ends.tzinfo else None


def _dicts(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 255 and value.isprintable()
