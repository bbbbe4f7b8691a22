"""What the operators of a filter mean for text, numbers, booleans and moments: SQL for one value at a time."""

from __future__ import annotations

import operator as python
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from sqlalchemy import BigInteger, Boolean, ColumnElement, Float, Text, func, literal, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from slipway.model.attributes import Free, Scalar
from slipway.model.errors import BadRequest
from slipway.store.filters import Operator
from slipway.store.json_sql import Scalars

T = TypeVar("T")
Truth = ColumnElement[bool]

_ORDER: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.GT: python.gt,
    Operator.GTE: python.ge,
    Operator.LT: python.lt,
    Operator.LTE: python.le,
}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}
FEW = 20  # values up to which SQLite finds the better plan with OR than with IN
MOST_TEXTS = 200  # that one cont looks for: each is an OR, and SQLite takes no more than 1000 of those


class position(FunctionElement[int]):
    """Where text begins inside other text, from 1; 0 when it is not in there."""

    type = BigInteger()
    inherit_cache = True


@compiles(position, "sqlite")
def _sqlite_position(element: position, compiler: SQLCompiler, **kw: Any) -> str:
    return f"instr({compiler.process(element.clauses, **kw)})"


@compiles(position, "postgresql")
def _postgresql_position(element: position, compiler: SQLCompiler, **kw: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **kw)})"


class by_code_point(FunctionElement[str]):
    """Text that is ordered the same way everywhere, whatever the database's language."""

    type = Text()
    inherit_cache = True


@compiles(by_code_point, "sqlite")
def _sqlite_order(element: by_code_point, compiler: SQLCompiler, **kw: Any) -> str:
    return f"({compiler.process(element.clauses, **kw)})"


@compiles(by_code_point, "postgresql")
def _postgresql_order(element: by_code_point, compiler: SQLCompiler, **kw: Any) -> str:
    return f'(({compiler.process(element.clauses, **kw)}) COLLATE "C")'


class Comparison(msgspec.Struct, frozen=True):
    """A positive operator with its values. `place` begins the error when they don't fit the attribute."""

    operator: Operator
    values: tuple[str, ...]
    place: str

    def of_json(self, found: Scalars, kind: Scalar | Free) -> Truth:
        """Of a value in a document."""
        match kind:
            case Scalar.TEXT:
                return self._compare_text(found.text)
            case Scalar.NUMBER:
                return self._ordered(found.number, self._read(_number, "a number"))
            case Scalar.BOOLEAN:
                self._read(_BOOLEANS.get, "true or false")
                return self._equal(found.boolean, _bound(self.values, Text()))
            case Scalar.TIME:
                # Stored times are in UTC, so without the Z their text sorts as they do.
                moments = [moment.isoformat().removesuffix("+00:00") for moment in self._moments()]
                return self._ordered(by_code_point(func.rtrim(found.text, "Z")), _bound(moments, Text()))
        return self._free(found)

    def of_column(self, column: ColumnElement[Any], kind: Scalar | Free) -> Truth:
        match kind:
            case Scalar.TIME:
                seconds = [moment.timestamp() for moment in self._moments()]
                return self._ordered(column, _bound(seconds, Float()))
            case Scalar.BOOLEAN:
                return self._equal(column, _bound(self._read(_BOOLEANS.get, "true or false"), Boolean()))
        return self._compare_text(column)

    def _free(self, found: Scalars) -> Truth:
        """Content without a declared type: the stored value says what is compared."""
        numbers = [number for value in self.values if (number := _number(value)) is not None]
        words = [value for value in self.values if value in _BOOLEANS]
        possible = [self._compare_text(found.text)]
        if numbers and self.operator is not Operator.CONT:
            possible.append(self._ordered(found.number, numbers))
        if words and self.operator in (Operator.EQ, Operator.IN):
            possible.append(self._equal(found.boolean, _bound(words, Text())))
        return or_(*possible)

    def _compare_text(self, text: ColumnElement[Any]) -> Truth:
        values = _bound(self.values, Text())
        if self.operator is Operator.CONT:
            if len(values) > MOST_TEXTS:
                raise BadRequest(
                    f"{self.place}: {len(values)} values are too many; at most {MOST_TEXTS} are looked for."
                )
            return or_(*(position(text, value) > 0 for value in values))
        return self._ordered(by_code_point(text) if self.operator in _ORDER else text, values)

    def _ordered(self, found: ColumnElement[Any], values: Sequence[ColumnElement[Any]]) -> Truth:
        if self.operator not in _ORDER:
            return self._equal(found, values)
        truth: Truth = _ORDER[self.operator](found, values[0])
        return truth

    def _equal(self, found: ColumnElement[Any], values: Sequence[ColumnElement[Any]]) -> Truth:
        if self.operator not in (Operator.EQ, Operator.IN):
            raise BadRequest(
                f"{self.place}: this attribute can't be compared by {self.operator}; use eq, neq, in or nin."
            )
        if len(values) <= FEW:
            return or_(*(found == value for value in values))
        kinds = {type(value.type): value.type for value in values}
        # By type: in one list PostgreSQL would take whole numbers for floating ones, which are not exact.
        return or_(*(found.in_([value for value in values if type(value.type) is kind]) for kind in kinds))

    def _moments(self) -> list[datetime]:
        return self._read(_moment, "a date and time such as 2024-05-01T12:00:00Z")

    def _read(self, read: Callable[[str], T | None], what: str) -> list[T]:
        found = []
        for value in self.values:
            one = read(value)
            if one is None:
                raise BadRequest(f"{self.place}: {value!r} is not {what}.")
            found.append(one)
        return found


def _bound(values: Sequence[Any], kind: TypeEngine[Any]) -> list[ColumnElement[Any]]:
    return [literal(value, kind) for value in values]


def _number(value: str) -> ColumnElement[Any] | None:
    if not _NUMBER.fullmatch(value):
        return None
    if value.lstrip("-").isdigit() and abs(int(value)) < 2**63:
        return literal(int(value), BigInteger)
    return literal(float(value), Float)


def _moment(value: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        return None
