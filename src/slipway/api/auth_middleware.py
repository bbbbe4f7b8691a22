"""Authentication and the check of the API version, for every request, before it is routed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slipway.access.authenticator import Authenticator
from slipway.model.access import ADMIN_OF_ALL, ANONYMOUS, Caller
from slipway.model.errors import BadRequest, NotAcceptable, NotFound, Unauthorized

LCM_VERSION = "2.0.0"
LCM_PREFIX = "/vnflcm/v2"
VERSIONLESS = frozenset({f"{LCM_PREFIX}/api_versions", f"{LCM_PREFIX}/api_versions/"})

_VERSION = re.compile(rb"(\d+\.\d+\.\d+)(-impl:.*)?")

Headers = Iterable[tuple[bytes, bytes]]


class AuthMiddleware:
    """`authenticator` None: access control is off. `public` are the paths that need no token."""

    def __init__(self, authenticator: Authenticator | None, public: frozenset[str]) -> None:
        self._authenticator = authenticator
        self._public = public

    async def enter(self, path: str, headers: Headers) -> Caller:
        """The caller, authenticated. RequestError when the request goes no further."""
        caller = ANONYMOUS if path in self._public else await self._authenticate(headers)
        if path.startswith(LCM_PREFIX) and path not in VERSIONLESS:
            _check_version(headers)
        if "\0" in path:
            raise NotFound("There is nothing at this path: it has a zero character in it.")
        return caller

    async def _authenticate(self, headers: Headers) -> Caller:
        if self._authenticator is None:
            return ADMIN_OF_ALL
        given = b""
        for name, value in headers:
            if name == b"x-auth-token":
                given = value
                break
            if name == b"authorization" and value[:7].lower() == b"bearer ":
                given = value[7:].strip()
        caller = await self._authenticator.authenticate(given) if given else None
        if caller is None:
            what = "The token is not valid" if given else "A token is missing"
            raise Unauthorized(f"{what}. Send it as 'X-Auth-Token: <token>' or 'Authorization: Bearer <token>'.")
        return caller


def _check_version(headers: Headers) -> None:
    given = next((value for name, value in headers if name == b"version"), None)
    if given is None:
        raise BadRequest(f"The header 'Version' is missing. Send 'Version: {LCM_VERSION}'.")
    if (match := _VERSION.fullmatch(given)) is None:
        raise BadRequest(f"The header 'Version' is not a version number such as {LCM_VERSION}.")
    if match[1] != LCM_VERSION.encode():
        raise NotAcceptable(f"Version {match[1].decode()} is not supported; supported is {LCM_VERSION}.")
