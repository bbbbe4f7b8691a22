"""What subscribers wait for outlives the processes that should bring it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from sqlalchemy.engine import URL

from tests.databases import setting
from tests.functional.processes import VIM, running
from tests.functional.subscriber import a_subscriber
from tests.functional.test_processes import instantiate, onboard, state_of, wait_for

STATES = [None, "STARTING", "PROCESSING", "COMPLETED"]
SUBSCRIPTIONS = "/vnflcm/v2/subscriptions"


async def test_a_server_killed_before_it_could_tell_tells_after_its_restart(tmp_path: Path) -> None:
    async with a_subscriber() as subscriber:
        with running("serve", tmp_path) as server, server.client() as client:
            subscribed = await asyncio.to_thread(client.post, SUBSCRIPTIONS, json={"callbackUri": subscriber.uri})
            assert subscribed.status_code == 201, subscribed.text
            subscriber.answers = [503] * 1000
            vnfd_id = await asyncio.to_thread(onboard, client, tmp_path)
            _, operation_id = await asyncio.to_thread(instantiate, client, vnfd_id)
            await asyncio.to_thread(wait_for, lambda: state_of(client, operation_id) == "COMPLETED")
            await subscriber.wait_for_calls(2)  # the test call, and a first try
            server.end(signal.SIGKILL)
        subscriber.answers = []
        with running("serve", tmp_path):
            told = await subscriber.wait_for(4, seconds=90)
    assert [one.get("operationState") for one in told] == STATES


async def test_workers_on_postgresql_tell_once_and_in_order(postgresql_url: URL, tmp_path: Path) -> None:
    url = setting(postgresql_url)
    shared = {"database_url": url, "allowed_networks": "127.0.0.0/8", "package_dir": tmp_path / "packages"}
    shared |= {"key_file": tmp_path / "key"}
    told_as = {"base_url": "http://slipway.example"}
    async with a_subscriber() as subscriber:
        with (
            running("api", tmp_path / "api", **shared) as api,
            running("worker", tmp_path / "one", **shared, **told_as),
            running("worker", tmp_path / "two", **shared, **told_as),
            api.client() as client,
        ):
            assert client.post("/slipway/v1/vims", json=VIM).status_code == 201
            subscribed = await asyncio.to_thread(client.post, SUBSCRIPTIONS, json={"callbackUri": subscriber.uri})
            assert subscribed.status_code == 201, subscribed.text
            vnfd_id = await asyncio.to_thread(onboard, client, tmp_path)
            made = [await asyncio.to_thread(instantiate, client, vnfd_id) for _ in range(3)]
            told = await subscriber.wait_for(12, seconds=60)
    assert len({one["id"] for one in told}) == 12
    for instance_id, _ in made:
        own = [one.get("operationState") for one in told if one["vnfInstanceId"] == instance_id]
        assert own == STATES
    assert told[0]["_links"]["vnfInstance"]["href"].startswith("http://slipway.example/vnflcm/v2/")
