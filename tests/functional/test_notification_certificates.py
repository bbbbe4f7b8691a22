"""Subscribers that want to see a certificate: Slipway shows its own, and believes only whom it may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from slipway.factories import notification_client
from slipway.notify.client import NotificationClient
from slipway.notify.delivery import NotificationSender
from slipway.notify.subscription_service import SubscriptionService
from slipway.outgoing.guard import Guard
from slipway.settings import load_settings
from slipway.store.database import Database
from slipway.store.secrets import Vault
from tests.functional.subscriber import a_subscriber
from tests.unit.api.world import BASE_URL, World, a_world
from tests.unit.vim.authority import Authority

pytestmark = pytest.mark.sqlite_suffices

SUBSCRIPTIONS = "/vnflcm/v2/subscriptions"
VERSION = {"Version": "2.0.0"}
GUARD = Guard(loopback=True)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def client(authority: Authority, tmp_path: Path) -> NotificationClient:
    files = {"callback_ca_file": authority.pem}
    files["client_certificate"], files["client_key"] = authority.issued("slipway")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    paths = {name: tmp_path / name for name in files}
    return notification_client(load_settings(overrides={"data_dir": tmp_path, **paths}, environment={}), GUARD)


@asynccontextmanager
async def told_by(database: Database, directory: Path, client: NotificationClient) -> AsyncIterator[World]:
    subscription_service = SubscriptionService(database, Vault(directory / "secrets.key"), GUARD, client, test=True)
    async with a_world(database, directory, subscription_service=subscription_service) as world:
        sender = NotificationSender(database, world.services.vault, client, BASE_URL, poll=0.05, give_up_after=3600)
        sending = asyncio.create_task(sender.serve())
        yield world
        await sender.shut_down()
        await sending


async def test_slipway_shows_its_certificate(
    database: Database, tmp_path: Path, authority: Authority, client: NotificationClient
) -> None:
    async with (
        a_subscriber(authority.server_context()) as subscriber,
        told_by(database, tmp_path, client) as world,
    ):
        body = {"callbackUri": subscriber.uri, "authentication": {"authType": ["TLS_CERT"]}}
        await world.call("POST", SUBSCRIPTIONS, 201, json=body, headers=VERSION)
        package = await world.onboard()
        await world.create(package["vnfdId"])
        await subscriber.wait_for(1)
    assert set(subscriber.shown) == {("/told", "slipway")}


async def test_a_token_is_fetched_with_the_certificate(
    database: Database, tmp_path: Path, authority: Authority, client: NotificationClient
) -> None:
    async with (
        a_subscriber(authority.server_context()) as subscriber,
        told_by(database, tmp_path, client) as world,
    ):
        params: dict[str, Any] = {
            "clientId": "slipway",
            "certificateRef": {"type": "x5t#S256", "value": "another"},
            "tokenEndpoint": f"https://127.0.0.1:{subscriber.port}/token",
        }
        authentication = {"authType": ["OAUTH2_CLIENT_CERT"], "paramsOauth2ClientCert": params}
        body = {"callbackUri": subscriber.uri, "authentication": authentication}
        refused = await world.call("POST", SUBSCRIPTIONS, 400, json=body, headers=VERSION)
        own = refused.json()["detail"].rpartition(" ")[2].rstrip(".")
        params["certificateRef"]["value"] = own
        await world.call("POST", SUBSCRIPTIONS, 201, json=body, headers=VERSION)
        package = await world.onboard()
        await world.create(package["vnfdId"])
        await subscriber.wait_for(1)
    assert ("/token", "slipway") in subscriber.shown
    assert subscriber.headers[0]["authorization"] == "Bearer token-1"


async def test_a_subscriber_nobody_vouches_for_is_not_told(
    database: Database, tmp_path: Path, client: NotificationClient
) -> None:
    stranger = Authority()
    async with (
        a_subscriber(stranger.server_context()) as subscriber,
        told_by(database, tmp_path, client) as world,
    ):
        body = {"callbackUri": subscriber.uri}
        refused = await world.call("POST", SUBSCRIPTIONS, 422, json=body, headers=VERSION)
    assert "cannot be reached" in refused.json()["detail"]
    assert subscriber.calls == 0
