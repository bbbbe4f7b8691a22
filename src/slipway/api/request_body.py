"""Request bodies: the right media type, valid JSON of a bounded shape, and errors that name the attribute.

A body is decoded once, by a typed decoder. What such a decoder lets through and later layers can't hold - nesting
without end, integers of any length, zero characters - is looked for only where the raw bytes hint at it.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

import msgspec
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from slipway.api.routing import AnyRequest
from slipway.model.errors import BadRequest, TooLarge, TooSlow, UnsupportedMediaType
from slipway.model.json_documents import DEEPEST, check_storable, has_more_values, split_validation_error

JSON_TYPES = ("application/json",)
PATCH_TYPES = ("application/merge-patch+json", "application/json")

MOST_VALUES = 50_000  # keys included; each costs memory and time in every layer, whatever its size
DECODED_AT_ONCE = 1 << 16  # bytes; what is larger is decoded beside the event loop

T = TypeVar("T")
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_anything = msgspec.json.Decoder().decode


class Body(Generic[T]):
    """Reads bodies of one type. Unless `strict`, numbers may be written as strings."""

    def __init__(self, kind: type[T], media_types: tuple[str, ...] = JSON_TYPES, *, strict: bool = True) -> None:
        self.kind = kind
        self.media_types = media_types
        self._decode = msgspec.json.Decoder(kind, strict=strict).decode

    async def read(self, request: AnyRequest) -> T:
        require_body(request, self.media_types)
        require_media_type(request, self.media_types)
        try:
            async with asyncio.timeout(request.app.state.body_seconds):
                raw = await request.body()
        except RequestEntityTooLarge:
            raise too_large(request) from None
        except TimeoutError:
            raise too_slow(request) from None
        return self.decode(raw) if len(raw) <= DECODED_AT_ONCE else await asyncio.to_thread(self.decode, raw)

    def decode(self, raw: bytes, attribute: str = "") -> T:
        """`attribute` is the attribute that the document is the value of, if it is one."""
        if not raw.strip():
            raise BadRequest("The body is missing; send JSON.")
        try:
            check_shape(raw)
            return self._decode(raw)
        except msgspec.ValidationError as error:
            raise BadRequest(validation_message(error, attribute)) from None
        except msgspec.DecodeError as error:
            raise BadRequest(f"The body is not valid JSON: {error}.") from None
        except RecursionError:
            raise BadRequest(f"The body is nested deeper than {DEEPEST} levels.") from None
        except UnicodeDecodeError:
            raise BadRequest("The body is not valid UTF-8.") from None


def require_body(request: AnyRequest, media_types: tuple[str, ...]) -> None:
    """Before its media type: what is not there has none."""
    if request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers:
        raise BadRequest(f"The body is missing; send one of the type {' or '.join(media_types)}.")


def require_media_type(request: AnyRequest, media_types: tuple[str, ...]) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in media_types:
        what = f"Content-Type {given[:100]!r} is not accepted here" if given else "The Content-Type is missing"
        raise UnsupportedMediaType(f"{what}; it must be one of: {', '.join(media_types)}.")


def too_large(request: AnyRequest) -> TooLarge:
    limit = request.route_handler.resolve_request_max_body_size()
    return TooLarge(f"The body is larger than the {limit} bytes that are accepted here.")


def too_slow(request: AnyRequest) -> TooSlow:
    return TooSlow(
        f"The body, or its next piece, did not arrive within {request.app.state.body_seconds:g} s. Repeat the request."
    )


def validation_message(error: msgspec.ValidationError, attribute: str = "") -> str:
    """msgspec's message with the attribute first: `numberOfSteps: Expected `int`, got `str`.`"""
    inner, what = split_validation_error(error)
    joint = "." if attribute and inner and not inner.startswith("[") else ""
    place = f"{attribute}{joint}{inner}"
    return f"{place or 'The body'}: {what}."


def check_shape(raw: bytes) -> None:
    """BadRequest when the document holds what can't be stored. Of most the bytes alone show that they don't."""
    if has_more_values(raw, MOST_VALUES):
        raise BadRequest(f"The body has more than {MOST_VALUES} values, which is the most that is accepted; send less.")
    if raw.count(b"{") + raw.count(b"[") <= DEEPEST and b"\\u0000" not in raw and not _has_long_number(raw):
        return
    document = _anything(raw)
    try:
        check_storable(document)
    except ValueError as error:
        raise BadRequest(f"The body {error}.") from None


def _has_long_number(raw: bytes) -> bool:
    """Not by a regular expression: that holds up all threads for half a second when a body is large."""
    return _LONG_NUMBER in raw.translate(_DIGITS)
