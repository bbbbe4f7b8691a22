"""How much of a list is taken at once: a page that is too large is asked for again, as a smaller one.

    size = PageSize(PAGE)
    page = await size.ask(lambda limit: api.get(path, limit=limit, **query))

Of definitions of custom resources, or the Secrets that Helm keeps releases in, a few may be too much.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from slipway.kube.errors import AnswerTooLarge

T = TypeVar("T")

PAGE = 500
PAGES = 1000
PAGES_GUARDED = 100
MOST_LISTED_GUARDED = 512 << 20  # bytes of memory for all lists of one session, as they are
SMALLER = 8  # times, with each attempt


class PageSize:
    """Kept from page to page of a list."""

    def __init__(self, first: int) -> None:
        self._size = first

    async def ask(self, ask: Callable[[str], Awaitable[T]]) -> T:
        """`ask` is given the number of objects that a page may have."""
        while True:
            try:
                return await ask(str(self._size))
            except AnswerTooLarge:
                if self._size == 1:
                    raise
                self._size = max(1, self._size // SMALLER)
