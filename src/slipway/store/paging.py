"""Lists, a page at a time: the next page begins after the last row of this one, however many rows come and go.

Rows leave the database as the JSON text they are stored as. The marker that leads to the next page says where this one
ended; it fits only the list it came from.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, case, func, literal, select, tuple_

from slipway.model.errors import BadRequest
from slipway.store.database import RowByKey
from slipway.store.filter_sql import condition
from slipway.store.filters import Filter, render
from slipway.store.resources import RESOURCES, ListedResource

LARGEST = 10_000  # entries of a page
LARGEST_TEXT = 8 << 20  # characters of a page that has more than one entry
READ_AT_ONCE = 20  # rows: few, because a page of large documents is read no further
_DIGEST_SIZE = 9


class Page(msgspec.Struct, frozen=True):
    """`items` are documents; `next_marker` is None on the last page."""

    items: list[str]
    next_marker: str | None = None


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

    A page ends after `limit` of them, or earlier where they are large: memory need not hold all that a project keeps.
    Those of one `project`, or of all. No `limit` means no pages. `without` names top-level attributes that the database
    leaves out.
    """
    resource = RESOURCES[table.name]
    if limit is not None and not 1 <= limit <= LARGEST:
        raise BadRequest(f"A page can have 1 to {LARGEST} entries, not {limit}.")
    wanted = (table.name, connection.dialect.name, tuple(without), project is not None, limit is not None)
    purpose = f"{table.name} {render(filters)}"
    if filters or marker is not None:
        rows = _rows(*wanted)
        if (fits := condition(resource, filters, connection.dialect)) is not None:
            rows = rows.where(fits)
        if marker is not None:
            rows = rows.where(_after(resource, _read(marker, purpose)))
        query = _bounded(rows, connection.dialect.name, limit is not None)
    else:
        query = _whole_list(*wanted)
    # One more than the page has says whether there is another page.
    values = {"project": project, "limit": (limit or 0) + 1, "largest": LARGEST_TEXT}
    with connection.execute(query, values) as result:
        items, more = _read_page(result.cursor, limit)
    if not more:
        return Page(items)
    return Page(items, _write(*_place_of(connection, resource, items[-1]), purpose))


def _read_page(cursor: Any, limit: int | None) -> tuple[list[str], bool]:
    """The documents of a page, and whether others follow.

    By the driver's own cursor: text needs no conversion, and SQLAlchemy's rows would cost as much as reading them.
    """
    rows = chain.from_iterable(iter(lambda: cursor.fetchmany(READ_AT_ONCE), []))
    items: list[str] = []
    size = 0
    for (document,) in rows:
        if limit is not None and (len(items) == limit or size >= LARGEST_TEXT):
            return items, True
        items.append(document)
        size += len(document)
    return items, False


@lru_cache
def _whole_list(name: str, dialect: str, without: tuple[str, ...], in_project: bool, paged: bool) -> Select[Any]:
    """Cached: to build the statement takes longer than to run it."""
    return _bounded(_rows(name, dialect, without, in_project, paged), dialect, paged)


def _rows(name: str, dialect: str, without: tuple[str, ...], in_project: bool, paged: bool) -> Select[Any]:
    resource = RESOURCES[name]
    rows = select(resource.document(dialect, without).label("document"))
    rows = rows.order_by(*(column.desc() if resource.newest_first else column.asc() for column in _key(resource)))
    if in_project:
        own: ColumnElement[bool] = resource.table.c.project == bindparam("project")
        # SQLite has no statistics, and would rather read all of a project in order than sort what a filter finds.
        rows = rows.where(func.likely(own) if dialect == "sqlite" else own)
    return rows.limit(bindparam("limit")) if paged else rows


def _bounded(rows: Select[Any], dialect: str, paged: bool) -> Select[Any]:
    """SQLite reads a row when it is wanted. PostgreSQL sends all of them, so it must not send what is beyond the page:
    those rows come without their document.
    """
    if dialect == "sqlite" or not paged:
        return rows
    inner = rows.subquery()
    before = func.sum(func.length(inner.c.document)).over(rows=(None, 0)) - func.length(inner.c.document)
    measured = select(inner.c.document, before.label("before")).subquery()
    return select(case((measured.c.before < bindparam("largest"), measured.c.document)))


def _key(resource: ListedResource) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    return resource.moment, resource.table.c.id


def _after(resource: ListedResource, place: tuple[float, str]) -> ColumnElement[bool]:
    here, last = tuple_(*_key(resource)), tuple_(*(literal(value) for value in place))
    return here < last if resource.newest_first else here > last


def _place_of(connection: Connection, resource: ListedResource, document: str) -> tuple[float, str]:
    row_id = msgspec.json.decode(document, type=_Identified).id
    (moment,) = _moment_by_id(resource.table.name)(connection, row_id)
    return moment, row_id


@lru_cache
def _moment_by_id(name: str) -> RowByKey:
    return RowByKey(RESOURCES[name].table.c.id, RESOURCES[name].moment)


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
