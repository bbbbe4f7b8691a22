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
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, case, func, literal, select, tuple_

from slipway.model.errors import BadRequest
from slipway.store.filter_sql import condition
from slipway.store.filters import Filter, render
from slipway.store.resources import RESOURCES, ListedResource

LARGEST = 10_000  # entries of a page
LARGEST_TEXT = 8 << 20  # characters of a page that has more than one entry
BETWEEN = "\n"  # no document has a line break in it: JSON writes them otherwise
_DIGEST_SIZE = 9


class Page(msgspec.Struct, frozen=True):
    """`text` is the documents, one a line, and `items` each of them; `next_marker` is None on the last page."""

    text: str
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
        query = _put_together(rows, connection.dialect.name, limit is not None)
    else:
        query = _whole_list(*wanted)
    # One more than the page has says whether there is another page.
    values = {"project": project, "limit": (limit or 0) + 1, "largest": LARGEST_TEXT}
    text, count = connection.execute(query, values).one()
    items = text.split(BETWEEN) if text else []
    if limit is None or len(items) == count <= limit:
        return Page(text or "", items)
    if len(items) > limit:
        text = text[: -len(items.pop()) - len(BETWEEN)]
    return Page(text, items, _write(*_place_of(connection, resource, items[-1]), purpose))


@lru_cache
def _whole_list(name: str, dialect: str, without: tuple[str, ...], in_project: bool, paged: bool) -> Select[Any]:
    """Cached: to build the statement takes longer than to run it."""
    return _put_together(_rows(name, dialect, without, in_project, paged), dialect, paged)


def _rows(name: str, dialect: str, without: tuple[str, ...], in_project: bool, paged: bool) -> Select[Any]:
    resource = RESOURCES[name]
    rows = select(resource.document(dialect, without).label("document"))
    rows = rows.order_by(*(column.desc() if resource.newest_first else column.asc() for column in _key(resource)))
    if in_project:
        own: ColumnElement[bool] = resource.table.c.project == bindparam("project")
        # SQLite has no statistics, and would rather read all of a project in order than sort what a filter finds.
        rows = rows.where(func.likely(own) if dialect == "sqlite" else own)
    return rows.limit(bindparam("limit")) if paged else rows


def _put_together(rows: Select[Any], dialect: str, paged: bool) -> Select[Any]:
    """All documents as one text, for a thousand rows would cost Python a thousand turns; and how many rows there are.

    Of a page that grows too large the rest is counted only.
    """
    joined = func.group_concat if dialect == "sqlite" else func.string_agg
    inner = rows.subquery()
    shown: ColumnElement[Any] = inner.c.document
    if paged:
        before = func.sum(func.length(shown)).over(rows=(None, 0)) - func.length(shown)
        measured = select(shown, before.label("before")).subquery()
        shown = case((measured.c.before < bindparam("largest"), measured.c.document))
    return select(joined(shown, BETWEEN), func.count())


def _key(resource: ListedResource) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    return resource.moment, resource.table.c.id


def _after(resource: ListedResource, place: tuple[float, str]) -> ColumnElement[bool]:
    here, last = tuple_(*_key(resource)), tuple_(*(literal(value) for value in place))
    return here < last if resource.newest_first else here > last


def _place_of(connection: Connection, resource: ListedResource, document: str) -> tuple[float, str]:
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
