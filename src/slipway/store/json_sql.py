"""SQL that navigates JSON documents inside the database, for SQLite and for PostgreSQL.

A JsonPath leads to a value in a document, which is read as text, number or boolean; each is NULL when the value is of
another kind, so that a comparison of the wrong kind never holds and never fails.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from sqlalchemy import (
    JSON,
    ColumnElement,
    Dialect,
    FromClause,
    Numeric,
    Text,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    type_coerce,
)

from slipway.model.attributes import Each


class Scalars(msgspec.Struct, frozen=True):
    text: ColumnElement[Any]
    number: ColumnElement[Any] = null()
    boolean: ColumnElement[Any] = null()  # as the words true and false


class JsonPath(Protocol):
    def member(self, name: str) -> JsonPath:
        """The value of a key; the name has no quotation marks or backslashes in it."""

    def keys(self) -> tuple[FromClause, Scalars]:
        """A row for each key; none when this is not a map."""

    def each(self, what: Each) -> tuple[FromClause, JsonPath]:
        """A row for each item of an array, or entry of a map; none when this is neither."""

    def items_or_itself(self) -> tuple[FromClause, Scalars]:
        """A row for each item of an array; one row for a single value; none of use for a map."""

    def scalars(self) -> Scalars: ...


def document(doc: ColumnElement[Any], dialect: Dialect) -> JsonPath:
    if dialect.name == "postgresql":
        return _Postgresql(type_coerce(doc, JSON))
    return _Sqlite(type_coerce(doc, Text), "$")


class _Sqlite(msgspec.Struct, frozen=True):
    """`base` is JSON text, or SQL NULL; `path` leads on from there."""

    base: ColumnElement[Any]
    path: str

    def member(self, name: str) -> JsonPath:
        return _Sqlite(self.base, f'{self.path}."{name}"')

    def keys(self) -> tuple[FromClause, Scalars]:
        rows = self._rows()
        return rows, Scalars(case((func.typeof(rows.c.key) == "text", rows.c.key)))

    def each(self, what: Each) -> tuple[FromClause, JsonPath]:
        rows = self._rows()
        return rows, _SqliteRow(rows)

    def items_or_itself(self) -> tuple[FromClause, Scalars]:
        # The rows of a map are the only ones with text for a key.
        rows = self._rows()
        return rows, _sqlite_scalars(case((func.typeof(rows.c.key) != "text", rows.c.type)), rows.c.value)

    def scalars(self) -> Scalars:
        return _sqlite_scalars(func.json_type(self.base, self.path), func.json_extract(self.base, self.path))

    def _rows(self) -> Any:
        return func.json_each(self.base, self.path).table_valued("key", "value", "type")


class _SqliteRow(msgspec.Struct, frozen=True):
    """A row of json_each."""

    rows: Any

    def _inside(self) -> _Sqlite:
        # Text that is not JSON would be an error in the functions that read JSON.
        return _Sqlite(case((self.rows.c.type.in_(("object", "array")), self.rows.c.value)), "$")

    def member(self, name: str) -> JsonPath:
        return self._inside().member(name)

    def keys(self) -> tuple[FromClause, Scalars]:
        return self._inside().keys()

    def each(self, what: Each) -> tuple[FromClause, JsonPath]:
        return self._inside().each(what)

    def items_or_itself(self) -> tuple[FromClause, Scalars]:
        return self._inside().items_or_itself()

    def scalars(self) -> Scalars:
        return _sqlite_scalars(self.rows.c.type, self.rows.c.value)


def _sqlite_scalars(kind: ColumnElement[Any], value: ColumnElement[Any]) -> Scalars:
    return Scalars(
        text=case((kind == "text", value)),
        number=case((kind.in_(("integer", "real")), value)),
        boolean=case((kind.in_(("true", "false")), kind)),
    )


class _Postgresql(msgspec.Struct, frozen=True):
    value: ColumnElement[Any]

    def member(self, name: str) -> JsonPath:
        return _Postgresql(self.value.op("->", return_type=JSON())(literal(name, Text)))

    def keys(self) -> tuple[FromClause, Scalars]:
        rows = func.jsonb_object_keys(self._if("object")).table_valued("key").render_derived()
        return rows, Scalars(rows.c.key)

    def each(self, what: Each) -> tuple[FromClause, JsonPath]:
        if what is Each.ITEM:
            rows = func.jsonb_array_elements(self._if("array")).table_valued("value")
        else:
            rows = func.jsonb_each(self._if("object")).table_valued("key", "value")
        return rows, _Postgresql(type_coerce(rows.c.value, JSON))

    def items_or_itself(self) -> tuple[FromClause, Scalars]:
        items = case((func.jsonb_typeof(self.value) == "array", self.value), else_=func.jsonb_build_array(self.value))
        rows = func.jsonb_array_elements(items).table_valued("value")
        return rows, _Postgresql(type_coerce(rows.c.value, JSON)).scalars()

    def scalars(self) -> Scalars:
        text = self.value.op("#>>", return_type=Text())(literal_column("'{}'"))
        return Scalars(
            text=self._when("string", text),
            number=self._when("number", cast(text, Numeric)),
            boolean=self._when("boolean", text),
        )

    def _if(self, kind: str) -> ColumnElement[Any]:
        return self._when(kind, self.value)

    def _when(self, kind: str, then: ColumnElement[Any]) -> ColumnElement[Any]:
        return case((func.jsonb_typeof(self.value) == kind, then))
