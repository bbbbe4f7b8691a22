"""Creates and removes subscriptions, after a test of the subscriber's endpoint."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
from sqlalchemy import Connection

from slipway.model.clock import utcnow
from slipway.model.errors import BadRequest, OutgoingRequestError, Unprocessable
from slipway.model.secrets import refuse_references
from slipway.model.subscription import (
    Authentication,
    Interface,
    LcmSubscriptionRequest,
    PackageSubscriptionRequest,
    Subscription,
    Verbosity,
    same_filter,
)
from slipway.notify.client import DeliveryError, NotificationClient
from slipway.outgoing.guard import Guard
from slipway.store import subscriptions
from slipway.store.database import Database, hold_project
from slipway.store.project_limits import ProjectLimits
from slipway.store.secrets import Vault
from slipway.store.subscriptions import Delivery

AnySubscriptionRequest = LcmSubscriptionRequest | PackageSubscriptionRequest


class SubscriptionService:
    """`test`: whether the endpoint must answer a GET before it is subscribed."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        guard: Guard,
        client: NotificationClient,
        *,
        test: bool,
        project_limits: ProjectLimits = ProjectLimits(),  # noqa: B008 - frozen
    ) -> None:
        self._database = database
        self._vault = vault
        self._guard = guard
        self._client = client
        self._test = test
        self._limits = project_limits

    async def add(
        self, interface: Interface, request: AnySubscriptionRequest, project: str
    ) -> tuple[Subscription, bool]:
        """The subscription, and whether it is new: the same request a second time gives the first one."""
        refuse_references(msgspec.to_builtins(request))
        await self._check(interface, request, project)
        return await self._database.write(self._add, interface, request, project)

    async def get(self, interface: Interface, subscription_id: str) -> Subscription:
        return await self._database.read_one(subscriptions.get, subscription_id, interface)

    async def delivery(self, subscription_id: str) -> Delivery:
        return await self._database.read(subscriptions.delivery, subscription_id)

    async def remove(self, interface: Interface, subscription_id: str) -> None:
        await self._database.write(self._remove, interface, subscription_id)

    async def _check(self, interface: Interface, request: AnySubscriptionRequest, project: str) -> None:
        addresses = {"callbackUri": request.callback_uri}
        if request.authentication:
            if why := self._client.refusal(request.authentication):
                raise BadRequest(why)
            addresses |= _endpoints(request.authentication)
        for attribute, address in addresses.items():
            try:
                await self._guard.check(address)
            except OutgoingRequestError as error:
                raise BadRequest(f"{attribute}: {error.detail}") from None
        if self._test:
            try:
                await self._client.test(request.callback_uri, request.authentication, interface, project)
            except DeliveryError as failure:
                kind = BadRequest if interface is Interface.LCM_V1 else Unprocessable
                raise kind(f"callbackUri: the test request failed: {failure} It must answer a GET with 204.") from None

    def _add(
        self, connection: Connection, interface: Interface, request: AnySubscriptionRequest, project: str
    ) -> tuple[Subscription, bool]:
        document: dict[str, Any] = msgspec.to_builtins(request)
        wanted = document.get("filter", {})
        verbosity = request.verbosity if isinstance(request, LcmSubscriptionRequest) else Verbosity.FULL
        hold_project(connection, project)
        for known in subscriptions.of_project(connection, project, (interface,)):
            if (known.callback_uri, known.verbosity) == (request.callback_uri, verbosity) and same_filter(
                known.filter, wanted
            ):
                return known, False
        self._limits.for_one_more_subscription(connection, project)
        subscription_id = str(uuid.uuid4())
        hidden = self._vault.encrypt_secrets(connection, subscription_id, document.get("authentication", {}))
        subscription = Subscription(
            id=subscription_id,
            interface=interface,
            callback_uri=request.callback_uri,
            filter=wanted,
            verbosity=verbosity,
            authentication=hidden,
            created_at=utcnow(),
        )
        subscriptions.insert_one(connection, subscription, project)
        return subscription, True

    def _remove(self, connection: Connection, interface: Interface, subscription_id: str) -> None:
        subscriptions.delete_one(connection, subscription_id, interface)
        self._vault.forget(connection, subscription_id)


def _endpoints(authentication: Authentication) -> dict[str, str]:
    found = {}
    if params := authentication.params_oauth2_client_credentials:
        found["authentication.paramsOauth2ClientCredentials.tokenEndpoint"] = params.token_endpoint
    if cert := authentication.params_oauth2_client_cert:
        found["authentication.paramsOauth2ClientCert.tokenEndpoint"] = cert.token_endpoint
    return found
