"""Column types: a struct stored as JSON, and the database's clock."""

from __future__ import annotations

import logging
import re
from typing import Any

import msgspec
from sqlalchemy import JSON
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Float, TypeDecorator

log = logging.getLogger(__name__)

REPLACEMENT = "\ufffd"
_ZERO = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # in JSON, with the backslashes before it that stand for themselves


def without_zero(text: str) -> str:
    """PostgreSQL holds no zero characters, and a VIM may send some."""
    return text.replace("\0", REPLACEMENT)


class JsonDocument(TypeDecorator[Any]):
    """A struct (or any typed value) stored as JSON, without zero characters. Reading a row checks its type.

    The engine is made with identity (de)serialisers (database.py): msgspec does that work here, once. `lenient`: what
    is of another type reads as None, and the log says so, for what others than we may have filled in.
    """

    impl = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    cache_ok = True

    def __init__(self, kind: Any, *, lenient: bool = False) -> None:
        super().__init__()
        self.kind = kind
        self.lenient = lenient
        self._decode = msgspec.json.Decoder(kind).decode

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None:
            return None
        text = msgspec.json.encode(value).decode()
        return _ZERO.sub(rf"\1{REPLACEMENT}", text) if r"\u0000" in text else text

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        try:
            return None if value is None else self._decode(value)
        except msgspec.ValidationError as error:
            if not self.lenient:
                raise
            log.warning("a stored %s can't be read: %s", self.kind.__name__, error)
            return None


class database_now(FunctionElement[float]):
    """Seconds since 1970 by the database's clock, so that leases don't depend on the workers' clocks."""

    type = Float()
    inherit_cache = True


@compiles(database_now, "sqlite")
def _sqlite_now(element: database_now, compiler: SQLCompiler, **kw: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(database_now, "postgresql")
def _postgresql_now(element: database_now, compiler: SQLCompiler, **kw: Any) -> str:
    return "extract(epoch from clock_timestamp())::float8"
