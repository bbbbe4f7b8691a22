"""Tokens for subscribers are theirs alone: kept for whoever gave the same credentials in the same project."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from slipway.model.subscription import Authentication, Interface
from slipway.notify.client import DeliveryError, NotificationClient
from slipway.outgoing.guard import Guard
from slipway.outgoing.oauth2 import MOST_TOKENS
from tests.functional.subscriber import Subscriber, a_subscriber

RIGHT = "secret"


@pytest.fixture
async def subscriber() -> AsyncIterator[Subscriber]:
    async with a_subscriber() as subscriber:
        yield subscriber


@pytest.fixture
async def client() -> AsyncIterator[NotificationClient]:
    client = NotificationClient(Guard(loopback=True))
    yield client
    await client.close()


def oauth2(subscriber: Subscriber, password: str = RIGHT, client_id: str = "me") -> Authentication:
    params = {
        "clientId": client_id,
        "clientPassword": password,
        "tokenEndpoint": f"http://127.0.0.1:{subscriber.port}/token",
    }
    document = {"authType": ["OAUTH2_CLIENT_CREDENTIALS"], "paramsOauth2ClientCredentials": params}
    return msgspec.convert(document, Authentication)


async def send(client: NotificationClient, subscriber: Subscriber, authentication: Authentication, project: str) -> Any:
    await client.send(subscriber.uri, {}, authentication, Interface.LCM_V2, project)
    return subscriber.headers[-1]["authorization"]


async def test_a_token_goes_to_nobody_who_does_not_know_its_secret(
    client: NotificationClient, subscriber: Subscriber
) -> None:
    assert await send(client, subscriber, oauth2(subscriber), "blue") == "Bearer token-1"
    async with a_subscriber() as stranger:
        await client.send(stranger.uri, {}, oauth2(subscriber, "a guess"), Interface.LCM_V2, "blue")
        assert stranger.headers[-1]["authorization"] == "Bearer token-2"
        subscriber.tokens_for = {RIGHT}
        with pytest.raises(DeliveryError, match="answered 401"):
            await client.send(stranger.uri, {}, oauth2(subscriber, "another guess"), Interface.LCM_V2, "blue")
        assert stranger.calls == 1


async def test_projects_share_no_token(client: NotificationClient, subscriber: Subscriber) -> None:
    assert await send(client, subscriber, oauth2(subscriber), "blue") == "Bearer token-1"
    assert await send(client, subscriber, oauth2(subscriber), "red") == "Bearer token-2"
    assert await send(client, subscriber, oauth2(subscriber), "blue") == "Bearer token-1"


async def test_tokens_are_kept_for_a_bounded_number_of_subscribers(
    client: NotificationClient, subscriber: Subscriber
) -> None:
    for number in range(MOST_TOKENS + 1):
        await send(client, subscriber, oauth2(subscriber, client_id=str(number)), "blue")
    assert len(client._tokens) == MOST_TOKENS
    last, first = oauth2(subscriber, client_id=str(MOST_TOKENS)), oauth2(subscriber, client_id="0")
    assert await send(client, subscriber, last, "blue") == f"Bearer token-{MOST_TOKENS + 1}"
    assert await send(client, subscriber, first, "blue") == f"Bearer token-{MOST_TOKENS + 2}"


async def test_a_token_that_ended_is_fetched_anew(subscriber: Subscriber) -> None:
    now = [1000.0]
    client = NotificationClient(Guard(loopback=True), clock=lambda: now[0])
    assert await send(client, subscriber, oauth2(subscriber), "blue") == "Bearer token-1"
    now[0] += 3500
    assert await send(client, subscriber, oauth2(subscriber), "blue") == "Bearer token-1"
    now[0] += 100
    assert await send(client, subscriber, oauth2(subscriber), "blue") == "Bearer token-2"
    await client.close()


@pytest.mark.parametrize("token", ["", "two words", "line\r\nX-Other: header", "ключ"])
async def test_what_is_no_token_is_not_sent(client: NotificationClient, subscriber: Subscriber, token: str) -> None:
    subscriber.token = token
    with pytest.raises(DeliveryError, match="gave no token"):
        await send(client, subscriber, oauth2(subscriber), "blue")
    assert subscriber.calls == 0
