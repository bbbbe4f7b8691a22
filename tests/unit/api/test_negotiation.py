from __future__ import annotations

import pytest

from slipway.api.responses import negotiate
from slipway.model.errors import NotAcceptable

OFFERS = ("application/zip", "text/plain")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "application/zip"),
        ("*/*", "application/zip"),
        ("text/plain", "text/plain"),
        ("text/*", "text/plain"),
        ("text/plain, application/zip", "application/zip"),
        ("text/plain, application/zip;q=0.9", "text/plain"),
        ("application/zip;q=0, */*;q=0.1", "text/plain"),
        ("Text/Plain; charset=utf-8", "text/plain"),
    ],
)
def test_the_best_offer_is_chosen(accept: str | None, chosen: str) -> None:
    assert negotiate(accept, OFFERS) == chosen


@pytest.mark.parametrize("accept", ["image/png", "application/zip;q=0", "", "text/plain;q=high", "*"])
def test_nothing_fits(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        negotiate(accept, OFFERS)
