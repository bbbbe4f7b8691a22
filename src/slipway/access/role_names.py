"""What others call our roles: `member=operator` in the settings lets Keystone's members be operators here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slipway.model.access import Role
from slipway.model.errors import SettingsError


def read_role_names(entries: Iterable[str], setting: str) -> dict[str, Role]:
    """SettingsError names the setting and the entry that is wrong."""
    found: dict[str, Role] = {}
    for entry in entries:
        theirs, _, ours = (part.strip() for part in entry.partition("="))
        role = next((role for role in Role if str(role) == ours), None)
        if not theirs or role is None:
            raise SettingsError(
                f"{setting}: {entry!r} is none. Write NAME=ROLE; roles are {', '.join(map(str, Role))}."
            )
        found[theirs] = role
    return found


def highest(names: Iterable[object], known: Mapping[str, Role]) -> Role | None:
    """The most that one of the names allows; None when none of them means anything here."""
    roles = [known[name] for name in names if isinstance(name, str) and name in known]
    return max(roles, default=None)
