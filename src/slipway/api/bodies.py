"""Bodies of requests: the right media type, readable JSON of a sane shape, and errors that name the attribute.

A body is decoded once, by a typed decoder. What such a decoder lets through and later layers can't hold - nesting
without end, integers of any length, zero characters - is looked for only where the raw bytes give a hint of it.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Generic, TypeVar

import msgspec
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from slipway.api.routing import AnyRequest
from slipway.model.errors import BadRequest, TooLarge, TooSlow, UnsupportedMediaType
from slipway.model.json_size import has_more_values

JSON_TYPES = ("application/json",)
PATCH_TYPES = ("application/merge-patch+json", "application/json")

DEEPEST = 64
MOST_VALUES = 50_000  # keys included; each costs memory and time in every layer, whatever its size
DECODED_AT_ONCE = 1 << 16  # bytes; what is larger is decoded beside the event loop
LARGEST_INTEGER = 2**63 - 1

T = TypeVar("T")
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_PLACE = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")
_anything = msgspec.json.Decoder().decode


class Body(Generic[T]):
    """Reads bodies of one type. Unless `strict`, numbers may be written as text."""

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
        return self.decoded(raw) if len(raw) <= DECODED_AT_ONCE else await asyncio.to_thread(self.decoded, raw)

    def decoded(self, raw: bytes, within: str = "") -> T:
        """`within` is the attribute that the document is the value of, if it is one."""
        if not raw.strip():
            raise BadRequest("The body is missing; JSON is wanted.")
        try:
            check_shape(raw)
            return self._decode(raw)
        except msgspec.ValidationError as error:
            raise BadRequest(explained(error, within)) from None
        except msgspec.DecodeError as error:
            raise BadRequest(f"The body is not valid JSON: {error}.") from None
        except RecursionError:
            raise _too_deep() from None
        except UnicodeDecodeError:
            raise BadRequest("The body is not valid UTF-8.") from None


def require_body(request: AnyRequest, possible: tuple[str, ...]) -> None:
    """Before its media type: what is not there has none."""
    if request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers:
        raise BadRequest(f"The body is missing; send one of the type {' or '.join(possible)}.")


def require_media_type(request: AnyRequest, possible: tuple[str, ...]) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in possible:
        what = f"Content-Type {given[:100]!r} is not possible here" if given else "The Content-Type is missing"
        raise UnsupportedMediaType(f"{what}; possible are: {', '.join(possible)}.")


def too_large(request: AnyRequest) -> TooLarge:
    limit = request.route_handler.resolve_request_max_body_size()
    return TooLarge(f"The body is larger than the {limit} bytes that are accepted here.")


def too_slow(request: AnyRequest) -> TooSlow:
    return TooSlow(f"The body, or its next piece, did not come within {request.app.state.body_seconds:g} s. Repeat it.")


def explained(error: msgspec.ValidationError, within: str = "") -> str:
    """msgspec's message with the attribute first: `numberOfSteps: Expected `int`, got `str`.`"""
    message = str(error)
    match = _PLACE.search(message)
    inner = match[1] if match else ""
    joint = "." if within and inner and not inner.startswith("[") else ""
    place = f"{within}{joint}{inner}"
    what = message[: match.start()] if match else message
    return f"{place or 'The body'}: {what}."


def check_shape(raw: bytes) -> None:
    """BadRequest when the document holds what can't be stored. Of most the bytes alone show that they don't."""
    if has_more_values(raw, MOST_VALUES):
        raise BadRequest(f"The body has more than {MOST_VALUES} values, which is the most that is accepted; send less.")
    if raw.count(b"{") + raw.count(b"[") <= DEEPEST and b"\\u0000" not in raw and not _has_long_number(raw):
        return
    waiting = [(_anything(raw), 1)]
    while waiting:
        value, depth = waiting.pop()
        if depth > DEEPEST:
            raise _too_deep()
        if isinstance(value, dict):
            for key, item in value.items():
                _check_scalar(key)
                waiting.append((item, depth + 1))
        elif isinstance(value, list):
            waiting += [(item, depth + 1) for item in value]
        else:
            _check_scalar(value)


def _has_long_number(raw: bytes) -> bool:
    """Not by a regular expression: that holds up all threads for half a second when a body is large."""
    return _LONG_NUMBER in raw.translate(_DIGITS)


def _check_scalar(value: Any) -> None:
    if isinstance(value, str) and "\0" in value:
        raise BadRequest("The body has a zero character (\\u0000) in a text; leave it out.")
    if isinstance(value, int) and not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        raise BadRequest("The body has an integer of more than 64 bits; write it as text.")


def _too_deep() -> BadRequest:
    return BadRequest(f"The body is nested deeper than {DEEPEST} levels.")
