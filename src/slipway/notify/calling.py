"""A call to a subscriber, as the one who subscribed wants it authenticated. Every call goes through the guard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.model.errors import OutsideError
from slipway.model.remembered import Remembered
from slipway.model.subscription import Authentication, AuthType, Interface
from slipway.outside.guard import Guard, read_limited

if TYPE_CHECKING:
    import httpx

TIMEOUT = 10.0  # seconds for each part of a call
PATIENCE = 20.0  # seconds for all of it
LARGEST = 1 << 16  # bytes of an answer that are read
VERSIONS = {Interface.LCM_V2: "2.0.0"}
EARLY = 30.0  # seconds before its end a token is fetched anew
MOST_TOKENS = 256


class CallFailed(Exception):
    """Why a subscriber was not reached, in words for a person."""


@dataclass(frozen=True)
class Identity:
    """Slipway's own certificate and key as PEM, for subscribers who want to see one."""

    certificate: str = field(repr=False)
    key: str = field(repr=False)
    thumbprint: str  # x5t#S256


class Calling:
    def __init__(
        self,
        guard: Guard,
        identity: Identity | None = None,
        ca: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guard = guard
        self._identity = identity
        self._verify: bool | str = ca or True
        self._clock = clock
        self._tokens: Remembered[str] = Remembered(MOST_TOKENS, clock)
        self._plain: httpx.AsyncClient | None = None
        self._known: httpx.AsyncClient | None = None

    async def test(self, uri: str, authentication: Authentication | None, interface: Interface, project: str) -> None:
        """The subscriber must answer a GET with 204 before it is told anything."""
        await self._call("GET", uri, None, authentication, interface, project)

    async def tell(
        self,
        uri: str,
        body: dict[str, Any],
        authentication: Authentication | None,
        interface: Interface,
        project: str,
    ) -> None:
        await self._call("POST", uri, body, authentication, interface, project)

    async def close(self) -> None:
        for client in (self._plain, self._known):
            if client is not None:
                await client.aclose()

    def refuse(self, authentication: Authentication) -> str | None:
        """What of it can't be done here; None when all can."""
        kinds = kinds_of(authentication)
        if AuthType.BASIC in kinds and authentication.params_basic is None:
            return "authentication.paramsBasic: it is missing; authType BASIC needs userName and password."
        if AuthType.OAUTH2 in kinds and authentication.params_oauth2_client_credentials is None:
            return "authentication.paramsOauth2ClientCredentials: it is missing; authType needs it."
        if {AuthType.TLS_CERTIFICATE, AuthType.OAUTH2_CERTIFICATE} & kinds:
            if self._identity is None:
                return "authentication.authType: this Slipway has no client certificate (setting client_certificate)."
            wanted = authentication.params_oauth2_client_cert
            if AuthType.OAUTH2_CERTIFICATE in kinds:
                if wanted is None:
                    return "authentication.paramsOauth2ClientCert: it is missing; authType needs it."
                if (wanted.certificate_ref.type, wanted.certificate_ref.value) != (
                    "x5t#S256",
                    self._identity.thumbprint,
                ):
                    return (
                        "authentication.paramsOauth2ClientCert.certificateRef: it is not that of this Slipway's "
                        f"certificate, which is x5t#S256 {self._identity.thumbprint}."
                    )
        return None

    async def _call(
        self,
        method: str,
        uri: str,
        body: dict[str, Any] | None,
        authentication: Authentication | None,
        interface: Interface,
        project: str,
    ) -> None:
        import httpx

        kinds = kinds_of(authentication) if authentication else frozenset()
        headers = {"Version": VERSIONS[interface]} if interface in VERSIONS else {}
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        auth = None
        try:
            if authentication and AuthType.BASIC in kinds and authentication.params_basic:
                auth = (authentication.params_basic.user_name, authentication.params_basic.password)
            elif authentication and {AuthType.OAUTH2, AuthType.OAUTH2_CERTIFICATE} & kinds:
                headers["Authorization"] = f"Bearer {await self._token(authentication, project)}"
            client = self._client(with_certificate=AuthType.TLS_CERTIFICATE in kinds)
            async with (
                asyncio.timeout(PATIENCE),
                client.stream(method, uri, content=content, headers=headers, auth=auth) as answer,
            ):
                if answer.status_code == httpx.codes.UNAUTHORIZED and authentication:
                    self._tokens.forget(_credential(authentication, project))
                if answer.status_code != httpx.codes.NO_CONTENT:
                    raise CallFailed(f"{_place(uri)} answered {answer.status_code} instead of 204.")
        except OutsideError as error:
            raise CallFailed(error.detail) from None
        except (TimeoutError, httpx.TimeoutException):
            raise CallFailed(f"{_place(uri)} did not answer within {TIMEOUT:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise CallFailed(f"{_place(uri)} can't be reached: {type(error).__name__}.") from None

    def _client(self, with_certificate: bool) -> httpx.AsyncClient:
        if with_certificate and self._identity is not None:
            if self._known is None:
                cert = (self._identity.certificate, self._identity.key)
                self._known = self._guard.client(timeout=TIMEOUT, verify=self._verify, cert=cert)
            return self._known
        if self._plain is None:
            self._plain = self._guard.client(timeout=TIMEOUT, verify=self._verify)
        return self._plain

    async def _token(self, authentication: Authentication, project: str) -> str:
        """One that was fetched before serves only who gave exactly the same, secret included, in the same project."""
        credential = _credential(authentication, project)
        if (known := self._tokens.get(credential)) is not None:
            return known
        fetched = await self._fetched(authentication)
        self._tokens.keep(credential, fetched.access_token, self._clock() + fetched.expires_in - EARLY)
        return fetched.access_token

    async def _fetched(self, authentication: Authentication) -> _TokenAnswer:
        endpoint, client_id = _endpoint(authentication)
        secret = authentication.params_oauth2_client_credentials
        form = {"grant_type": "client_credentials"}
        auth = None
        if secret is not None:
            auth = (secret.client_id, secret.client_password)
        else:
            form["client_id"] = client_id
        client = self._client(with_certificate=secret is None)
        async with asyncio.timeout(PATIENCE), client.stream("POST", endpoint, data=form, auth=auth) as answer:
            body = await read_limited(answer, LARGEST)
        if answer.status_code != 200:
            raise CallFailed(f"The token endpoint {_place(endpoint)} answered {answer.status_code}.")
        try:
            found = msgspec.json.decode(body, type=_TokenAnswer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = _TokenAnswer("")
        token = found.access_token
        if not token.isascii() or not token.isprintable() or " " in token or not token:
            raise CallFailed(f"The token endpoint {_place(endpoint)} gave no token.")
        return found


class _TokenAnswer(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float = 300.0


def _credential(authentication: Authentication, project: str) -> str:
    return f"{project}\n{msgspec.json.encode(authentication).decode()}"


def kinds_of(authentication: Authentication) -> frozenset[AuthType]:
    """What is asked for; told by the parameters where version 1 leaves it out."""
    given = authentication.auth_type
    kinds = frozenset({given} if isinstance(given, AuthType) else given)
    if kinds:
        return kinds
    if authentication.params_basic:
        return frozenset({AuthType.BASIC})
    return frozenset({AuthType.OAUTH2}) if authentication.params_oauth2_client_credentials else frozenset()


def _endpoint(authentication: Authentication) -> tuple[str, str]:
    params = authentication.params_oauth2_client_credentials or authentication.params_oauth2_client_cert
    if params is None:
        raise CallFailed("The subscription names no token endpoint.")
    return params.token_endpoint, params.client_id


def _place(uri: str) -> str:
    """Without the query, which may hold what nobody should read in a log."""
    return uri.partition("?")[0][:200]
