"""What a script printed, read as untrusted input: one JSON object with the few keys that are allowed, and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from slipway.model.errors import BadRequest, StepError
from slipway.model.journal import ERROR_DATA
from slipway.model.json_documents import bounded, merge_patch
from slipway.model.secrets import masked, refuse_references, secret_strings

INSTANCE = "vnfInstance"
CHANGEABLE = ("metadata", "extensions", "vnfConfigurableProperties")
DEEPEST = 32
LARGEST_NUMBER = 1 << 63
LINES_TOLD = 5


@dataclass(frozen=True)
class ScriptResult:
    """`instance` is a merge patch, `error_data` for the scripts that run after a failure."""

    instance: dict[str, Any] = field(default_factory=dict)
    error_data: dict[str, Any] | None = None


def read_result(printed: bytes, script: str, hook: str, before: Mapping[str, Any]) -> ScriptResult:
    """StepError that names the place when it is anything but one JSON object with what may be in it.

    `before`: the instance that it changes, which must not grow without end by answers that are small enough each.
    """
    try:
        result = _checked(_document(printed))
        for name, patch in result.instance.items():
            bounded(merge_patch(before.get(name), patch), name)
        return result
    except BadRequest as error:
        raise StepError(
            f"{script}, the script for {hook}, ended with 0, but its answer on stdout can't be used: {error.detail}",
            cure="print one JSON object, {} at least, and all other words on stderr (docs/contracts/mgmt.md).",
            data=read_error_data(printed),
        ) from None


def read_error_data(printed: bytes) -> dict[str, Any]:
    """What a script that failed wants given back, as the data of its step; nothing when it can't be used."""
    try:
        data = _document(printed).get(ERROR_DATA)
        return {ERROR_DATA: usable(data, ERROR_DATA)} if data else {}
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


def _checked(document: dict[str, Any]) -> ScriptResult:
    if unknown := sorted(document.keys() - {INSTANCE, ERROR_DATA}):
        raise BadRequest(f"{unknown[0][:100]!r} must be one of: {INSTANCE}, {ERROR_DATA}.")
    patch = usable(document.get(INSTANCE) or {}, INSTANCE)
    for name, value in patch.items():
        if name not in CHANGEABLE:
            raise BadRequest(f"{INSTANCE}.{name[:100]}: a script may change {', '.join(CHANGEABLE)} only.")
        if not isinstance(value, dict):
            raise BadRequest(f"{INSTANCE}.{name}: must be an object.")
    data = document.get(ERROR_DATA)
    return ScriptResult(patch, usable(data, ERROR_DATA) if data else None)


def usable(value: Any, place: str) -> dict[str, Any]:
    """What the database and the answers of the API can hold."""
    if not isinstance(value, dict):
        raise BadRequest(f"{place}: must be an object.")
    _check(value, place, DEEPEST)
    refuse_references(value, place)
    return value


def _check(value: Any, place: str, deeper: int) -> None:
    if not deeper:
        raise BadRequest(f"{place}: it is nested more than {DEEPEST} levels deep.")
    if isinstance(value, str) and "\0" in value:
        raise BadRequest(f"{place}: a string holds a NUL character.")
    if isinstance(value, int) and abs(value) >= LARGEST_NUMBER:
        raise BadRequest(f"{place}: a number is too large.")
    for item in (
        (*value.keys(), *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        _check(item, place, deeper - 1)


def said(stderr: bytes, secrets: Any) -> str:
    """The last lines, for a person."""
    text = mask(stderr.decode(errors="replace"), secrets)
    lines = [line for line in text.splitlines() if line.strip()][-LINES_TOLD:]
    return f" It said: {' | '.join(map(printable, lines))}" if lines else ""


def mask(text: str, secrets: Any) -> str:
    return masked(text, secret_strings(secrets))


def printable(line: str) -> str:
    """Without control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
