"""JSON merge patch (RFC 7396)."""

from __future__ import annotations

from typing import Any

import msgspec

from slipway.model.errors import BadRequest

LARGEST = 1024 * 1024  # bytes as JSON


def merge_patch(target: Any, patch: Any) -> Any:
    """A new value: objects merge key by key, null removes a key, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def bounded(document: Any, name: str) -> Any:
    """The document. BadRequest when it has grown too large: many small patches add up to what no body may have."""
    if (size := len(msgspec.json.encode(document))) > LARGEST:
        raise BadRequest(f"{name}: it would have {size} bytes as JSON; at most {LARGEST} are kept. Remove some of it.")
    return document


def check_bounds(documents: dict[str, Any]) -> None:
    """The same of several attributes of a request, by their names in the code."""
    for name, document in documents.items():
        bounded(document, "".join(part.title() if at else part for at, part in enumerate(name.split("_"))))
