"""Lists, a page at a time: the next page begins after the last row of this one, however many rows come and go.

Rows leave the database as the JSON text they are stored as. The marker that leads to the next page says where this one
ended; it fits only the list it came from.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, Table, literal, select, tuple_

from slipway.model.errors import BadRequest
from slipway.store.filters import Filter, render
from slipway.store.query import condition
from slipway.store.resources import RESOURCES

LARGEST = 10_000
_DIGEST_SIZE = 9


class Page(msgspec.Struct, frozen=True):
    """`items` is JSON text, one document each; `next_marker` is None on the last page."""

    items: tuple[str, ...]
    next_marker: str | None = None


def list_documents(
    connection: Connection,
    table: Table,
    filters: Sequence[Filter] = (),
    marker: str | None = None,
    limit: int | None = None,
    without: Sequence[str] = (),
) -> Page:
    """Documents of a table in its order: operations newest first, all others oldest first.

    No `limit` means no pages. `without` names top-level attributes that the database leaves out.
    """
    resource = RESOURCES[table.name]
    if limit is not None and not 1 <= limit <= LARGEST:
        raise BadRequest(f"A page can have 1 to {LARGEST} entries, not {limit}.")
    key = (resource.moment, table.c.id)
    rows = select(resource.document(connection.dialect, tuple(without)), *key)
    rows = rows.order_by(*(column.desc() if resource.newest_first else column.asc() for column in key))
    if (fits := condition(resource, filters, connection.dialect)) is not None:
        rows = rows.where(fits)
    purpose = f"{table.name} {render(filters)}"
    if marker is not None:
        here, last = tuple_(*key), tuple_(*(literal(value) for value in _read(marker, purpose)))
        rows = rows.where(here < last if resource.newest_first else here > last)
    if limit is None:
        return Page(tuple(connection.scalars(rows)))
    found = connection.execute(rows.limit(limit + 1)).all()
    end = found[limit - 1] if len(found) > limit else None
    return Page(tuple(row[0] for row in found[:limit]), _write(end[1], end[2], purpose) if end else None)


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
