"""What a script printed, taken as what it is: text of a stranger, of which little is believed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from slipway.model.errors import BadRequest, StepError
from slipway.model.journal import ERROR_DATA
from slipway.model.secrets import refuse_references

INSTANCE = "vnfInstance"
CHANGEABLE = ("metadata", "extensions", "vnfConfigurableProperties")
DEEPEST = 32
LARGEST_NUMBER = 1 << 63


@dataclass(frozen=True)
class Answer:
    """`instance` is a merge patch, `error_data` for the scripts that run after a failure."""

    instance: dict[str, Any] = field(default_factory=dict)
    error_data: dict[str, Any] | None = None


def answer_of(printed: bytes, script: str, hook: str) -> Answer:
    """StepError that names the place when it is anything but one JSON object with what may be in it."""
    try:
        return _checked(_document(printed))
    except BadRequest as error:
        raise StepError(
            f"{script}, the script for {hook}, ended with 0, but its answer on stdout can't be used: {error.detail}",
            cure="print one JSON object, {} at least, and all other words on stderr (docs/contracts/mgmt.md).",
            data=left_by(printed),
        ) from None


def left_by(printed: bytes) -> dict[str, Any]:
    """What a script that failed wants given back, as the data of its step; nothing when it can't be used."""
    try:
        data = _document(printed).get(ERROR_DATA)
        return {ERROR_DATA: _usable(data, ERROR_DATA)} if data else {}
    except BadRequest:
        return {}


def _document(printed: bytes) -> dict[str, Any]:
    if not printed.strip():
        raise BadRequest("there is none.")
    try:
        document = msgspec.json.decode(printed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"it is not JSON ({error}).") from None
    if not isinstance(document, dict):
        raise BadRequest("it is not a JSON object.")
    return document


def _checked(document: dict[str, Any]) -> Answer:
    if unknown := sorted(document.keys() - {INSTANCE, ERROR_DATA}):
        raise BadRequest(f"{unknown[0][:100]!r} is none of {INSTANCE}, {ERROR_DATA}.")
    patch = _usable(document.get(INSTANCE) or {}, INSTANCE)
    for name, value in patch.items():
        if name not in CHANGEABLE:
            raise BadRequest(f"{INSTANCE}.{name[:100]}: a script may change {', '.join(CHANGEABLE)} only.")
        if not isinstance(value, dict):
            raise BadRequest(f"{INSTANCE}.{name}: an object is wanted.")
    data = document.get(ERROR_DATA)
    return Answer(patch, _usable(data, ERROR_DATA) if data else None)


def _usable(value: Any, place: str) -> dict[str, Any]:
    """What the database and the answers of the API can hold."""
    if not isinstance(value, dict):
        raise BadRequest(f"{place}: an object is wanted.")
    _check(value, place, DEEPEST)
    refuse_references(value, place)
    return value


def _check(value: Any, place: str, deeper: int) -> None:
    if not deeper:
        raise BadRequest(f"{place}: it is nested more than {DEEPEST} levels deep.")
    if isinstance(value, str) and "\0" in value:
        raise BadRequest(f"{place}: a text holds a NUL character.")
    if isinstance(value, int) and abs(value) >= LARGEST_NUMBER:
        raise BadRequest(f"{place}: a number is too large.")
    for item in (
        (*value.keys(), *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        _check(item, place, deeper - 1)
