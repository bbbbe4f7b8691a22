"""JSON documents: merge patches (RFC 7396), limits of their size and shape, and errors that name an attribute."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from slipway.model.errors import BadRequest

LARGEST = 1024 * 1024  # bytes as JSON
DEEPEST = 64  # levels
LARGEST_INTEGER = 2**63 - 1
VALUE_BYTES = 64  # of a value in memory, beside its text
_PLACE = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")


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


def difference(before: Any, after: Any) -> Any:
    """The merge patch from one to the other. It can't say of what is new that it is null."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return after
    gone = {key: None for key in before if key not in after}
    return gone | {key: difference(before.get(key), value) for key, value in after.items() if before.get(key) != value}


def bounded(document: Any, name: str) -> Any:
    """The document. BadRequest when it has grown too large: many small patches add up to what no body may have."""
    if (size := len(msgspec.json.encode(document))) > LARGEST:
        raise BadRequest(f"{name}: it would have {size} bytes as JSON; at most {LARGEST} are kept. Remove some of it.")
    return document


def check_bounds(documents: dict[str, Any]) -> None:
    """The same of several attributes of a request, by their names in the code."""
    for name, document in documents.items():
        bounded(document, "".join(part.title() if at else part for at, part in enumerate(name.split("_"))))


def has_more_values(raw: bytes, most: int) -> bool:
    """Whether a JSON document has more values than that, keys included, told from its bytes.

    A value of two bytes becomes an object of a hundred, so a limit of bytes alone bounds neither memory nor time.
    Strings are looked into only if that matters.
    """
    if _separators(raw) <= most:
        return False
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return plain.count(b'"') > 2 * most or _separators(b"".join(plain.split(b'"')[::2])) > most


def memory_of(raw: bytes) -> int:
    """About how many bytes a JSON document takes once it is read: the smallest value takes some sixty."""
    return len(raw) + VALUE_BYTES * _separators(raw)


def _separators(raw: bytes) -> int:
    """Each value and each key has one before it, but for the first."""
    return raw.count(b",") + raw.count(b":") + raw.count(b"{") + raw.count(b"[")


def check_storable(document: Any) -> None:
    """ValueError for what later layers and the databases cannot hold; its text follows a subject ("The body ...")."""
    waiting = [(document, 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > DEEPEST:
            raise ValueError(f"is nested deeper than {DEEPEST} levels")
        if isinstance(value, dict):
            waiting += [(key, depth) for key in value] + [(item, depth + 1) for item in value.values()]
        elif isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        elif isinstance(value, str) and "\0" in value:
            raise ValueError("has a zero character (\\u0000) in a string; leave it out")
        elif isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            raise ValueError("has an integer of more than 64 bits; write it as a string")


def split_validation_error(error: msgspec.ValidationError) -> tuple[str, str]:
    """The attribute that msgspec's message names ("" for the document itself), and what is wrong with it."""
    message = str(error)
    match = _PLACE.search(message)
    return (match[1], message[: match.start()]) if match else ("", message)
