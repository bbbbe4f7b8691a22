"""What identity providers (Keystone, OpenID issuers) have in common: they know tokens, and their names for our roles.

`member=operator` in the settings lets Keystone's members be operators here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from slipway.model.access import Caller, Role
from slipway.model.errors import SettingsError


class IdentityProvider(Protocol):
    async def authenticate(self, token: str) -> Caller | None:
        """Who sends the token; None when it is not one of theirs. Unavailable when it cannot be checked now."""
        ...

    async def close(self) -> None: ...


def read_role_names(entries: Iterable[str], setting: str) -> dict[str, Role]:
    """SettingsError names the setting and the entry that is wrong."""
    found: dict[str, Role] = {}
    for entry in entries:
        theirs, _, ours = (part.strip() for part in entry.partition("="))
        role = next((role for role in Role if str(role) == ours), None)
        if not theirs or role is None:
            raise SettingsError(
                f"{setting}: {entry!r} must be NAME=ROLE, with a role that is one of: {', '.join(map(str, Role))}."
            )
        found[theirs] = role
    return found


def highest_role(names: Iterable[object], known: Mapping[str, Role]) -> Role | None:
    """Of those that the names stand for; None when none of them is known here."""
    roles = [known[name] for name in names if isinstance(name, str) and name in known]
    return max(roles, default=None)
