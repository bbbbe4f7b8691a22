"""The client of subscribers' webhooks: authenticates as the subscription says. Every request goes through the guard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from slipway.model.errors import OutgoingRequestError
from slipway.model.subscription import Authentication, AuthType, Interface
from slipway.outgoing.guard import Guard
from slipway.outgoing.oauth2 import ClientCredentials, TokenCache, TokenError

if TYPE_CHECKING:
    import httpx

TIMEOUT = 10.0  # seconds for each part of a request
TOTAL_TIMEOUT = 20.0  # seconds for all of it, the fetch of a token included
VERSIONS = {Interface.LCM_V2: "2.0.0"}


class DeliveryError(Exception):
    """Why a notification was not delivered, for a person."""


@dataclass(frozen=True)
class ClientCertificate:
    """Slipway's own certificate and key as PEM, for subscribers who ask for one."""

    certificate: str = field(repr=False)
    key: str = field(repr=False)
    thumbprint: str  # x5t#S256


class NotificationClient:
    def __init__(
        self,
        guard: Guard,
        certificate: ClientCertificate | None = None,
        ca: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._guard = guard
        self._certificate = certificate
        self._verify: bool | str = ca or True
        self._tokens = TokenCache(clock)
        self._plain: httpx.AsyncClient | None = None
        self._with_certificate: httpx.AsyncClient | None = None

    async def test(self, uri: str, authentication: Authentication | None, interface: Interface, project: str) -> None:
        """The subscriber must answer a GET with 204 before anything is sent to it."""
        await self._request("GET", uri, None, authentication, interface, project)

    async def send(
        self,
        uri: str,
        body: dict[str, Any],
        authentication: Authentication | None,
        interface: Interface,
        project: str,
    ) -> None:
        await self._request("POST", uri, body, authentication, interface, project)

    async def close(self) -> None:
        for client in (self._plain, self._with_certificate):
            if client is not None:
                await client.aclose()

    def refusal(self, authentication: Authentication) -> str | None:
        """What of it is not supported here; None when all is."""
        kinds = kinds_of(authentication)
        if AuthType.BASIC in kinds and authentication.params_basic is None:
            return "authentication.paramsBasic is missing; authType BASIC needs userName and password."
        if AuthType.OAUTH2 in kinds and authentication.params_oauth2_client_credentials is None:
            return "authentication.paramsOauth2ClientCredentials is missing; authType needs it."
        if {AuthType.TLS_CERTIFICATE, AuthType.OAUTH2_CERTIFICATE} & kinds:
            if self._certificate is None:
                return "authentication.authType: this Slipway has no client certificate (setting client_certificate)."
            wanted = authentication.params_oauth2_client_cert
            if AuthType.OAUTH2_CERTIFICATE in kinds:
                if wanted is None:
                    return "authentication.paramsOauth2ClientCert is missing; authType needs it."
                if (wanted.certificate_ref.type, wanted.certificate_ref.value) != (
                    "x5t#S256",
                    self._certificate.thumbprint,
                ):
                    return (
                        "authentication.paramsOauth2ClientCert.certificateRef: it is not that of this Slipway's "
                        f"certificate, which is x5t#S256 {self._certificate.thumbprint}."
                    )
        return None

    async def _request(
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
        auth: httpx.Auth | tuple[str, str] | None = None
        if authentication and AuthType.BASIC in kinds and authentication.params_basic:
            auth = (authentication.params_basic.user_name, authentication.params_basic.password)
        elif authentication and {AuthType.OAUTH2, AuthType.OAUTH2_CERTIFICATE} & kinds:
            auth = self._bearer(authentication, project)
        client = self._http_client(with_certificate=AuthType.TLS_CERTIFICATE in kinds)
        try:
            async with (
                asyncio.timeout(TOTAL_TIMEOUT),
                client.stream(method, uri, content=content, headers=headers, auth=auth) as response,
            ):
                if response.status_code != httpx.codes.NO_CONTENT:
                    raise DeliveryError(f"{_place(uri)} answered {response.status_code} instead of 204.")
        except TokenError as error:
            what = "gave no token" if error.status == httpx.codes.OK else f"answered {error.status}"
            raise DeliveryError(f"The token endpoint {_place(error.token_url)} {what}.") from None
        except OutgoingRequestError as error:
            raise DeliveryError(error.detail) from None
        except (TimeoutError, httpx.TimeoutException):
            raise DeliveryError(f"{_place(uri)} did not answer within {TIMEOUT:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise DeliveryError(f"{_place(uri)} cannot be reached: {type(error).__name__}.") from None

    def _http_client(self, with_certificate: bool) -> httpx.AsyncClient:
        if with_certificate and self._certificate is not None:
            if self._with_certificate is None:
                cert = (self._certificate.certificate, self._certificate.key)
                self._with_certificate = self._guard.client(timeout=TIMEOUT, verify=self._verify, cert=cert)
            return self._with_certificate
        if self._plain is None:
            self._plain = self._guard.client(timeout=TIMEOUT, verify=self._verify)
        return self._plain

    def _bearer(self, authentication: Authentication, project: str) -> httpx.Auth:
        """A cached token serves only who gave exactly the same, secret included, in the same project."""
        from slipway.outgoing.bearer_auth import BearerAuth

        credentials = _client_credentials(authentication)
        credential = f"{project}\n{msgspec.json.encode(authentication).decode()}"
        client = self._http_client(with_certificate=credentials.client_secret is None)
        return BearerAuth(self._tokens, credential, credentials, client)


def kinds_of(authentication: Authentication) -> frozenset[AuthType]:
    """What the subscription asks for; by the parameters where version 1 leaves authType out."""
    given = authentication.auth_type
    kinds = frozenset({given} if isinstance(given, AuthType) else given)
    if kinds:
        return kinds
    if authentication.params_basic:
        return frozenset({AuthType.BASIC})
    return frozenset({AuthType.OAUTH2}) if authentication.params_oauth2_client_credentials else frozenset()


def _client_credentials(authentication: Authentication) -> ClientCredentials:
    if secret := authentication.params_oauth2_client_credentials:
        return ClientCredentials(secret.token_endpoint, secret.client_id, secret.client_password)
    if certificate := authentication.params_oauth2_client_cert:
        return ClientCredentials(certificate.token_endpoint, certificate.client_id)
    raise DeliveryError("The subscription names no token endpoint.")


def _place(uri: str) -> str:
    """Without the query, which may hold a secret."""
    return uri.partition("?")[0][:200]
