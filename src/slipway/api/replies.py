"""Answers, made from bytes that are JSON already: nobody encodes them twice."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.response.base import ASGIResponse

from slipway.model.secrets import REFERENCE, redact

JSON = "application/json"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_MARK = f'"{REFERENCE}"'.encode()


def json_reply(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
    return ASGIResponse(body=body, status_code=status, headers=headers, media_type=JSON)


def empty_reply(status: int, location: str | None = None) -> ASGIResponse:
    reply = ASGIResponse(status_code=status, headers={"Location": location} if location else None)
    reply.headers.pop("content-type", None)  # Litestar's guess; there is nothing to have a type
    return reply


def shown(value: Any) -> bytes:
    """A value as JSON, without the references to its secrets."""
    return without_secrets(_encode(value))


def without_secrets(document: bytes) -> bytes:
    """Looks into the document only if there is something to take out."""
    return _encode(redact(_decode(document))) if _MARK in document else document
