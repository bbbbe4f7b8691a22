"""Subscriptions: made once, listed, filtered, removed, and refused with a reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slipway.notify.client import NotificationClient
from slipway.notify.subscription_service import SubscriptionService
from slipway.outgoing.guard import Guard
from slipway.store.database import Database
from tests.cases import in_one_world
from tests.functional.subscriber import PACKAGES, V1, V2, VERSION, Subscriber, a_subscriber, subscribe
from tests.unit.api.world import BASE_URL, World, a_world

pytestmark = pytest.mark.sqlite_suffices

OPERATION = "VnfLcmOperationOccurrenceNotification"


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


@pytest.fixture
async def subscriber() -> AsyncIterator[Subscriber]:
    async with a_subscriber() as subscriber:
        yield subscriber


async def test_subscriptions_are_listed_shown_filtered_and_removed(world: World, subscriber: Subscriber) -> None:
    shown = await subscribe(world, V2, subscriber, filter={"operationTypes": ["HEAL"]})
    assert shown["filter"] == {"operationTypes": ["HEAL"]}
    await subscribe(world, V1, subscriber)
    listed = (await world.call("GET", V2, 200, headers=VERSION)).json()
    assert [one["id"] for one in listed] == [shown["id"]]
    assert (await world.call("GET", f"{V2}/{shown['id']}", 200, headers=VERSION)).json() == shown
    found = await world.call("GET", f"{V2}?filter=(eq,callbackUri,{subscriber.uri})", 200, headers=VERSION)
    assert len(found.json()) == 1
    hidden = await world.call("GET", f"{V2}?filter=(eq,authentication/authType,BASIC)", 400, headers=VERSION)
    assert "no attribute 'authentication'" in hidden.json()["detail"]
    await world.call("GET", f"{V1}/{shown['id']}", 404)
    await world.call("DELETE", f"{V2}/{shown['id']}", 204, headers=VERSION)
    await world.call("GET", f"{V2}/{shown['id']}", 404, headers=VERSION)
    await world.call("DELETE", f"{V2}/{shown['id']}", 404, headers=VERSION)


FILTERS = {
    V1: ({"operationTypes": ["HEAL", "SCALE"]}, {"operationTypes": ["SCALE", "HEAL"]}),
    V2: (
        {"vnfInstanceSubscriptionFilter": {"vnfdIds": ["a", "b"]}, "notificationTypes": [OPERATION]},
        {"notificationTypes": [OPERATION], "vnfInstanceSubscriptionFilter": {"vnfdIds": ["b", "a"]}},
    ),
    PACKAGES: ({"vnfdId": ["a"]}, {"vnfdId": "a", "vnfProductsFromProviders": []}),
}


@pytest.mark.parametrize("path", [V1, V2, PACKAGES])
async def test_equal_filters_are_one_subscription(world: World, subscriber: Subscriber, path: str) -> None:
    one, same = FILTERS[path]
    shown = await subscribe(world, path, subscriber, filter=one)
    for wanted in (one, same):
        body = {"callbackUri": subscriber.uri, "filter": wanted}
        again = await world.call("POST", path, 303, json=body, headers=VERSION if path == V2 else {})
        assert again.headers["location"] == f"{BASE_URL}{path}/{shown['id']}"
    await subscribe(world, path, subscriber)


@pytest.mark.parametrize(
    "query", ["", "?all_fields", "?fields=callbackUri", "?exclude_fields=verbosity", "?filter=(eq,verbosity,FULL)"]
)
async def test_a_list_of_version_2_always_says_how_much_is_told(
    world: World, subscriber: Subscriber, query: str
) -> None:
    await subscribe(world, V2, subscriber)
    (listed,) = (await world.call("GET", f"{V2}{query}", 200, headers=VERSION)).json()
    assert listed["verbosity"] == "FULL"
    assert listed["callbackUri"] == subscriber.uri
    short = await subscribe(world, V2, subscriber, verbosity="SHORT")
    found = (await world.call("GET", f"{V2}{query}", 200, headers=VERSION)).json()
    assert {one["id"]: one["verbosity"] for one in found}.get(short["id"], "SHORT") == "SHORT"


async def test_verbosity_is_no_word_of_the_other_interfaces(world: World, subscriber: Subscriber) -> None:
    for path in (V1, PACKAGES):
        await subscribe(world, path, subscriber)
        (listed,) = (await world.call("GET", f"{path}?all_fields", 200)).json()
        assert "verbosity" not in listed
        await world.call("GET", f"{path}?filter=(eq,verbosity,FULL)", 400)


@pytest.mark.parametrize("path", [V1, V2, PACKAGES])
async def test_who_subscribes_twice_is_shown_the_first(world: World, subscriber: Subscriber, path: str) -> None:
    shown = await subscribe(world, path, subscriber)
    headers = VERSION if path == V2 else {}
    again = await world.client.post(path, json={"callbackUri": subscriber.uri}, headers=headers)
    assert (again.status_code, again.headers["location"]) == (303, f"{BASE_URL}{path}/{shown['id']}")


@in_one_world(
    ("more", "told"),
    [
        ({"callbackUri": "ftp://127.0.0.1/"}, "callbackUri: "),
        ({"callbackUri": "http://169.254.169.254/latest"}, "callbackUri: 169.254.169.254 is"),
        ({"callbackUri": "http://u:p@127.0.0.1/"}, "callbackUri: "),
        ({"filter": {"operationTypes": ["DANCE"]}}, "filter.operationTypes[0]"),
        ({"filter": {"operationStates": ["LATE"]}}, "filter.operationStates[0]"),
        ({"authentication": {"authType": ["BASIC"]}}, "authentication.paramsBasic"),
        ({"authentication": {"authType": ["TLS_CERT"]}}, "client_certificate"),
        ({"verbosity": "LOUD"}, "verbosity"),
    ],
)
async def test_what_can_not_be_done_is_refused(
    world: World, subscriber: Subscriber, more: dict[str, Any], told: str
) -> None:
    body = {"callbackUri": subscriber.uri, **more}
    answer = await world.call("POST", V2, 400, json=body, headers=VERSION)
    assert told in answer.json()["detail"]
    assert (await world.call("GET", V2, 200, headers=VERSION)).json() == []


async def test_a_subscriber_must_answer_the_test_call(
    database: Database, tmp_path: Path, subscriber: Subscriber
) -> None:
    guard = Guard(loopback=True)
    async with a_world(database, tmp_path) as plain:
        services = plain.services
        subscription_service = SubscriptionService(
            database, services.vault, guard, NotificationClient(guard), test=True
        )
    async with a_world(database, tmp_path, subscription_service=subscription_service) as world:
        subscriber.test_status = 404
        body = {"callbackUri": subscriber.uri}
        answer = await world.call("POST", V2, 422, json=body, headers=VERSION)
        assert "callbackUri: the test request failed" in answer.json()["detail"]
        await world.call("POST", V1, 400, json=body)
        subscriber.test_status = 204
        await world.call("POST", V1, 201, json=body)
