"""Which attributes a resource has, read from its type: what filters and field selectors may name.

The types are the only list there is. A path is checked against them before it meets a document or the database.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from slipway.model.errors import BadRequest

MAP_KEY = "@key"

_ESCAPE = re.compile("~.?", re.DOTALL)
_UNESCAPED = {"~0": "~", "~1": "/", "~a": ",", "~b": "@"}
_ESCAPED = {character: escape for escape, character in _UNESCAPED.items()}


class Scalar(Enum):
    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "true or false"
    TIME = "date and time"


class Free(msgspec.Struct, frozen=True):
    """Anything goes: the content of metadata, additionalParams and the like."""


class Fields(msgspec.Struct, frozen=True):
    """An object of a declared type."""

    known: Mapping[str, Attribute]
    required: frozenset[str]


class Array(msgspec.Struct, frozen=True):
    item: Attribute


class Map(msgspec.Struct, frozen=True):
    value: Attribute


Attribute = Scalar | Free | Fields | Array | Map


class Key(msgspec.Struct, frozen=True):
    """From an object to the value of one of its keys."""

    name: str


class Each(Enum):
    """From an array or a map to all it holds."""

    ITEM = "item"
    ENTRY = "entry"
    KEY = "key"


Step = Key | Each


@cache
def attributes_of(kind: Any) -> Attribute:
    return _attribute(inspect.type_info(kind))


def read_path(text: str, place: str) -> tuple[str, ...]:
    """`a/b` as names. In a name ~0 ~1 ~a ~b stand for ~ / , @. `place` begins the error."""
    path = tuple(_ESCAPE.sub(lambda escape: _unescaped(escape[0], place), name) for name in text.split("/"))
    if "" in path:
        raise BadRequest(f"{place}: an attribute has no name; write attributes as a/b/c.")
    return path


def write_path(path: Sequence[str]) -> str:
    return "/".join(re.sub("[~/,@]", lambda character: _ESCAPED[character[0]], name) for name in path)


def resolve(
    resource: Attribute, path: Sequence[str], place: str, by_key: bool = False
) -> tuple[tuple[Step, ...], Attribute]:
    """The way to an attribute and what it is. `place` begins the error.

    Arrays are passed through without being named. After a map comes a key, or an attribute of its values, which then
    means those of all entries; the attribute goes first when a key reads the same. `by_key` leads on to all its keys.
    """
    steps: list[Step] = []
    here = resource
    for position, segment in enumerate(path):
        here = _through_arrays(here, steps)
        if isinstance(here, Map) and isinstance(here.value, Fields) and segment in here.value.known:
            steps.append(Each.ENTRY)
            here = here.value
        here = _below(here, segment, path[:position], place)
        steps.append(Key(segment))
    here = _through_arrays(here, steps)
    if by_key:
        if not isinstance(here, Map | Free):
            raise BadRequest(f"{place}: {write_path(path)} is not a map, so it has no {MAP_KEY}.")
        return (*steps, Each.KEY), Scalar.TEXT
    return tuple(steps), here


def _below(here: Attribute, segment: str, before: Sequence[str], place: str) -> Attribute:
    match here:
        case Fields(known=known) if segment in known:
            return known[segment]
        case Fields(known=known):
            near = difflib.get_close_matches(segment, known, n=3, cutoff=0.5) or sorted(known)
            where = f"{write_path(before)} has" if before else "there is"
            raise BadRequest(f"{place}: {where} no attribute {segment!r}. Did you mean: {', '.join(near)}?")
        case Map(value=value):
            return value
        case Free():
            return here
    raise BadRequest(f"{place}: {write_path(before)} has no attributes below it.")


def _unescaped(escape: str, place: str) -> str:
    if escape not in _UNESCAPED:
        raise BadRequest(f"{place}: {escape!r} means nothing; write ~ as ~0, / as ~1, a comma as ~a and @ as ~b.")
    return _UNESCAPED[escape]


def _through_arrays(here: Attribute, steps: list[Step]) -> Attribute:
    while isinstance(here, Array):
        steps.append(Each.ITEM)
        here = here.item
    return here


def _attribute(kind: inspect.Type) -> Attribute:
    match kind:
        case inspect.StructType(fields=fields):
            known = {field.encode_name: _attribute(field.type) for field in fields}
            return Fields(known, frozenset(field.encode_name for field in fields if field.required))
        case inspect.UnionType(types=types):
            alternatives = [_attribute(one) for one in types if not isinstance(one, inspect.NoneType)]
            return alternatives[0] if len(alternatives) == 1 else Free()
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return Array(_attribute(item))
        case inspect.DictType(value_type=value):
            return Map(_attribute(value))
        case inspect.StrType() | inspect.EnumType():
            return Scalar.TEXT
        case inspect.IntType() | inspect.FloatType():
            return Scalar.NUMBER
        case inspect.BoolType():
            return Scalar.BOOLEAN
        case inspect.DateTimeType():
            return Scalar.TIME
    return Free()
