"""Who may come in, and in which version: asked of every request before it meets a route, so that none can forget it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slipway.access.callers import Callers
from slipway.model.access import ANYBODY, NOBODY, Caller
from slipway.model.errors import BadRequest, NotAcceptable, NotFound, Unauthorized

LCM_VERSION = "2.0.0"
LCM_PREFIX = "/vnflcm/v2"
VERSIONLESS = frozenset({f"{LCM_PREFIX}/api_versions", f"{LCM_PREFIX}/api_versions/"})

_VERSION = re.compile(rb"(\d+\.\d+\.\d+)(-impl:.*)?")

Headers = Iterable[tuple[bytes, bytes]]


class Gate:
    """`callers` None lets everybody in. `public` are the paths that need no token."""

    def __init__(self, callers: Callers | None, public: frozenset[str]) -> None:
        self._callers = callers
        self._public = public

    async def enter(self, path: str, headers: Headers) -> Caller:
        """Who asks. RequestError when the request goes no further."""
        caller = NOBODY if path in self._public else await self._caller(headers)
        if path.startswith(LCM_PREFIX) and path not in VERSIONLESS:
            _check_version(headers)
        if "\0" in path:
            raise NotFound("There is nothing at this path: it has a zero character in it.")
        return caller

    async def _caller(self, headers: Headers) -> Caller:
        if self._callers is None:
            return ANYBODY
        given = b""
        for name, value in headers:
            if name == b"x-auth-token":
                given = value
                break
            if name == b"authorization" and value[:7].lower() == b"bearer ":
                given = value[7:].strip()
        caller = await self._callers.caller(given) if given else None
        if caller is None:
            what = "The token is not valid" if given else "A token is missing"
            raise Unauthorized(f"{what}. Send it as 'X-Auth-Token: <token>' or 'Authorization: Bearer <token>'.")
        return caller


def _check_version(headers: Headers) -> None:
    given = next((value for name, value in headers if name == b"version"), None)
    if given is None:
        raise BadRequest(f"The header 'Version' is missing. Send 'Version: {LCM_VERSION}'.")
    if (match := _VERSION.fullmatch(given)) is None:
        raise BadRequest(f"The header 'Version' is no version number such as {LCM_VERSION}.")
    if match[1] != LCM_VERSION.encode():
        raise NotAcceptable(f"Version {match[1].decode()} is not supported; supported is {LCM_VERSION}.")
