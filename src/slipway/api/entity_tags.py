"""If-Match: a change is made only to what the caller has read."""

from __future__ import annotations

from slipway.model.errors import PreconditionFailed


def expected_version(condition: str, current: int) -> int | None:
    """The version that a change must find; None when any will do. PreconditionFailed when it can't be found."""
    if condition.strip() == "*":
        return None
    if f'"{current}"' in {tag.strip() for tag in condition.split(",")}:
        return current
    raise PreconditionFailed(f'If-Match: the resource was changed; its ETag is now "{current}". Read it again.')
