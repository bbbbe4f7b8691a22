"""SOL003 2.6.1: the same core as v2, said in the words of an older version of the standard."""

from __future__ import annotations

import msgspec


class LenientStruct(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True, kw_only=True):
    """Base of the types of version 1: attributes that are not known are ignored."""
