"""Files as answers: streamed from disk or package, whole or the one part that a Range header asks for."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable

from litestar.response.base import ASGIResponse
from litestar.types import Receive, Send

from slipway.model.errors import RangeNotSatisfiable

CHUNK = 256 * 1024
_RANGE = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})")


class FileResponse(ASGIResponse):
    """Bytes `start` to `end` (exclusive) of what `open_file` opens."""

    def __init__(
        self, open_file: Callable[[], io.BufferedReader], size: int, media_type: str, wanted: str | None
    ) -> None:
        part = read_range(wanted, size) if wanted else None
        start, end = part or (0, size)
        headers = {"Accept-Ranges": "bytes", "Content-Type": media_type}  # Litestar would add a charset to some
        if part:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        super().__init__(content_length=end - start, status_code=206 if part else 200, headers=headers)
        self._open, self._start, self._left = open_file, start, end - start

    async def send_body(self, send: Send, receive: Receive) -> None:
        file = await asyncio.to_thread(self._open)
        try:
            await asyncio.to_thread(_skip, file, self._start)
            while self._left:
                chunk = await asyncio.to_thread(file.read, min(CHUNK, self._left))
                if not chunk:
                    raise EOFError("the file is shorter than it was")
                self._left -= len(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            file.close()


def read_range(header: str, size: int) -> tuple[int, int] | None:
    """(start, end) of a single range. What is no such range, or more than one, is ignored, as RFC 9110 has it."""
    match = _RANGE.fullmatch(header.strip())
    if match is None or match[0] == "bytes=-":
        return None
    first, last = match[1], match[2]
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    if start >= size:
        raise RangeNotSatisfiable(f"Range {header[:100]!r} is outside of the {size} bytes there are.", size)
    return start, end


def _skip(file: io.BufferedReader, count: int) -> None:
    if file.seekable():
        file.seek(count)
        return
    while count:
        count -= len(file.read(min(CHUNK, count))) or count
