"""The public keys of an OpenID provider: found by discovery, kept, and fetched again when a token names a new one.

Any client can send tokens that name keys which never were, so how often the issuer is asked does not depend on them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.model.errors import OutgoingRequestError, Unavailable
from slipway.outgoing.guard import Guard
from slipway.outgoing.responses import read_limited

if TYPE_CHECKING:
    import httpx

DISCOVERY = "/.well-known/openid-configuration"
ALGORITHMS = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC"}  # each with the type of its keys
SMALLEST_RSA = 2048  # bits
TIMEOUT = 10.0  # seconds for one request
LARGEST = 1 << 20  # bytes of an answer
MOST_KEYS = 100
FRESH = 3600.0  # seconds until keys are fetched again: one that was withdrawn is no longer accepted
OLDEST = 86400.0  # seconds that keys are used while the issuer cannot be reached
BETWEEN = 30.0  # seconds between two tries

Document = dict[str, Any]

log = logging.getLogger(__name__)


class IssuerKeys:
    def __init__(self, issuer: str, guard: Guard, verify: bool | str, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._guard = guard
        self._verify = verify
        self._clock = clock
        self._keys: list[Document] = []
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._fetching = asyncio.Lock()
        self._client: httpx.AsyncClient | None = None

    async def find(self, key_id: str | None, algorithm: str) -> Any | None:
        """The key for a token; None when the issuer has no such key. Unavailable when there are no keys at all."""
        if self._age() >= FRESH:
            await self._fetch()
        if (found := self._find(key_id, algorithm)) is None and await self._fetch():
            found = self._find(key_id, algorithm)
        return None if found is None else _usable(found, algorithm)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _age(self) -> float:
        return self._clock() - self._fetched

    def _find(self, key_id: str | None, algorithm: str) -> Document | None:
        """Without a key id: the only one that fits, if there is only one."""
        fitting = [key for key in self._keys if _fits(key, algorithm) and key_id in (None, key.get("kid"))]
        return fitting[0] if len(fitting) == 1 else None

    async def _fetch(self) -> bool:
        """Whether keys were fetched: not again so soon after the last time."""
        waited_since = self._tried
        async with self._fetching:
            if self._tried != waited_since:
                self._must_have_keys()
                return True  # by the caller we waited for
            if self._clock() - self._tried < BETWEEN:
                self._must_have_keys()
                return False
            self._tried = self._clock()
            try:
                self._keys = await self._published()
                self._fetched = self._clock()
            except _FetchFailed as error:
                log.warning("The keys of %s cannot be fetched: %s", self._issuer, error)
                self._must_have_keys()
            return True

    def _must_have_keys(self) -> None:
        """Unavailable when the keys are too old: while the issuer cannot be reached, known keys are used for a day."""
        if self._age() >= OLDEST:
            raise Unavailable(
                "This token cannot be checked now: the keys of its issuer cannot be fetched. Try again; the "
                "server's log says why."
            )

    async def _published(self) -> list[Document]:
        found = await self._document(self._issuer.rstrip("/") + DISCOVERY)
        if found.get("issuer") != self._issuer:
            raise _FetchFailed(
                f"the document found there names the issuer {found.get('issuer')!r}; correct oidc_issuer."
            )
        where = found.get("jwks_uri")
        if not isinstance(where, str) or (self._issuer.startswith("https:") and not where.startswith("https:")):
            raise _FetchFailed("it names no https address of its keys (jwks_uri).")
        keys = (await self._document(where)).get("keys")
        if not isinstance(keys, list):
            raise _FetchFailed(f"{where} has no keys.")
        return [key for key in keys[:MOST_KEYS] if isinstance(key, dict)]

    async def _document(self, url: str) -> Document:
        import httpx

        if self._client is None:
            self._client = self._guard.client(timeout=None, verify=self._verify)
        try:
            async with asyncio.timeout(TIMEOUT), self._client.stream("GET", url) as response:
                body = await read_limited(response, LARGEST)
            if response.status_code != 200:
                raise _FetchFailed(f"{url} answers {response.status_code}.")
            return msgspec.json.decode(body, type=Document)
        except TimeoutError:
            raise _FetchFailed(f"{url} does not answer within {TIMEOUT:g} s.") from None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise _FetchFailed(f"{url} does not answer with a JSON object.") from None
        except OutgoingRequestError as error:
            raise _FetchFailed(error.detail) from None
        except httpx.HTTPError as error:
            raise _FetchFailed(f"{url} cannot be reached: {error or type(error).__name__}.") from None


class _FetchFailed(Exception):
    """Why, for the log."""


def _fits(key: Document, algorithm: str) -> bool:
    return (
        key.get("kty") == ALGORITHMS[algorithm]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (key["kty"] != "EC" or key.get("crv") == "P-256")
    )


def _usable(key: Document, algorithm: str) -> Any | None:
    import jwt
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    try:
        made = jwt.PyJWK(key, algorithm=algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    is_public = {"d", "p", "q", "k"}.isdisjoint(key)
    large_enough = not isinstance(made.key, RSAPublicKey) or made.key.key_size >= SMALLEST_RSA
    return made if is_public and large_enough else None
