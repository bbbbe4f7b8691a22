"""Subscribers are told: everything that they want to hear, in order, whatever they or we go through meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from slipway.notify.client import NotificationClient
from slipway.notify.delivery import LEASE, NotificationSender
from slipway.outgoing.guard import Guard
from slipway.store import subscriptions
from slipway.store.database import Database
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


@asynccontextmanager
async def sending(world: World, **more: Any) -> AsyncIterator[NotificationSender]:
    client = NotificationClient(Guard(loopback=True))
    values = {"poll": 0.05, "give_up_after": 3600.0, **more}
    sender = NotificationSender(world.services.database, world.services.vault, client, BASE_URL, **values)
    task = asyncio.create_task(sender.serve())
    try:
        yield sender
    finally:
        await sender.shut_down()
        await task


async def test_a_whole_life_is_told_in_order_in_the_words_of_each_version(world: World, subscriber: Subscriber) -> None:
    async with a_subscriber() as other, sending(world):
        first = await subscribe(world, V1, subscriber)
        await subscribe(world, V2, other)
        instance_id = await world.instantiated()
        await world.run(instance_id, "terminate", {"terminationType": "FORCEFUL"})
        await world.call("DELETE", f"/vnflcm/v2/vnf_instances/{instance_id}", 204, headers=VERSION)
        told, told_in_v2 = await subscriber.wait_for(8), await other.wait_for(8)
    expected = [
        ("VnfIdentifierCreationNotification", None, None),
        *((OPERATION, "INSTANTIATE", state) for state in ("STARTING", "PROCESSING", "COMPLETED")),
        *((OPERATION, "TERMINATE", state) for state in ("STARTING", "PROCESSING", "COMPLETED")),
        ("VnfIdentifierDeletionNotification", None, None),
    ]
    for heard in (told, told_in_v2):
        got = [(one["notificationType"], one.get("operation"), one.get("operationState")) for one in heard]
        assert got == expected
        assert [one.get("notificationStatus") for one in heard[1:4]] == ["START", "START", "RESULT"]
        assert len({one["id"] for one in heard}) == 8
        assert all(one["vnfInstanceId"] == instance_id for one in heard)
    done = told[3]
    assert done["affectedVnfcs"]
    assert "verbosity" not in done
    assert told_in_v2[3]["verbosity"] == "FULL"
    assert done["_links"] == {
        "vnfInstance": {"href": f"{BASE_URL}/vnflcm/v1/vnf_instances/{instance_id}"},
        "vnfLcmOpOcc": {"href": f"{BASE_URL}/vnflcm/v1/vnf_lcm_op_occs/{done['vnfLcmOpOccId']}"},
        "subscription": {"href": f"{BASE_URL}{V1}/{first['id']}"},
    }
    assert "vnfLcmOpOcc" not in told[0]["_links"]
    assert other.headers[0]["version"] == "2.0.0"
    assert "version" not in subscriber.headers[0]


async def test_a_sender_that_leaves_releases_what_it_claimed_meanwhile(
    world: World, subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    await subscribe(world, V2, subscriber)
    await world.create((await world.onboard())["vnfdId"])
    write, began, go_on = Database.write, asyncio.Event(), asyncio.Event()

    async def slow(self: Database, work: Callable[..., Any], *given: Any) -> Any:
        if work is subscriptions.claim:
            began.set()
            await go_on.wait()
        return await write(self, work, *given)

    monkeypatch.setattr(Database, "write", slow)
    async with sending(world) as sender:
        await began.wait()
        await sender.shut_down()
        go_on.set()
    async with sending(world):
        assert len(await subscriber.wait_for(1, seconds=LEASE / 4)) == 1


async def test_a_subscriber_is_left_before_it_is_taken_again(
    world: World, subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two deliveries to one subscriber overlap, and it is told twice."""
    write, released, looked, go_on = Database.write, asyncio.Event(), asyncio.Event(), asyncio.Event()
    claimed: list[Any] = []

    async def slow(self: Database, work: Callable[..., Any], *given: Any) -> Any:
        result = await write(self, work, *given)
        if work is subscriptions.claim and released.is_set() and not go_on.is_set():
            claimed.extend(result)
            looked.set()
        if work is subscriptions.release:
            released.set()
            await go_on.wait()
        return result

    vnfd_id = (await world.onboard())["vnfdId"]
    await subscribe(world, V2, subscriber)
    async with sending(world):
        monkeypatch.setattr(Database, "write", slow)
        await world.create(vnfd_id)
        await asyncio.wait_for(released.wait(), 10)
        await world.create(vnfd_id)
        await asyncio.wait_for(looked.wait(), 10)
        assert claimed == []
        go_on.set()
        assert len(await subscriber.wait_for(2)) == 2


async def test_only_what_the_filter_names_is_told(world: World, subscriber: Subscriber) -> None:
    async with sending(world), a_subscriber() as failures, a_subscriber() as others:
        await subscribe(
            world,
            V2,
            subscriber,
            verbosity="SHORT",
            filter={
                "operationTypes": ["INSTANTIATE"],
                "operationStates": ["COMPLETED"],
                "notificationTypes": [OPERATION],
            },
        )
        await subscribe(world, V2, failures, filter={"operationStates": ["FAILED_TEMP"]})
        named = {"vnfInstanceSubscriptionFilter": {"vnfInstanceNames": ["another"]}}
        await subscribe(world, V2, others, filter=named)
        await world.instantiated()
        told = await subscriber.wait_for(1)
        assert [one["operationState"] for one in told] == ["COMPLETED"]
        assert "affectedVnfcs" not in told[0]
        assert (await failures.wait_for(1))[0]["notificationType"] == "VnfIdentifierCreationNotification"
        assert others.told == []


async def test_what_does_not_arrive_is_sent_again_in_order_and_shown_meanwhile(
    world: World, subscriber: Subscriber
) -> None:
    subscriber.answers = [500, 503]
    async with sending(world):
        shown = await subscribe(world, V2, subscriber)
        await world.instantiated()
        await subscriber.wait_for_calls(1)
        delivery = await _delivery(world, shown["id"])
        assert delivery["pending"] >= 1
        told = await subscriber.wait_for(4)
        assert [one.get("operationState") for one in told] == [None, "STARTING", "PROCESSING", "COMPLETED"]
        delivery = await _delivery_when(world, shown["id"], lambda found: not found["pending"])
    assert delivery == {"pending": 0, "delivered": 4, "givenUp": 0}


async def test_a_failed_call_says_why(world: World, subscriber: Subscriber) -> None:
    subscriber.answers = [500] * 50
    async with sending(world):
        shown = await subscribe(world, V2, subscriber)
        package = await world.onboard()
        await world.create(package["vnfdId"])
        delivery = await _delivery_when(world, shown["id"], lambda found: found.get("lastError"))
    assert delivery["lastError"] == f"{subscriber.uri} answered 500 instead of 204."
    assert delivery["failuresInARow"] == 1


async def test_one_that_never_answers_delays_nobody(world: World, subscriber: Subscriber) -> None:
    async with a_subscriber() as silent, sending(world):
        silent.silent = True
        await subscribe(world, V2, silent)
        await subscribe(world, V2, subscriber)
        await world.instantiated()
        assert len(await subscriber.wait_for(4, seconds=5)) == 4
        assert silent.calls == 1


async def test_what_waits_outlives_a_restart(world: World, subscriber: Subscriber) -> None:
    await subscribe(world, V2, subscriber)
    await world.instantiated()
    assert subscriber.told == []
    async with sending(world):
        told = await subscriber.wait_for(4)
    assert [one.get("operationState") for one in told] == [None, "STARTING", "PROCESSING", "COMPLETED"]


async def test_a_sender_that_died_leaves_its_subscribers_to_the_next(world: World, subscriber: Subscriber) -> None:
    shown = await subscribe(world, V2, subscriber)
    package = await world.onboard()
    await world.create(package["vnfdId"])
    database = world.services.database
    claimed = await database.write(subscriptions.claim, "dead", 0.2, 10, [])
    assert [one.id for one in claimed] == [shown["id"]]
    assert await database.write(subscriptions.claim, "other", 0.2, 10, []) == []
    async with sending(world):
        assert len(await subscriber.wait_for(1)) == 1


async def test_what_is_too_old_is_given_up(world: World, subscriber: Subscriber) -> None:
    shown = await subscribe(world, V2, subscriber)
    package = await world.onboard()
    await world.create(package["vnfdId"])
    async with sending(world, give_up_after=-1.0):
        delivery = await _delivery_when(world, shown["id"], lambda found: found.get("givenUp"))
    assert delivery == {"pending": 0, "delivered": 0, "givenUp": 1}
    assert subscriber.told == []


async def test_packages_are_told_when_they_are_onboarded_disabled_and_deleted(
    world: World, subscriber: Subscriber
) -> None:
    async with sending(world):
        await subscribe(world, PACKAGES, subscriber)
        package = await world.onboard()
        where = f"/vnfpkgm/v1/vnf_packages/{package['id']}"
        await world.call("PATCH", where, 200, json={"operationalState": "DISABLED"})
        await world.call("DELETE", where, 204)
        told = await subscriber.wait_for(3)
    assert [(one["notificationType"], one.get("changeType")) for one in told] == [
        ("VnfPackageOnboardingNotification", None),
        ("VnfPackageChangeNotification", "OP_STATE_CHANGE"),
        ("VnfPackageChangeNotification", "PKG_DELETE"),
    ]
    assert told[1]["operationalState"] == "DISABLED"
    assert told[0]["_links"]["vnfPackage"]["href"] == BASE_URL + where


async def test_a_subscriber_gets_the_credentials_it_asked_for(world: World, subscriber: Subscriber) -> None:
    async with a_subscriber() as other, sending(world):
        basic = {"authType": ["BASIC"], "paramsBasic": {"userName": "me", "password": "canary"}}
        shown = await subscribe(world, V2, subscriber, authentication=basic)
        oauth2 = {
            "authType": ["OAUTH2_CLIENT_CREDENTIALS"],
            "paramsOauth2ClientCredentials": {
                "clientId": "slipway",
                "clientPassword": "canary",
                "tokenEndpoint": f"http://127.0.0.1:{other.port}/token",
            },
        }
        await subscribe(world, V2, other, authentication=oauth2)
        package = await world.onboard()
        await world.create(package["vnfdId"])
        await world.create(package["vnfdId"])
        await subscriber.wait_for(2)
        await other.wait_for(2)
    assert subscriber.headers[0]["authorization"] == "Basic bWU6Y2FuYXJ5"
    assert [one["authorization"] for one in other.headers] == ["Bearer token-1"] * 2
    assert other.tokens == 1
    assert "authentication" not in shown
    listed = await world.call("GET", f"{V2}?all_fields", 200, headers=VERSION)
    assert "canary" not in listed.text
    assert "authentication" not in listed.text


async def test_a_token_reaches_only_subscribers_that_gave_its_secret(world: World, subscriber: Subscriber) -> None:
    vnfd_id = (await world.onboard())["vnfdId"]
    async with sending(world), a_subscriber() as stranger:
        for one, password in ((subscriber, "right"), (stranger, "a guess")):
            params = {
                "clientId": "me",
                "clientPassword": password,
                "tokenEndpoint": f"http://127.0.0.1:{subscriber.port}/token",
            }
            oauth2 = {"authType": ["OAUTH2_CLIENT_CREDENTIALS"], "paramsOauth2ClientCredentials": params}
            await subscribe(world, V2, one, authentication=oauth2)
            await world.create(vnfd_id)
            await one.wait_for(1)
    assert subscriber.headers[0]["authorization"] == "Bearer token-1"
    assert stranger.headers[0]["authorization"] == "Bearer token-2"


async def _delivery(world: World, subscription_id: str) -> dict[str, Any]:
    answer = await world.call("GET", f"/slipway/v1/subscriptions/{subscription_id}/delivery", 200)
    found: dict[str, Any] = answer.json()
    return found


async def _delivery_when(world: World, subscription_id: str, test: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    async with asyncio.timeout(10):
        while True:
            if test(found := await _delivery(world, subscription_id)):
                return found
            await asyncio.sleep(0.02)
