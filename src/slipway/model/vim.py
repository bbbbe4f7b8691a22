"""A registered VIM: named once, used by name in requests."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import msgspec

from slipway.model.access import DEFAULT_PROJECT

SIMULATED = "SLIPWAY.SIMULATED.V_1"
SANDBOX = "SLIPWAY.SANDBOX.V_1"
KUBERNETES = "ETSINFV.KUBERNETES.V_1"
OPENSTACK = "ETSINFV.OPENSTACK_KEYSTONE.V_3"

# Whoever uses a VIM of these types has wide rights on Slipway's own host. So they are registered by an admin of all
# projects, are never described in a request, and are used as they are registered.
REGISTERED_ONLY = frozenset({SANDBOX})

# What people write in place of a vimType.
SHORT_TYPES = {"openstack": OPENSTACK, "kubernetes": KUBERNETES, "simulated": SIMULATED, "sandbox": SANDBOX}


class Vim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: str
    name: str
    project: str = DEFAULT_PROJECT  # whose it is
    vim_type: str
    description: str | None = None
    is_default: bool = False
    interface_info: dict[str, Any] = {}
    access_info: dict[str, Any] = {}  # secrets are references
    extra: dict[str, Any] = {}
    regions: tuple[str, ...] = ()  # found when it was logged in to: regions, or the namespaces of a cluster
    created_at: datetime


def is_made_here(vim_id: str) -> bool:
    """Whether Slipway registered it itself, as a cluster that it made: such ids come from others (UUID version 5)."""
    try:
        return uuid.UUID(vim_id).version == 5
    except ValueError:
        return False


class VimInfo(msgspec.Struct, frozen=True):
    """The result of a login to a VIM: a sentence for a person, and its regions or namespaces."""

    detail: str
    regions: tuple[str, ...] = ()
