"""Which of the media types that a route can give a caller wants to have."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.model.errors import NotAcceptable


def acceptable(accept: str | None, offers: Sequence[str]) -> str:
    """The offer that the Accept header likes best, the first among equals; NotAcceptable when it likes none."""
    if accept is None or accept == "*/*" or accept == offers[0]:
        return offers[0]
    ranges = [_range(part) for part in accept.split(",") if part.strip()]
    best = max(offers, key=lambda offer: _quality(offer, ranges))
    if _quality(best, ranges) > 0:
        return best
    raise NotAcceptable(f"Accept: {accept[:200]!r} is not possible here; possible are: {', '.join(offers)}.")


def _range(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                quality = float(parameter[2:])
            except ValueError:
                quality = 0.0
    return name, quality


def _quality(offer: str, ranges: Sequence[tuple[str, float]]) -> float:
    """What the most specific range that fits says."""
    major = offer.partition("/")[0]
    by_name = dict(ranges)
    for name in (offer, f"{major}/*", "*/*"):
        if name in by_name:
            return by_name[name]
    return 0.0
