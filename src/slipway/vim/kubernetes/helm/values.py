"""Values of a chart, as requests give them, made into one document. They reach Helm as a file, never as arguments.

helm_parameters: {service.port: 8080, image: {tag: "1.1"}}     a path, or a whole object
helmparameter: ["service.port=8080"]                           texts, read as `helm --set` reads them
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from slipway.model.errors import BadRequest
from slipway.model.secrets import find_secrets, is_reference

LARGEST = 1 << 20  # bytes of all values: a release is kept in a Secret, which holds no more
MOST_PARTS = 16
_DOT = re.compile(r"(?<!\\)\.")
_PART = re.compile(r"[A-Za-z0-9_/\\.-]{1,200}")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
Pairs = Iterable[tuple[str, str, Any]]  # where it stands in the request, path of the value, the value


def value_path(text: Any, place: str) -> tuple[str, ...]:
    """The keys that lead to a value. A dot that belongs to a key is written with a backslash before it."""
    parts = _DOT.split(text) if isinstance(text, str) else []
    if not 0 < len(parts) <= MOST_PARTS or not all(_PART.fullmatch(part) for part in parts):
        raise BadRequest(
            f"{place}: it must be the path of a value, such as image.tag; give a list as a whole, in helm_parameters."
        )
    return tuple(part.replace("\\.", ".") for part in parts)


def read_pairs(given: Any, place: str) -> list[tuple[str, str, Any]]:
    """Texts `path=value`: true, false, null and whole numbers are those, anything else is a text."""
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise BadRequest(f"{place}: it must be a list of strings, each path=value.")
    pairs = []
    for at, one in enumerate(given):
        path, equals, value = one.partition("=")
        if not equals or "," in value or value.startswith(("{", "[")):
            raise BadRequest(
                f"{place}[{at}]: it must be one path=value without commas and brackets; give anything else in "
                "helm_parameters, as JSON."
            )
        if find_secrets({path: value}):
            raise BadRequest(
                f"{place}[{at}]: {path[:100]!r} is a secret by its name, and a string of a list is not kept as one; "
                f"give it in helm_parameters."
            )
        pairs.append((f"{place}[{at}]", path, _typed(value)))
    return pairs


def merged_values(pairs: Pairs) -> dict[str, Any]:
    """One document. BadRequest names what contradicts something before it."""
    document: dict[str, Any] = {}
    for place, path, value in pairs:
        *parents, last = value_path(path, place)
        holder = document
        for key in parents:
            inner = holder.get(key, {})
            if not isinstance(inner, dict) or is_reference(inner):
                raise BadRequest(f"{place}: {key!r} of it has a value already that is no object; keep one of the two.")
            holder[key] = dict(inner)  # the request keeps its own
            holder = holder[key]
        if last in holder:
            raise BadRequest(f"{place}: the value is there twice; keep one of the two.")
        holder[last] = value
    if len(msgspec.json.encode(document)) > LARGEST:
        raise BadRequest(f"additionalParams.helm_parameters: values have more than {LARGEST >> 10} KiB; give fewer.")
    return document


def with_value(document: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy with a value that Slipway sets: it wins over what the request says."""
    first, *rest = path
    inner = document.get(first)
    changed = with_value(inner if isinstance(inner, dict) else {}, tuple(rest), value) if rest else value
    return {**document, first: changed}


def _typed(text: str) -> Any:
    words = {"true": True, "false": False, "null": None, "": ""}
    if text in words:
        return words[text]
    return int(text) if _NUMBER.fullmatch(text) else text
