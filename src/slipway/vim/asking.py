"""One HTTP request to an address that came with a VIM: Keystone, a token endpoint.

Bounded in time and size, through no proxy, without following redirects, and past the guard.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from slipway.model.errors import OutsideError, VimError, VimFault
from slipway.model.json_size import has_more_values
from slipway.outside.guard import Guard, read_limited

if TYPE_CHECKING:
    import httpx

TIMEOUT = 20.0  # seconds, from the first packet to the last
LARGEST = 1 << 20  # bytes of an answer; a catalog has some ten thousand
MOST_VALUES = 50_000  # of it, keys included; a catalog has some thousand
MOST = 300  # characters of what a server says
LONGEST = 1 << 16  # of it that are looked at

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def document(self) -> dict[str, Any]:
        """The body as a JSON object; an empty one when it is none."""
        try:
            return msgspec.json.decode(self.body, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return {}


async def ask(
    method: str,
    url: str,
    *,
    tls: ssl.SSLContext,
    guard: Guard | None,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    form: Mapping[str, str] | None = None,
    seconds: float = TIMEOUT,
) -> Answer:
    """VimError when no answer comes: temporary, unless it is the certificate."""
    import httpx

    what = f"{method} {url}"
    content = None if json is None else msgspec.json.encode(json)
    kind = {"Content-Type": "application/json"} if content is not None else {}
    try:
        async with (
            asyncio.timeout(seconds),
            _client(guard, tls) as client,
            client.stream(
                method,
                url,
                content=content,
                data=form,
                headers={"User-Agent": "slipway", "Accept": "application/json", **kind, **(headers or {})},
            ) as response,
        ):
            body = await read_limited(response, LARGEST)
    except TimeoutError:
        cure = "see that this address can be reached from here, and that it is the right one."
        raise VimError(f"{what} was not answered within {seconds:g} s.", VimFault.TEMPORARY, cure=cure) from None
    except OutsideError as error:
        fault = VimFault.TEMPORARY if error.temporary else VimFault.PERMANENT
        raise VimError(f"{what}: {error.detail}", fault) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise _not_reached(what, urlsplit(url).netloc, error) from None
    if has_more_values(body, MOST_VALUES):
        cure = "see that this address is the right one."
        raise VimError(f"{what}: the answer has more than {MOST_VALUES} values.", VimFault.PERMANENT, cure=cure)
    return Answer(response.status_code, response.headers, body)


def _client(guard: Guard | None, tls: ssl.SSLContext) -> httpx.AsyncClient:
    """Without a guard only in tests of a driver alone."""
    return (guard or Guard(loopback=True)).client(verify=tls, timeout=None)


def said(text: object, secrets: Iterable[str] = ()) -> str:
    """What a server said, on one line, bounded, and without what must not be shown."""
    line = text if isinstance(text, str) else ""
    for secret in sorted(secrets, key=len, reverse=True):
        if secret:
            line = line.replace(secret, "***")
    line = _CONTROL.sub(" ", line[:LONGEST]).strip().rstrip(".")
    return line if len(line) <= MOST else line[: MOST - 1] + "…"


def _not_reached(what: str, where: str, error: Exception) -> VimError:
    found: BaseException | None = error
    for _ in range(10):
        if isinstance(found, ssl.SSLCertVerificationError):
            return VimError(
                f"{what}: the certificate of {where} was not accepted: {said(found.verify_message)}.",
                VimFault.PERMANENT,
                cure="give the CA that signed it as interfaceInfo.ssl_ca_cert, and an address that it is for.",
            )
        if isinstance(found, ssl.SSLError):
            return VimError(
                f"{what}: {where} does not speak TLS as it should: {said(found.reason or str(found))}.",
                VimFault.PERMANENT,
                cure="write http:// if that is what it speaks.",
            )
        if found is None:
            break
        found = found.__cause__ or found.__context__
    cure = "see that it runs, and that this address can be reached from here."
    return VimError(f"{what}: {said(str(error)) or type(error).__name__}.", VimFault.TEMPORARY, cure=cure)
