"""Callers: their names, roles and projects."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

DEFAULT_PROJECT = "default"

# Lifetimes of a token for a cluster's API, as in a kubeconfig.
SHORTEST_KUBE_TOKEN = timedelta(minutes=10)  # the Kubernetes API grants no less
LONGEST_KUBE_TOKEN = timedelta(days=7)
DEFAULT_KUBE_TOKEN = timedelta(hours=12)  # for a person, who can fetch another


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


# Every caller where access control is off; and Slipway itself.
ADMIN_OF_ALL = Caller("anybody", Role.ADMIN, None)
# The caller of a public path, which needs no token.
ANONYMOUS = Caller("nobody", Role.READER, "")
