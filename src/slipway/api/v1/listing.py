"""Lists as v1 asks for them: the same lists, with each document translated, and all of it in one answer if wanted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from litestar.response.base import ASGIResponse
from litestar.response.streaming import ASGIStreamingResponse
from sqlalchemy import Connection

from slipway.api.listing import LenientListing, ListQuery
from slipway.api.responses import JSON
from slipway.api.routing import AnyRequest
from slipway.api.selectors import Selection
from slipway.model.errors import BadRequest
from slipway.model.secrets import redact
from slipway.store.filters import Filter
from slipway.store.paging import Page

ALL_RECORDS = "all_records"

Documents = Sequence[dict[str, Any]]

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class TranslatedListing(LenientListing):
    """`translate` gives the documents in v1's words, `ask` a filter in the core's."""

    parameters = (*LenientListing.parameters, ALL_RECORDS)

    def __init__(
        self,
        *args: Any,
        translate: Callable[[Connection, Documents], Documents],
        ask: Callable[[Connection, Filter, str | None], Filter] = lambda _, wanted, project: wanted,
    ) -> None:
        super().__init__(*args)
        self._translate = translate
        self._ask = ask

    async def __call__(self, request: AnyRequest) -> ASGIResponse:
        parameters = self._parameters(request)
        if ALL_RECORDS not in parameters:
            return await super().__call__(request)
        pieces = self._whole(self._query(request, parameters))
        first = await anext(pieces)  # what is wrong with the query shows here, before anything is answered
        return ASGIStreamingResponse(iterator=_after(first, pieces), status_code=200, media_type=JSON)

    def _parameters(self, request: AnyRequest) -> dict[str, str]:
        query = super()._parameters(request)
        if query.get(ALL_RECORDS, "yes") != "yes":
            raise BadRequest(f"{ALL_RECORDS}: 'yes' is the only value there is; leave it out to have pages.")
        return query

    async def _whole(self, query: ListQuery) -> AsyncIterator[bytes]:
        """Page by page, each read when the one before is sent: memory need not hold all that a project keeps."""
        comma, marker = b"[", query.marker
        while True:
            page, marker = await self._page(replace(query, marker=marker))
            if entries := page[1:-1]:
                yield comma + entries
                comma = b","
            if marker is None:
                break
        yield b"]" if comma == b"," else b"[]"

    def _read(self, connection: Connection, query: ListQuery) -> tuple[bytes, str | None]:
        asked = tuple(self._ask(connection, one, query.project) for one in query.filters)
        return super()._read(connection, replace(query, filters=asked))

    def _joined(self, connection: Connection, page: Page, selection: Selection) -> bytes:
        documents = [selection.cut(redact(_decode(item))) for item in page.items]
        shown = [_encode(document).decode() for document in self._translate(connection, documents)]
        return f"[{','.join(self._linked(one, item) for one, item in zip(shown, page.items, strict=True))}]".encode()

    def _linked(self, shown: str, item: str) -> str:
        comma = "," if len(shown) > 2 else ""
        return f'{shown[:-1]}{comma}"_links":{self._links(item)}}}'


async def _after(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in pieces:
        yield piece
