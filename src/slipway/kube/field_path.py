"""Paths to values in an object: dotted, or the part of JSONPath that names one value.

field_path("status.readyReplicas").of(found)
field_path("{.metadata.annotations['example.com/state']}"), field_path("$.status.addresses[0].ip")
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

LONGEST = 256  # characters
DEEPEST = 32  # segments
_SEGMENT = re.compile(r"""\.?([A-Za-z0-9_-]+)|\[(\d{1,6})\]|\['([^'\[\]]+)'\]|\["([^"\[\]]+)"\]""")


@dataclass(frozen=True)
class FieldPath:
    text: str
    segments: tuple[str | int, ...]

    def of(self, found: Any) -> Any:
        """None when it is not there."""
        value = found
        for segment in self.segments:
            if isinstance(segment, str) and isinstance(value, dict):
                value = value.get(segment)
            elif isinstance(segment, int) and isinstance(value, list) and segment < len(value):
                value = value[segment]
            else:
                return None
        return value

    def __str__(self) -> str:
        return self.text


def field_path(text: str) -> FieldPath:
    """ValueError says what is wrong with it, as the end of a sentence ("path ...")."""
    if not 0 < len(text) <= LONGEST:
        raise ValueError(f"must have 1 to {LONGEST} characters")
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    inner = inner.removeprefix("$")
    segments: list[str | int] = []
    at = 0
    while at < len(inner):
        match = _SEGMENT.match(inner, at)
        # A name follows a dot, but for the first one.
        if match is None or (match[1] and at > 0 and inner[at] != "."):
            raise ValueError(f"can't be read from character {at + 1} on ({inner[at : at + 20]!r})")
        segments.append(int(match[2]) if match[2] else match[1] or match[3] or match[4])
        at = match.end()
    if not 0 < len(segments) <= DEEPEST:
        raise ValueError(f"must have 1 to {DEEPEST} parts")
    return FieldPath(text, tuple(segments))
