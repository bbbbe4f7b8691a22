"""Asks an NFVO for a grant (SOL003 9.4): at once, or looked for again until it has decided; and not for ever.

A refusal, an answer that can't be used and an NFVO that does not answer all end in an error that says so: nothing was
touched yet, and the operation ends as ROLLED_BACK.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

import msgspec

from slipway.model.errors import Forbidden, OutgoingRequestError, Unavailable, Unprocessable
from slipway.model.grant import Grant, GrantRequest
from slipway.nfvo.reading import plain, read_grant, said
from slipway.outgoing.guard import Guard
from slipway.outgoing.oauth2 import ClientCredentials, TokenCache, TokenError
from slipway.outgoing.responses import read_limited
from slipway.waiting import Backoff

if TYPE_CHECKING:
    import httpx

VERSION = "1.4.0"
PATH = "/grant/v1/grants"
ONE_REQUEST = 60.0  # seconds for an answer; an NFVO that thinks longer says 202
CONNECTING = 10.0  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds between two tries, or two looks
LARGEST = 8 << 20  # bytes of an answer

log = logging.getLogger(__name__)


class Granter(Protocol):
    """Grants operations."""

    async def ask(self, request: GrantRequest) -> Grant:
        """The grant for this request. RequestError says why there is none."""
        ...


class _Retry(Exception):
    """The request failed and can be repeated; why, for a person."""


class GrantResponse(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    location: str | None


class Nfvo:
    """`guard`: the address is the operator's own, so one that allows loopback will do.

    `credentials`: those of an OAuth2 client, user and password, or none.
    """

    def __init__(
        self,
        url: str,
        guard: Guard,
        credentials: ClientCredentials | tuple[str, str] | None = None,
        *,
        verify: bool | str = True,
        seconds: float = 300.0,
    ) -> None:
        self.grants = url.rstrip("/") + PATH
        self._guard = guard
        self._credentials = credentials
        self._tokens = TokenCache()
        self._verify = verify
        self._seconds = seconds

    async def ask(self, request: GrantRequest) -> Grant:
        failures: list[str] = []
        try:
            async with asyncio.timeout(self._seconds), self._guard.client(timeout=None, verify=self._verify) as client:
                return await self._granted(client, request, failures)
        except TimeoutError:
            last = f" The last: {failures[-1]}." if failures else ""
            raise Unavailable(
                f"The NFVO at {self.grants} gave no grant within {self._seconds:g} s.{last} Cure: see that it runs and "
                "can be reached, or raise grant_seconds; then begin again."
            ) from None

    async def _granted(self, client: httpx.AsyncClient, request: GrantRequest, failures: list[str]) -> Grant:
        answer = await self._request(client, "POST", self.grants, msgspec.json.encode(request), failures)
        expected, where, backoff = 201, "", _backoff()
        while answer.status == 202:
            where = self._poll_url(answer.location) if answer.location or not where else where
            failures.append("it had not decided yet")
            await backoff.pause()
            answer = await self._request(client, "GET", where, None, failures)
            expected = 200
        if answer.status != expected:
            raise self._refusal(answer)
        return read_grant(answer.body, request)

    async def _request(
        self, client: httpx.AsyncClient, method: str, url: str, body: bytes | None, failures: list[str]
    ) -> GrantResponse:
        """Retries while the NFVO is not reached or answers 5xx; the caller limits the time."""
        backoff = _backoff()
        while True:
            try:
                return await self._request_once(client, method, url, body)
            except _Retry as reason:
                failures.append(str(reason))
                log.warning("The NFVO at %s: %s; it is asked again.", self.grants, reason)
            await backoff.pause()

    async def _request_once(
        self, client: httpx.AsyncClient, method: str, url: str, body: bytes | None
    ) -> GrantResponse:
        """With a new token when the old one is answered with 401."""
        answer = await self._send(client, method, url, body)
        if answer.status == 401 and isinstance(self._credentials, ClientCredentials):
            answer = await self._send(client, method, url, body)
        if answer.status >= 500 or answer.status in (408, 429):
            raise _Retry(f"it answered {answer.status}: {said(answer.body)}")
        return answer

    async def _send(self, client: httpx.AsyncClient, method: str, url: str, body: bytes | None) -> GrantResponse:
        import httpx

        headers = {"Version": VERSION, "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        limits = httpx.Timeout(None, connect=CONNECTING)
        try:
            async with asyncio.timeout(ONE_REQUEST):
                auth = self._auth(client)
                async with client.stream(
                    method, url, content=body, headers=headers, auth=auth, timeout=limits
                ) as response:
                    return GrantResponse(
                        response.status_code, await read_limited(response, LARGEST), response.headers.get("Location")
                    )
        except TokenError as error:
            if error.status >= 500:
                raise _Retry(f"nfvo_token_url answered {error.status}") from None
            raise Unprocessable(f"There is no token for the NFVO: {_token_refusal(error.status)}") from None
        except OutgoingRequestError as error:
            if error.temporary:
                raise _Retry(error.detail.rstrip(".")) from None
            raise Unprocessable(f"The NFVO at {self.grants}: {error.detail}") from None
        except TimeoutError:
            raise _Retry(f"it did not answer within {ONE_REQUEST:g} s") from None
        except httpx.HTTPError as error:
            raise _Retry(f"it cannot be reached: {plain(str(error)) or type(error).__name__}") from None

    def _auth(self, client: httpx.AsyncClient) -> httpx.Auth | tuple[str, str] | None:
        from slipway.outgoing.bearer_auth import BearerAuth

        if isinstance(self._credentials, ClientCredentials):
            return BearerAuth(self._tokens, self.grants, self._credentials, client)
        return self._credentials

    def _poll_url(self, location: str | None) -> str:
        """Where to poll for a grant that is not decided. On the NFVO itself: our credentials go there, too."""
        import httpx

        if not location:
            raise Unprocessable(
                f"The NFVO at {self.grants} answered 202 without a Location. Cure: mend what the NFVO answers."
            )
        home = httpx.URL(self.grants)
        try:
            place = home.join(location)
        except (httpx.InvalidURL, ValueError):
            place = httpx.URL("")
        if (place.scheme, place.host, place.port) != (home.scheme, home.host, home.port):
            raise Unprocessable(
                f"The NFVO at {self.grants} answered 202 with the Location {plain(location[:200])!r}, which is not on "
                "it. Cure: give the address by which the NFVO knows itself as nfvo_url."
            )
        return str(place)

    def _refusal(self, answer: GrantResponse) -> Forbidden | Unprocessable:
        words = said(answer.body)
        if answer.status == 403:
            return Forbidden(f"The NFVO at {self.grants} refused the grant: {words}")
        cure = {
            401: "correct nfvo_auth and what belongs to it.",
            404: "give nfvo_url as the address that /grant/v1 follows.",
        }.get(answer.status, "compare docs/grants.md with what the NFVO wants, then begin again.")
        return Unprocessable(f"The NFVO at {self.grants} answered {answer.status}: {words}. Cure: {cure}")


def _token_refusal(status: int) -> str:
    if status == 200:
        return "nfvo_token_url gave no token. Cure: see that it is a token endpoint of OAuth2."
    return (
        f"nfvo_token_url answered {status}. Cure: correct nfvo_token_url, nfvo_client_id and nfvo_client_secret_file."
    )


def _backoff() -> Backoff:
    return Backoff(FIRST_PAUSE, LONGEST_PAUSE, factor=2.0, jitter=True)
