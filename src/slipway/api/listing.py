"""Lists: filtered, selected and paged by the database, joined as the JSON text they are."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar.response.base import ASGIResponse
from sqlalchemy import Connection, Table

from slipway.api.links import LinkBuilder
from slipway.api.responses import json_response
from slipway.api.routing import LIST_PARAMETERS, AnyRequest, caller_of, read_query
from slipway.api.selectors import Selection, select
from slipway.model.secrets import REFERENCE, redact
from slipway.store.database import READERS, Database
from slipway.store.filters import Filter, parse
from slipway.store.paging import Page, list_documents
from slipway.store.resources import RESOURCES

MARKER = "nextpage_opaque_marker"
MISSPELT = "exclude-fields"  # by the stock client, in lists of operations

_MARK = f'"{REFERENCE}"'
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class ListQuery:
    """What a caller wants of a list. `project` None: of all projects. `searched`: it has filters of the caller's."""

    filters: tuple[Filter, ...]
    marker: str | None
    limit: int
    selection: Selection
    project: str | None
    searched: bool


class Listing:
    """The list of one table. `left_out` are the attributes that a list has only on request, `always` the filters that
    it has whatever is asked.
    """

    parameters: tuple[str, ...] = LIST_PARAMETERS

    def __init__(
        self,
        database: Database,
        page_size: int,
        table: Table,
        url: str,
        links: LinkBuilder[Any],
        left_out: tuple[str, ...] = (),
        always: tuple[Filter, ...] = (),
    ) -> None:
        self._database = database
        self._page_size = page_size
        self._table = table
        self._url = url
        self._links = links
        self._left_out = left_out
        self._always = always
        self._attributes = RESOURCES[table.name].attributes
        # With SQLite all the work is this machine's: threads that do it at the same time only hinder each other.
        self._turns = asyncio.Semaphore(1 if database.is_sqlite else READERS)

    async def __call__(self, request: AnyRequest) -> ASGIResponse:
        parameters = self._parameters(request)
        body, marker = await self._page(self._query(request, parameters))
        return json_response(body, headers={"Link": self._next(parameters, marker)} if marker else None)

    def _query(self, request: AnyRequest, parameters: dict[str, str]) -> ListQuery:
        filters = parse(parameters["filter"]) if "filter" in parameters else ()
        return ListQuery(
            filters=(*self._always, *filters),
            marker=parameters.get(MARKER),
            limit=self._page_size,
            selection=select(parameters, self._attributes, self._left_out),
            project=caller_of(request).project,
            searched=bool(filters),
        )

    async def _page(self, query: ListQuery) -> tuple[bytes, str | None]:
        """A page, and the marker of the next one."""
        # A filter looks at much and finds little: other requests must not wait behind it.
        async with nullcontext() if query.searched else self._turns:
            return await self._database.read(self._read, query)

    def _parameters(self, request: AnyRequest) -> dict[str, str]:
        return read_query(request, self.parameters)

    def _read(self, connection: Connection, query: ListQuery) -> tuple[bytes, str | None]:
        without = query.selection.without
        page = list_documents(connection, self._table, query.filters, query.marker, query.limit, without, query.project)
        return self._joined(connection, page, query.selection), page.next_marker

    def _joined(self, connection: Connection, page: Page, selection: Selection) -> bytes:
        text = "\n".join(page.items)
        # One character is looked for first: it is found, or not, thirty times sooner than a word.
        if not selection.cuts and ("$" not in text or _MARK not in text):
            each = zip(page.items, self._links.each(text), strict=True)
            return _encode([msgspec.Raw(f'{item[:-1]},"_links":{own}}}') for item, own in each])
        parts = []
        for item in page.items:
            document = _encode(selection.cut(redact(_decode(item)))).decode()
            comma = "," if len(document) > 2 else ""
            parts.append(f'{document[:-1]}{comma}"_links":{self._links(item)}}}')
        return f"[{','.join(parts)}]".encode()

    def _next(self, query: dict[str, str], marker: str) -> str:
        return f'<{self._url}?{urlencode(query | {MARKER: marker})}>;rel="next"'


class LenientListing(Listing):
    """Accepts the misspelt parameter of the stock client, too."""

    parameters: tuple[str, ...] = (*LIST_PARAMETERS, MISSPELT)

    def _parameters(self, request: AnyRequest) -> dict[str, str]:
        query = super()._parameters(request)
        if MISSPELT in query:
            query.setdefault("exclude_fields", query.pop(MISSPELT))
        return query
