"""Merge patches (RFC 7396)."""

from __future__ import annotations

from typing import Any


def json_merge_patch(target: Any, patch: Any) -> Any:
    """Changes `target` where both are objects, and answers it."""
    if not isinstance(patch, dict):
        return patch
    merged = target if isinstance(target, dict) else {}
    for key in patch:
        if patch[key] is None:
            merged.pop(key, None)
        else:
            merged[key] = json_merge_patch(merged.get(key), patch[key])
    return merged
