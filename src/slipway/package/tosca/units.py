"""TOSCA sizes (`4 GB`, `512 MiB`, `4096`) in bytes."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]{1,6})?)\s*([kmgt]i?)?(?:b(?:ytes)?)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size_in_bytes(text: str) -> int | None:
    """None when it is not a size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    prefix = (match[2] or "").lower()
    base = 1024 if prefix.endswith("i") else 1000
    number = match[1].lstrip("0") or "0"
    number = number if len(number) <= 30 else "9" * 30  # however long it is: too large, and no work to compute
    factor: int = base ** _POWERS[prefix.removesuffix("i")]
    return round(float(number) * factor) if "." in number else int(number) * factor
