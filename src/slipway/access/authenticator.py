"""Checks tokens and says who sent them: the first token, those that were added, those of identity providers."""

from __future__ import annotations

import hmac
import secrets
import time
import uuid
from collections.abc import Callable, Sequence

from slipway.access.identity_provider import IdentityProvider
from slipway.model.access import Caller, Role
from slipway.model.clock import utcnow
from slipway.model.credential_cache import CredentialCache
from slipway.model.errors import Forbidden
from slipway.store import tokens
from slipway.store.database import Database
from slipway.store.tables import PROJECT
from slipway.store.tokens import TokenRecord

CACHE_SECONDS = 5.0  # of a stored token; what is removed by this process is forgotten at once
MOST_CACHED = 4096
LONGEST = 16384  # characters of any token

FIRST = Caller("first token", Role.ADMIN, None)


class Authenticator:
    """`first` is the token made at the first start: it may do everything, everywhere."""

    def __init__(
        self,
        first: str,
        database: Database,
        providers: Sequence[IdentityProvider] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first = first.encode()
        self._database = database
        self._providers = tuple(providers)
        self._clock = clock
        self._known: CredentialCache[Caller] = CredentialCache(MOST_CACHED, clock)

    async def authenticate(self, token: bytes) -> Caller | None:
        if hmac.compare_digest(token, self._first):
            return FIRST
        try:
            text = token.decode("ascii")
        except UnicodeDecodeError:
            return None
        if not text or len(text) > LONGEST:
            return None
        known = self._known  # as it is now: a token that is removed during the look-up must not be cached
        if (remembered := known.get(text)) is not None:
            return remembered
        if (record := await self._database.read_one(tokens.find, text)) is not None:
            caller = Caller(record.name, tokens.role_of(record), record.project)
            known.keep(text, caller, self._clock() + CACHE_SECONDS)
            return caller
        for provider in self._providers:
            if (found := await provider.authenticate(text)) is not None:
                return found if len(found.project or "") <= PROJECT else None  # it could own nothing
        return None

    async def add(self, by: Caller, name: str, role: Role, project: str | None) -> tuple[TokenRecord, str]:
        """The record, and the token itself, which can't be read again."""
        if by.project is not None and project != by.project:
            raise Forbidden(f"project: you may give tokens for the project {by.project!r} only.")
        token = secrets.token_urlsafe(32)
        record = TokenRecord(id=str(uuid.uuid4()), name=name, role=str(role), project=project, created_at=utcnow())
        await self._database.write(tokens.insert, record, token)
        return record, token

    async def all(self, by: Caller) -> list[TokenRecord]:
        return await self._database.read(tokens.list_all, by.project)

    async def remove(self, by: Caller, name_or_id: str) -> None:
        await self._database.write(tokens.delete, name_or_id, by.project)
        self._known = CredentialCache(MOST_CACHED, self._clock)

    async def close(self) -> None:
        for provider in self._providers:
            await provider.close()
