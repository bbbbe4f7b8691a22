"""What a connection to a sandbox may say: which engine, and how people and Slipway log in to its machines.

`sandbox://local` is the engine that is there, or one of our own; `unix:///path` is exactly that one. Other machines'
engines are no use: a machine's addresses are known only where its bridges are.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from slipway.model.action import VimConnection
from slipway.model.errors import BadRequest
from slipway.model.vim import SANDBOX

LOCAL = "sandbox://local"
USER = "slipway"
_UNIX = re.compile(r"unix:///[^\x00\n]{1,107}")


class Access(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who may log in. The user is there in any case, with sudo; the sandbox's own key always opens."""

    password: str | None = None
    authorized_keys: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Access(...)"


def endpoint(connection: VimConnection) -> str:
    if connection.vim_type != SANDBOX:
        raise BadRequest(f"vimType: {connection.vim_type!r} is not {SANDBOX}.")
    value = connection.interface_info.get("endpoint")
    if not isinstance(value, str) or (value != LOCAL and not _UNIX.fullmatch(value)):
        raise BadRequest(
            f"interfaceInfo.endpoint: {value!r} is not a sandbox; write {LOCAL}, or unix:///path of an engine's socket."
        )
    return value


def access(connection: VimConnection) -> Access:
    """BadRequest names the field, and never says what is in it."""
    given: dict[str, Any] = connection.access_info
    if given.get("username", USER) != USER:
        raise BadRequest(f"accessInfo.username: machines of a sandbox have the user {USER}.")
    try:
        found = msgspec.convert({key: given[key] for key in given if key != "username"}, Access)
    except msgspec.ValidationError:
        raise BadRequest("accessInfo: password is a string and authorizedKeys a list of strings.") from None
    if found.password is not None and any(sign in found.password for sign in "\n\r\0"):
        raise BadRequest("accessInfo.password: must be one line.")
    for key in found.authorized_keys:
        if not re.fullmatch(r"(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\n\r\x00]*)?", key):
            raise BadRequest("accessInfo.authorizedKeys: a line is not a public key in OpenSSH's form.")
    return found
