"""Tokens of an OpenID provider: JWTs, accepted when the issuer of the settings has signed them for our audience.

Only signatures that a public key can check are taken, and only with the keys that the issuer publishes: what a token
says about its own key (jku, jwk, x5u) is not looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slipway.access.identity_provider import highest_role
from slipway.access.issuer_keys import ALGORITHMS, IssuerKeys
from slipway.model.access import DEFAULT_PROJECT, Caller, Role
from slipway.outgoing.guard import Guard

LEEWAY = 30.0  # seconds that clocks may differ
LONGEST = 16384  # characters of a token
TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})  # others are for something else, as a logout is


@dataclass(frozen=True)
class Claims:
    """Where a token says what its bearer may do, and in which project. Dots lead inwards: `realm_access.roles`."""

    roles: Mapping[str, Role]
    role: str = "roles"
    project: str | None = "project"  # None: all are in the default project


class Issuer:
    """`guard`: the issuer is the operator's own, so one that allows loopback will do."""

    def __init__(
        self,
        issuer: str,
        audience: str,
        guard: Guard,
        claims: Claims,
        *,
        verify: bool | str = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._claims = claims
        self._clock = clock
        self._keys = IssuerKeys(issuer, guard, verify, clock)

    async def authenticate(self, token: str) -> Caller | None:
        """Who sends it; None when it is not valid. Unavailable when the issuer's keys cannot be fetched."""
        header = _header(token)
        if header is None:
            return None
        algorithm, key_id = header
        key = await self._keys.find(key_id, algorithm)
        if key is None:
            return None
        body = self._verified(token, key, algorithm)
        return None if body is None else self._read(body)

    async def close(self) -> None:
        await self._keys.close()

    def _verified(self, token: str, key: Any, algorithm: str) -> dict[str, Any] | None:
        import jwt

        # The times are read here, by our clock; PyJWT has only the machine's.
        options: Any = {"require": ["exp", "iss", "aud", "sub"], "verify_exp": False, "verify_nbf": False,
                        "verify_iat": False}  # fmt: skip
        try:
            body: dict[str, Any] = jwt.decode(
                token, key, algorithms=[algorithm], audience=self._audience, issuer=self._issuer, options=options
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            return None
        now = self._clock()
        ends, begins = body["exp"], body.get("nbf", 0)
        if not _is_number(ends) or not _is_number(begins) or not begins - LEEWAY <= now < ends + LEEWAY:
            return None
        return body

    def _read(self, body: Mapping[str, Any]) -> Caller | None:
        said = _claim(body, self._claims.role)
        role = highest_role(
            said.split() if isinstance(said, str) else said if isinstance(said, list) else (), self._claims.roles
        )
        project = DEFAULT_PROJECT if self._claims.project is None else _claim(body, self._claims.project)
        name = body.get("preferred_username") or body["sub"]
        if role is None or not _is_text(project) or not _is_text(name):
            return None
        return Caller(name, role, str(project))


def _header(token: str) -> tuple[str, str | None] | None:
    """Algorithm and key, as an unchecked token says; None when it is none that could be checked."""
    if len(token) > LONGEST or token.count(".") != 2 or not token.isascii():
        return None
    import jwt

    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        return None
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS or {"crit", "b64"} & header.keys():
        return None
    if not isinstance(key_id, str | None) or not isinstance(kind, str) or kind.lower() not in TYPES:
        return None
    return algorithm, key_id


def _claim(body: Mapping[str, Any], path: str) -> object:
    """By its whole name first: some are URLs, dots and all."""
    if path in body:
        return body[path]
    found: object = body
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12  # NaN is not


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 255 and value.isprintable()
