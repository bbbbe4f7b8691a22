"""Strings of an accessInfo that a login needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slipway.model.errors import BadRequest


def string_fields(access_info: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Those that are there and not empty. BadRequest when one is not a string."""
    found: dict[str, str] = {}
    for name in names:
        value = access_info.get(name)
        if value is None or value == "":
            continue
        if not isinstance(value, str):
            raise BadRequest(f"accessInfo.{name}: must be a string.")
        found[name] = value
    return found
