"""What the operators of a filter mean for text, numbers, booleans and moments: SQL for one value at a time."""

from __future__ import annotations

import operator as python
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Boolean, ColumnElement, Float, Text, func, literal, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from slipway.model.attributes import Free, Scalar
from slipway.model.errors import BadRequest
from slipway.store.filters import Operator
from slipway.store.json_sql import Scalars

Truth = ColumnElement[bool]

_ORDER: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.GT: python.gt,
    Operator.GTE: python.ge,
    Operator.LT: python.lt,
    Operator.LTE: python.le,
}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)


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
    """A positive operator with its values. `place` begins the error when a value does not fit the attribute."""

    operator: Operator
    values: tuple[str, ...]
    place: str

    def of_json(self, kind: Scalar | Free) -> Callable[[Scalars], Truth]:
        """What to ask of a value in a document."""
        match kind:
            case Scalar.TEXT:
                return lambda found: self._text(found.text, self.values)
            case Scalar.NUMBER:
                numbers = self._all(_number, "a number")
                return lambda found: self._ordered(found.number, numbers)
            case Scalar.BOOLEAN:
                words = self._all(_boolean, "true or false")
                return lambda found: self._one_of(found.boolean, [literal(_word(word), Text) for word in words])
            case Scalar.TIME:
                # Stored times are in UTC, so without the Z their text sorts as they do.
                times = [_sortable(moment) for moment in self._all(_moment, _TIME)]
                return lambda found: self._ordered(by_code_point(func.rtrim(found.text, "Z")), _bound(times, Text()))
        return self._free

    def of_column(self, column: ColumnElement[Any], kind: Scalar | Free) -> Truth:
        match kind:
            case Scalar.TIME:
                seconds = [moment.timestamp() for moment in self._all(_moment, _TIME)]
                return self._ordered(column, _bound(seconds, Float()))
            case Scalar.BOOLEAN:
                return self._one_of(column, _bound(self._all(_boolean, "true or false"), Boolean()))
        return self._text(column, self.values)

    def _free(self, found: Scalars) -> Truth:
        """Content without a declared type: the stored value says what is compared."""
        numbers = [number for value in self.values if (number := _number(value)) is not None]
        words = [value for value in self.values if value in ("true", "false")]
        possible = [self._text(found.text, self.values)]
        if numbers and self.operator is not Operator.CONT:
            possible.append(self._ordered(found.number, numbers))
        if words and self.operator in (Operator.EQ, Operator.IN):
            possible.append(self._one_of(found.boolean, _bound(words, Text())))
        return or_(*possible)

    def _text(self, text: ColumnElement[Any], values: Sequence[str]) -> Truth:
        if self.operator is Operator.CONT:
            return or_(*(position(text, value) > 0 for value in _bound(values, Text())))
        ordered = by_code_point(text) if self.operator in _ORDER else text
        return self._ordered(ordered, _bound(values, Text()))
