"""Who asks: a name, what they may do, and whose things they see."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

DEFAULT_PROJECT = "default"


class Role(IntEnum):
    """Each may do what those before it may."""

    READER = 1
    OPERATOR = 2
    ADMIN = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Caller:
    """`project` None: all projects are there for this caller."""

    name: str
    role: Role
    project: str | None

    @property
    def home(self) -> str:
        """The project of what this caller makes."""
        return self.project or DEFAULT_PROJECT

    @property
    def is_admin_of_all(self) -> bool:
        return self.role is Role.ADMIN and self.project is None


# Everybody, where access control is off; and Slipway itself.
ANYBODY = Caller("anybody", Role.ADMIN, None)
# Whoever asks for what is for everybody.
NOBODY = Caller("nobody", Role.READER, "")
