"""What an unquoted word in YAML means.

The rules of YAML 1.1 as PyYAML users know them, without its traps: dates stay text, `1:30` stays text, and so do
numbers that JSON or a database could not hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

Scalar = str | int | float | bool | None

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})
_FALSE = frozenset({"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})
_INT = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[0-9]+[eE][-+][0-9]+)"  # 1e+06, as Go writes a million
)
_LONGEST_NUMBER = 64
_WIDEST = 2**63


def resolved(text: str) -> Scalar:
    """The value of a plain scalar without a tag."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if len(text) <= _LONGEST_NUMBER and text[0] in "-+.0123456789":
        if _INT.fullmatch(text) and (number := _integer(text)) is not None:
            return number
        if _FLOAT.fullmatch(text) and (real := _real(text)) is not None:
            return real
    return text


def _integer(text: str) -> int | None:
    digits = text.replace("_", "").lower()
    unsigned = digits.lstrip("+-")
    if len(unsigned) > 1 and unsigned[0] == "0" and unsigned[1].isdigit():
        digits = digits.replace("0", "0o", 1)
    try:
        number = int(digits, 0)
    except ValueError:
        return None
    return number if -_WIDEST <= number < _WIDEST else None


def _real(text: str) -> float | None:
    number = float(text.replace("_", ""))
    return number if math.isfinite(number) else None


def tagged(tag: str, text: str) -> Scalar:
    """The value under an explicit core tag. LookupError: no such tag; ValueError: the text does not fit it."""
    if tag in ("str", "timestamp"):
        return text
    value = resolved(text)
    if not _FITS[tag](value):
        raise ValueError(text)
    return float(value) if tag == "float" and isinstance(value, int) else value


_FITS: dict[str, Callable[[Scalar], bool]] = {
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
