"""A package's content from an address that a caller gave: only where the guard allows, and within limits of size and
time. Errors go into the package's record; neither password nor query of the address is in them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING

from slipway.model.errors import BadRequest, OutgoingRequestError, ProblemDetails, TooLarge
from slipway.outgoing.guard import Guard

if TYPE_CHECKING:
    import httpx

REDIRECTS = 5
FIELD = "addressInformation"


class DownloadError(OutgoingRequestError):
    """What came back from the address, or that nothing did, and the cure."""

    @property
    def problem(self) -> ProblemDetails:
        return ProblemDetails(502, self.detail, "Download failed")


@dataclass(frozen=True)
class DownloadSource:
    """The address of the content, and the credentials for it."""

    uri: str
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class DownloadLimits:
    max_bytes: int = 20 * 1024**3
    idle_seconds: float = 60.0  # without a byte
    total_seconds: float = 6 * 3600.0


async def check_download_source(guard: Guard, source: DownloadSource) -> None:
    """BadRequest for what is wrong without a DNS lookup. Other errors show when it is fetched."""
    if ":" in (source.user_name or ""):
        raise BadRequest("userName: no user has a colon in the name. Correct it.")
    if source.password and not source.user_name:
        raise BadRequest("password: it goes with a userName. Give both, or neither.")
    try:
        url = guard.read(source.uri)
        if _is_address(url.host):
            await guard.check(url)
    except OutgoingRequestError as error:
        raise BadRequest(f"{FIELD}: {error.detail}") from None


async def download(guard: Guard, source: DownloadSource, limits: DownloadLimits) -> AsyncGenerator[bytes]:
    """The content, piece by piece. DownloadError or TooLarge as soon as it can't be had."""
    import httpx

    end = time.monotonic() + limits.total_seconds
    auth = (source.user_name, source.password or "") if source.user_name else None
    size = 0
    try:
        async with guard.client(timeout=limits.idle_seconds, auth=auth, redirects=REDIRECTS) as client:
            async with asyncio.timeout(limits.total_seconds):
                response = await client.send(client.build_request("GET", source.uri), stream=True)
            try:
                _check_answer(response, source, limits)
                async for chunk in response.aiter_raw():
                    size += len(chunk)
                    if size > limits.max_bytes:
                        raise _too_large(response, limits)
                    if time.monotonic() > end:
                        raise TimeoutError
                    yield chunk
            finally:
                await response.aclose()
    except DownloadError:
        raise
    except OutgoingRequestError as error:
        raise DownloadError(f"{FIELD}: {error.detail}", temporary=error.temporary) from None
    except TimeoutError:
        raise _failed(
            source, f"was not done after {limits.total_seconds:g} s ({size} bytes). Give a faster one."
        ) from None
    except httpx.TimeoutException:
        what = f"sent nothing for {limits.idle_seconds:g} s, after {size} bytes. See whether it works, and try again."
        raise _failed(source, what) from None
    except httpx.TransportError as error:
        raise _failed(source, _broken(error, size)) from None


def _check_answer(response: httpx.Response, source: DownloadSource, limits: DownloadLimits) -> None:
    if response.status_code != HTTPStatus.OK:
        raise _failed(source, f"answered {_named(response.status_code)}. {_cure(response.status_code, source)}")
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise _failed(source, f"sent the file packed as {encoding[:20]!r}. Have it sent as it is.")
    declared = response.headers.get("Content-Length", "0")
    if declared.isdecimal() and int(declared[:20]) > limits.max_bytes:
        raise _too_large(response, limits)


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _cure(status: int, source: DownloadSource) -> str:
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return "Correct userName and password." if source.user_name else "Give userName and password."
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return "Correct the path."
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "Try again later."
    return "Give the address of the file itself, which is answered with 200."


def _broken(error: httpx.TransportError, size: int) -> str:
    import httpx

    if size or isinstance(error, httpx.ReadError):
        return f"broke off after {size} bytes ({error}). Try again."
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return f"is not believed ({error}). Have its CA added to those that this machine trusts."
    if isinstance(error, httpx.ConnectError):
        return f"does not answer ({error}). Correct host and port, or see whether it works."
    return f"does not answer as an HTTP server does ({error}). Correct the scheme, or try again."


def _failed(source: DownloadSource, what: str) -> DownloadError:
    import httpx

    return DownloadError(f"{FIELD}: {httpx.URL(source.uri).host} {what}")


def _too_large(response: httpx.Response, limits: DownloadLimits) -> TooLarge:
    return TooLarge(
        f"{FIELD}: the file at {response.request.url.host} is larger than the {limits.max_bytes} bytes that are "
        "accepted. Make it smaller, or have the setting max_package_bytes raised."
    )


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
