"""Asks an NFVO for a grant (SOL003 9.4): at once, or looked for again until it has decided; and not for ever.

A refusal, an answer that can't be used and an NFVO that does not answer all end in an error that says so: nothing was
touched yet, and the operation ends as ROLLED_BACK.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Protocol

import msgspec

from slipway.model.errors import Forbidden, OutsideError, Unavailable, Unprocessable
from slipway.model.grant import Grant, GrantRequest
from slipway.nfvo.login import Login, LoginFailed
from slipway.nfvo.reading import plain, read_grant, said
from slipway.outside.guard import Guard, read_limited

if TYPE_CHECKING:
    import httpx

VERSION = "1.4.0"
PATH = "/grant/v1/grants"
ONE_REQUEST = 60.0  # seconds for an answer; an NFVO that thinks longer says 202
CONNECTING = 10.0  # seconds
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0  # seconds between two tries, or two looks
LARGEST = 8 << 20  # bytes of an answer

log = logging.getLogger(__name__)


class GrantDesk(Protocol):
    """Who grants."""

    async def ask(self, request: GrantRequest) -> Grant:
        """A grant that is an answer to this request. RequestError when there is none, and why."""
        ...


class _Later(Exception):
    """No answer this time; why, in words for a person."""


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    location: str | None


class Nfvo:
    """`guard`: the address is the operator's own, so one that allows loopback will do."""

    def __init__(
        self, url: str, guard: Guard, login: Login, *, verify: bool | str = True, seconds: float = 300.0
    ) -> None:
        self.grants = url.rstrip("/") + PATH
        self._guard = guard
        self._login = login
        self._verify = verify
        self._seconds = seconds

    async def ask(self, request: GrantRequest) -> Grant:
        heard: list[str] = []
        try:
            async with asyncio.timeout(self._seconds), self._guard.client(timeout=None, verify=self._verify) as client:
                return await self._granted(client, request, heard)
        except TimeoutError:
            last = f" The last: {heard[-1]}." if heard else ""
            raise Unavailable(
                f"The NFVO at {self.grants} gave no grant within {self._seconds:g} s.{last} Cure: see that it runs and "
                "can be reached, or raise grant_seconds; then begin again."
            ) from None

    async def _granted(self, client: httpx.AsyncClient, request: GrantRequest, heard: list[str]) -> Grant:
        answer = await self._answered(client, "POST", self.grants, msgspec.json.encode(request), heard)
        expected, where, looks = 201, "", 0
        while answer.status == 202:
            where = self._place(answer.location) if answer.location or not where else where
            heard.append("it had not decided yet")
            await asyncio.sleep(_wait(looks))
            answer = await self._answered(client, "GET", where, None, heard)
            expected, looks = 200, looks + 1
        if answer.status != expected:
            raise self._refusal(answer)
        return read_grant(answer.body, request)

    async def _answered(
        self, client: httpx.AsyncClient, method: str, url: str, body: bytes | None, heard: list[str]
    ) -> Answer:
        """Again and again while it is not there or has troubles of its own; whoever called sets the end."""
        tries = 0
        while True:
            try:
                return await self._tried(client, method, url, body)
            except _Later as later:
                heard.append(str(later))
                log.warning("The NFVO at %s: %s; it is asked again.", self.grants, later)
            await asyncio.sleep(_wait(tries))
            tries += 1

    async def _tried(self, client: httpx.AsyncClient, method: str, url: str, body: bytes | None) -> Answer:
        """With a new token when the old one is no longer taken."""
        answer = await self._sent(client, method, url, body)
        if answer.status == 401 and self._login.forget():
            answer = await self._sent(client, method, url, body)
        if answer.status >= 500 or answer.status in (408, 429):
            raise _Later(f"it answered {answer.status}: {said(answer.body)}")
        return answer

    async def _sent(self, client: httpx.AsyncClient, method: str, url: str, body: bytes | None) -> Answer:
        import httpx

        headers = {"Version": VERSION, "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        limits = httpx.Timeout(None, connect=CONNECTING)
        try:
            async with asyncio.timeout(ONE_REQUEST):
                headers |= await self._login.headers(client)
                async with client.stream(method, url, content=body, headers=headers, timeout=limits) as response:
                    return Answer(
                        response.status_code, await read_limited(response, LARGEST), response.headers.get("Location")
                    )
        except LoginFailed as failed:
            if failed.temporary:
                raise _Later(str(failed)) from None
            raise Unprocessable(f"Nobody logs in at the NFVO: {failed}") from None
        except OutsideError as error:
            if error.temporary:
                raise _Later(error.detail.rstrip(".")) from None
            raise Unprocessable(f"The NFVO at {self.grants}: {error.detail}") from None
        except TimeoutError:
            raise _Later(f"it did not answer within {ONE_REQUEST:g} s") from None
        except httpx.HTTPError as error:
            raise _Later(f"it is not reached: {plain(str(error)) or type(error).__name__}") from None

    def _place(self, location: str | None) -> str:
        """Where to look for a grant that is not decided. On the NFVO itself: our login goes there, too."""
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

    def _refusal(self, answer: Answer) -> Forbidden | Unprocessable:
        words = said(answer.body)
        if answer.status == 403:
            return Forbidden(f"The NFVO at {self.grants} refused the grant: {words}")
        cure = {
            401: "correct nfvo_auth and what belongs to it.",
            404: "give nfvo_url as the address that /grant/v1 follows.",
        }.get(answer.status, "compare docs/grants.md with what the NFVO wants, then begin again.")
        return Unprocessable(f"The NFVO at {self.grants} answered {answer.status}: {words}. Cure: {cure}")


def _wait(number: int) -> float:
    longest: float = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(number, 16))
    return random.uniform(longest / 2, longest)  # noqa: S311 - not for secrecy
