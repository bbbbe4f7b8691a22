"""Reads attribute filters as SOL013 writes them: `(eq,a/b,value);(in,c,one,two)`.

    filter     := expression *( ";" expression )         all must hold
    expression := "(" operator "," path 1*( "," value ) ")"
    path       := name *( "/" name ) [ "/@key" ]         ~0 ~1 ~a ~b in a name stand for ~ / , @
    value      := 1* of any character but ( ) , ; '      or '...' with '' for a quote inside

Only the form is checked here; filter_sql.py knows which attributes there are, comparison.py what comparing means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from slipway.model.attributes import MAP_KEY, read_path, write_path
from slipway.model.errors import BadRequest

LONGEST = 4096
_SPECIAL = "(),;'"
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # what a database does not take


class Operator(StrEnum):
    EQ = "eq"
    NEQ = "neq"
    IN = "in"
    NIN = "nin"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    CONT = "cont"
    NCONT = "ncont"


TAKES_SEVERAL = frozenset({Operator.IN, Operator.NIN, Operator.CONT, Operator.NCONT})
# What each of these says is that another one does not hold.
DENIES = {Operator.NEQ: Operator.EQ, Operator.NIN: Operator.IN, Operator.NCONT: Operator.CONT}


class Filter(msgspec.Struct, frozen=True):
    """`by_key` when the path ended in `@key`, which is then not part of it."""

    operator: Operator
    path: tuple[str, ...]
    values: tuple[str, ...]
    by_key: bool = False

    @property
    def name(self) -> str:
        """The attribute as it is written."""
        return write_path(self.path) + (f"/{MAP_KEY}" if self.by_key else "")


def parse(text: str) -> tuple[Filter, ...]:
    if len(text) > LONGEST:
        raise BadRequest(f"filter: {len(text)} characters are too many; at most {LONGEST} are read.")
    if _NOT_TEXT.search(text):
        raise BadRequest("filter: it is not valid text; encode it as UTF-8, without zero characters.")
    return _Reader(text).filters()


def render(filters: Iterable[Filter]) -> str:
    """The text that `parse` reads back to the same filters."""
    return ";".join(f"({one.operator},{one.name},{','.join(map(_quoted, one.values))})" for one in filters)


def _quoted(value: str) -> str:
    plain = value and not any(special in value for special in _SPECIAL)
    return value if plain else "'" + value.replace("'", "''") + "'"


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def filters(self) -> tuple[Filter, ...]:
        found = [self._expression()]
        while self._at < len(self._text):
            self._expect(";", "put ';' between expressions")
            found.append(self._expression())
        return tuple(found)

    def _expression(self) -> Filter:
        self._expect("(", "write an expression as (eq,attribute,value)")
        operator = self._operator()
        self._expect(",", "put ',' between operator and attribute")
        path, by_key = self._attribute()
        self._expect(",", "put ',' and a value after the attribute")
        values = [self._value()]
        while self._next() == ",":
            if operator not in TAKES_SEVERAL:
                raise self._malformed(f"{operator} takes one value; quote one that has a comma in it as '...'")
            self._at += 1
            values.append(self._value())
        self._expect(")", "close the expression by ')'; quote a value with one of (),;' in it as '...'")
        return Filter(operator, path, tuple(values), by_key)

    def _operator(self) -> Operator:
        start = self._at
        word = self._plain()
        if word not in list(Operator):
            self._at = start
            raise self._malformed(f"use one of the operators {', '.join(Operator)}")
        return Operator(word)

    def _attribute(self) -> tuple[tuple[str, ...], bool]:
        place = f"filter, character {self._at + 1}"
        text = self._plain()
        by_key = text.endswith(f"/{MAP_KEY}")
        text = text.removesuffix(f"/{MAP_KEY}")
        if "@" in text:
            raise BadRequest(f"{place}: '@' is read only in {MAP_KEY}, at the end; write it as ~b in a name.")
        return read_path(text, place), by_key

    def _value(self) -> str:
        if self._next() == "'":
            return self._quotation()
        value = self._plain()
        if not value:
            raise self._malformed("give a value; write an empty one as ''")
        return value

    def _quotation(self) -> str:
        start = self._at
        while (end := self._text.find("'", self._at + 1)) >= 0:
            self._at = end + 1
            if self._next() != "'":
                return self._text[start + 1 : end].replace("''", "'")
        self._at = start
        raise self._malformed('close the quotation by another "\'"')

    def _plain(self) -> str:
        start = self._at
        while self._next() and self._next() not in _SPECIAL:
            self._at += 1
        return self._text[start : self._at]

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _expect(self, character: str, cure: str) -> None:
        if self._next() != character:
            raise self._malformed(cure)
        self._at += 1

    def _malformed(self, cure: str) -> BadRequest:
        found = f"{self._next()!r} is not understood" if self._next() else "it ends too early"
        return BadRequest(f"filter, character {self._at + 1}: {found}; {cure}.")
