"""Responses: JSON from bytes that are encoded once, empty ones, and the media type by the Accept header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from litestar.response.base import ASGIResponse

from slipway.model.errors import NotAcceptable
from slipway.model.secrets import REFERENCE, redact

JSON = "application/json"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_MARK = f'"{REFERENCE}"'.encode()


def json_response(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
    return ASGIResponse(body=body, status_code=status, headers=headers, media_type=JSON)


def empty_response(status: int, location: str | None = None) -> ASGIResponse:
    reply = ASGIResponse(status_code=status, headers={"Location": location} if location else None)
    reply.headers.pop("content-type", None)  # added by Litestar, though there is no body
    return reply


def to_redacted_json(value: Any) -> bytes:
    """A value as JSON, without the references to its secrets."""
    return redact_json(_encode(value))


def redact_json(document: bytes) -> bytes:
    """Decodes the document only if it holds a reference to a secret."""
    return _encode(redact(_decode(document))) if _MARK in document else document


def negotiate(accept: str | None, offers: Sequence[str]) -> str:
    """The offer that the Accept header prefers, the first among equals; NotAcceptable when it accepts none."""
    if accept is None or accept == "*/*" or accept == offers[0]:
        return offers[0]
    ranges = [_range(part) for part in accept.split(",") if part.strip()]
    best = max(offers, key=lambda offer: _quality(offer, ranges))
    if _quality(best, ranges) > 0:
        return best
    raise NotAcceptable(f"Accept: {accept[:200]!r} is not offered here; it must be one of: {', '.join(offers)}.")


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
