"""Reads nested parameters by the types that declare them; one error names everything that is wrong.

A type of parameters is a struct whose fields carry their reader: `Annotated[str, text]`. So each parameter is declared
once, and the list that the documentation is checked against is the list that is read.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import NODEFAULT

from slipway.model.errors import BadRequest

P = TypeVar("P", bound="Parameters")
MOST_SHOWN = 20


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """An object of parameters."""

    @classmethod
    def contradictions(cls, given: dict[str, Any]) -> Iterator[tuple[str, Refusal]]:
        """What no single field shows: (name of a field, what is wrong with it). `given` are the fields read."""
        yield from ()


class Refusal(Exception):
    """A value that can't be used: what is wrong with it, and what to write instead."""

    def __init__(self, what: str, cure: str) -> None:
        super().__init__(what)
        self.what, self.cure = what, cure

    def at(self, path: str) -> str:
        return f"{path}: {self.what}; {self.cure}" + ("" if self.cure.endswith("?") else ".")


@dataclass(frozen=True)
class Nested:
    """The field holds an object of parameters, or None when it may be left out."""

    kind: type[Parameters]


@dataclass(frozen=True)
class ListOf:
    """The field holds a list of objects of parameters."""

    kind: type[Parameters]
    at_least: int = 0


@dataclass
class Problems:
    """Everything that is wrong, each with the full path of its field."""

    found: list[str] = field(default_factory=list)

    def add(self, path: str, refusal: Refusal) -> None:
        self.found.append(refusal.at(path))

    def raise_if_any(self) -> None:
        """One problem is the detail; several are numbered after the first, so that the detail begins with a path."""
        if self.found:
            first, *more = self.found[:MOST_SHOWN]
            left = len(self.found) - MOST_SHOWN
            rest = [f"There are {left} more."] if left > 0 else []
            raise BadRequest(" ".join([first, *(f"({at}) {one}" for at, one in enumerate(more, start=2)), *rest]))


def read(kind: type[P], value: Any, path: str) -> P:
    """The parameters, or BadRequest that names every field that is wrong."""
    problems = Problems()
    made = _object(kind, value, path, problems)
    problems.raise_if_any()
    assert made is not None  # noqa: S101 - without a problem there is a value
    return made


def _object(kind: type[P], value: Any, path: str, problems: Problems) -> P | None:
    if not isinstance(value, dict):
        problems.add(path, Refusal(f"must be an object, not {kind_of_value(value)}", 'write {"name": value, ...}'))
        return None
    before = len(problems.found)
    by_name = readers(kind)
    given = {
        name: _field(how, value[name], f"{path}.{name}", problems)
        for name, how in by_name.items()
        if value.get(name) is not None
    }
    for struct_field in msgspec.structs.fields(kind):
        required = struct_field.default is NODEFAULT and struct_field.default_factory is NODEFAULT
        if required and value.get(struct_field.name) is None:
            problems.add(f"{path}.{struct_field.name}", Refusal("is missing", "give it a value"))
    _refuse_unknown(kind, value, path, problems)
    if len(problems.found) == before:
        for name, refusal in kind.contradictions(given):
            problems.add(f"{path}.{name}", refusal)
    return kind(**given) if len(problems.found) == before else None


def _field(how: Any, value: Any, path: str, problems: Problems) -> Any:
    if isinstance(how, Nested):
        return _object(how.kind, value, path, problems)
    if isinstance(how, ListOf):
        return _list(how, value, path, problems)
    try:
        return how(value)
    except Refusal as refusal:
        problems.add(path, refusal)
        return None


def _list(how: ListOf, value: Any, path: str, problems: Problems) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        problems.add(path, Refusal(f"must be a list, not {kind_of_value(value)}", "write [{...}, ...]"))
        return ()
    if len(value) < how.at_least:
        problems.add(path, Refusal(f"{len(value)} entries", f"give at least {how.at_least}"))
    return tuple(_object(how.kind, one, f"{path}[{at}]", problems) for at, one in enumerate(value))


def _refuse_unknown(kind: type[Parameters], value: dict[str, Any], path: str, problems: Problems) -> None:
    known = list(readers(kind))
    for key in value:
        if key in known:
            continue
        near = difflib.get_close_matches(str(key)[:60], known, n=1, cutoff=0.6)
        cure = f"did you mean {near[0]}?" if near else f"leave it out; there are: {', '.join(known)}"
        problems.add(f"{path}.{str(key)[:60]!a}", Refusal("there is no such parameter", cure))


def kind_of_value(value: Any) -> str:
    """What kind of thing a value is. Never the value itself: it may be a secret in the wrong place."""
    names: dict[type, str] = {str: "text", bool: "true or false", int: "a number", float: "a number", dict: "an object"}
    return names.get(type(value), "a list" if isinstance(value, list | tuple) else "nothing")


@cache
def readers(kind: type[Parameters]) -> dict[str, Any]:
    """How each field is read, by its name."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: get_args(hints[name])[-1] for name in kind.__struct_fields__}
