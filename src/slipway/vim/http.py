"""One HTTP request to an address that came with a VIM: a token endpoint.

Bounded in time and size, through no proxy, without following redirects, and past the guard.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from slipway.model.errors import OutgoingRequestError, VimError, VimFault
from slipway.model.json_documents import has_more_values
from slipway.outgoing.guard import Guard
from slipway.outgoing.responses import read_limited, server_message

if TYPE_CHECKING:
    import httpx

TIMEOUT = 20.0  # seconds, from the first packet to the last
LARGEST = 1 << 20  # bytes of an answer; a catalog has some ten thousand
MOST_VALUES = 50_000  # of it, keys included; a catalog has some thousand


@dataclass(frozen=True)
class HttpResponse:
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
) -> HttpResponse:
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
    except OutgoingRequestError as error:
        fault = VimFault.TEMPORARY if error.temporary else VimFault.PERMANENT
        raise VimError(f"{what}: {error.detail}", fault) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise not_reached(what, urlsplit(url).netloc, error) from None
    if has_more_values(body, MOST_VALUES):
        cure = "see that this address is the right one."
        raise VimError(f"{what}: the answer has more than {MOST_VALUES} values.", VimFault.PERMANENT, cure=cure)
    return HttpResponse(response.status_code, response.headers, body)


def _client(guard: Guard | None, tls: ssl.SSLContext) -> httpx.AsyncClient:
    """Without a guard only in tests of a driver alone."""
    return (guard or Guard(loopback=True)).client(verify=tls, timeout=None)


def not_reached(what: str, where: str, error: Exception) -> VimError:
    """For an error without an answer, of whatever library: the cause says whether it was TLS."""
    found: BaseException | None = error
    for _ in range(10):
        if isinstance(found, ssl.SSLCertVerificationError):
            return VimError(
                f"{what}: the certificate of {where} was not accepted: {server_message(found.verify_message)}.",
                VimFault.PERMANENT,
                cure="give the CA that signed it as interfaceInfo.ssl_ca_cert, and an address that it is for.",
            )
        if isinstance(found, ssl.SSLError):
            return VimError(
                f"{what}: {where} does not speak TLS as it should: {server_message(found.reason or str(found))}.",
                VimFault.PERMANENT,
                cure="write http:// if that is what it speaks.",
            )
        if found is None:
            break
        found = found.__cause__ or found.__context__
    cure = "see that it runs, and that this address can be reached from here."
    return VimError(f"{what}: {server_message(str(error)) or type(error).__name__}.", VimFault.TEMPORARY, cure=cure)
