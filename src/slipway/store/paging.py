"""Lists, a page at a time: the next page begins after the last row of this one, however many rows come and go.

Rows leave the database as the JSON text they are stored as. The marker that leads to the next page says where this one
ended; it fits only the list it came from.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, Table, func, literal, select, tuple_

from slipway.model.errors import BadRequest
from slipway.store.filters import Filter, render
from slipway.store.query import condition
from slipway.store.resources import RESOURCES, Resource

LARGEST = 10_000
BETWEEN = ",\n"
_DIGEST_SIZE = 9


class Page(msgspec.Struct, frozen=True):
    """`text` is the documents as a JSON array has them inside; `next_marker` is None on the last page."""

    text: str
    next_marker: str | None = None

    @property
    def items(self) -> list[str]:
        """One document each. No document has a line break in it: JSON writes them otherwise."""
        return self.text.split(BETWEEN) if self.text else []


class _Identified(msgspec.Struct):
    id: str


def list_documents(
    connection: Connection,
    table: Table,
    filters: Sequence[Filter] = (),
    marker: str | None = None,
    limit: int | None = None,
    without: Sequence[str] = (),
    project: str | None = None,
) -> Page:
    """Documents of a table in its order: operations newest first, all others oldest first.

    Those of one `project`, or of all. No `limit` means no pages. `without` names top-level attributes that the database
    leaves out.
    """
    resource = RESOURCES[table.name]
    if limit is not None and not 1 <= limit <= LARGEST:
        raise BadRequest(f"A page can have 1 to {LARGEST} entries, not {limit}.")
    rows = select(resource.document(connection.dialect, tuple(without)).label("document"))
    rows = rows.order_by(*(column.desc() if resource.newest_first else column.asc() for column in _key(resource)))
    if project is not None:
        rows = rows.where(_of_project(connection, table, project))
    if (fits := condition(resource, filters, connection.dialect)) is not None:
        rows = rows.where(fits)
    purpose = f"{table.name} {render(filters)}"
    if marker is not None:
        rows = rows.where(_after(resource, _read(marker, purpose)))
    if limit is None:
        return Page(_text(connection, rows))
    text = _text(connection, rows.limit(limit))
    if text.count(BETWEEN) + 1 < limit or not text:
        return Page(text)
    last = _place_of(connection, resource, text.rpartition(BETWEEN)[2])
    more = connection.execute(rows.where(_after(resource, last)).limit(1)).first() is not None
    return Page(text, _write(*last, purpose) if more else None)


def _of_project(connection: Connection, table: Table, project: str) -> ColumnElement[bool]:
    """SQLite has no statistics, and would rather read all of a project in order than sort what a filter finds."""
    own: ColumnElement[bool] = table.c.project == project
    return func.likely(own) if connection.dialect.name == "sqlite" else own


def _text(connection: Connection, rows: Select[Any]) -> str:
    """All documents, put together by the database: a thousand rows would cost Python a thousand turns."""
    inner = rows.subquery()
    joined = func.group_concat if connection.dialect.name == "sqlite" else func.string_agg
    return connection.scalar(select(joined(inner.c.document, BETWEEN))) or ""


def _key(resource: Resource) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    return resource.moment, resource.table.c.id


def _after(resource: Resource, place: tuple[float, str]) -> ColumnElement[bool]:
    here, last = tuple_(*_key(resource)), tuple_(*(literal(value) for value in place))
    return here < last if resource.newest_first else here > last


def _place_of(connection: Connection, resource: Resource, document: str) -> tuple[float, str]:
    row_id = msgspec.json.decode(document, type=_Identified).id
    moment: float = connection.execute(select(resource.moment).where(resource.table.c.id == row_id)).scalar_one()
    return moment, row_id


def _write(moment: float, row_id: str, purpose: str) -> str:
    payload = msgspec.json.encode((moment, row_id))
    return base64.urlsafe_b64encode(_digest(payload, purpose) + payload).decode().rstrip("=")


def _read(marker: str, purpose: str) -> tuple[float, str]:
    try:
        raw = base64.b64decode(marker + "=" * (-len(marker) % 4), altchars=b"-_", validate=True)
        digest, payload = raw[:_DIGEST_SIZE], raw[_DIGEST_SIZE:]
        if digest == _digest(payload, purpose):
            return msgspec.json.decode(payload, type=tuple[float, str])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        pass
    raise BadRequest("nextpage_opaque_marker: this is not the marker of a page of this list. Begin at the first page.")


def _digest(payload: bytes, purpose: str) -> bytes:
    """Against mistakes, not against malice: a marker opens nothing that the list itself does not."""
    return hashlib.blake2b(payload + purpose.encode(), digest_size=_DIGEST_SIZE).digest()
