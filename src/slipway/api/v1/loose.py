"""What all types of v1 have in common: attributes that nobody knows are passed over."""

from __future__ import annotations

import msgspec


class Loose(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    pass
