"""A registered VIM: named once, used by name in requests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

SIMULATED = "SLIPWAY.SIMULATED.V_1"
SANDBOX = "SLIPWAY.SANDBOX.V_1"
KUBERNETES = "ETSINFV.KUBERNETES.V_1"


class Vim(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: str
    name: str
    vim_type: str
    description: str | None = None
    is_default: bool = False
    interface_info: dict[str, Any] = {}
    access_info: dict[str, Any] = {}  # secrets are references
    extra: dict[str, Any] = {}
    created_at: datetime
