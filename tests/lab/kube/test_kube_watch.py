"""Watches on a real API server: what comes, goes and changes; and each way in which a watch may break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from slipway.kube.account import ensure_account, request_token
from slipway.kube.api import Api
from slipway.kube.credentials import Credentials
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectRef
from slipway.kube.watch import Selection, Watch, wait_until
from slipway.model.errors import StepError
from slipway.waiting import Observation
from tests.functional.remote_proxy import proxy_to
from tests.lab.kube.control_plane import without_api_server
from tests.lab.kube.test_kube_api import config_map, config_maps, port_of

pytestmark = pytest.mark.journey


async def maps_in(api: Api, namespace: str, labels: str = "") -> Selection:
    everything = "metadata.name!=kube-root-ca.crt"
    return Selection(await api.discovery.resource("v1", "ConfigMap"), namespace, labels, everything)


def content(found: Object) -> str:
    return str((found.get("data") or {}).get("a"))


def contents(found: Mapping[ObjectRef, str]) -> dict[str, str]:
    return {ref.name: value for ref, value in found.items()}


async def until(api: Api, namespace: str, wanted: dict[str, str], limit: float = 30) -> None:
    def look(found: Mapping[ObjectRef, str]) -> Observation:
        return Observation(contents(found) == wanted, str(contents(found)))

    await wait_until(api, [await maps_in(api, namespace)], look, "the maps", limit, keep=content)


async def apply(api: Api, namespace: str, name: str, value: str) -> None:
    await api.apply(config_map(namespace, name, a=value))


async def test_what_comes_changes_and_goes_is_seen(api: Api, namespace: str) -> None:
    await apply(api, namespace, "old", "1")
    waiting = asyncio.create_task(until(api, namespace, {"new": "2"}))
    for value in ("1", "2"):
        await apply(api, namespace, "new", value)
    await api.delete(config_maps(namespace, "old"))
    await waiting


async def test_several_kinds_at_once_and_only_what_is_selected(api: Api, namespace: str) -> None:
    secrets = Selection(await api.discovery.resource("v1", "Secret"), namespace, metadata_only=True)
    labelled = await maps_in(api, namespace, "colour=red")
    seen: list[set[str]] = []

    def look(found: Mapping[ObjectRef, object]) -> Observation:
        seen.append({str(ref) for ref in found})
        return Observation(len(found) == 2, f"{len(found)} are there")

    waiting = asyncio.create_task(
        wait_until(api, [labelled, secrets], look, "two", 20, keep=lambda found: sorted(found))
    )
    await apply(api, namespace, "plain", "1")
    red = config_map(namespace, "red")
    red["metadata"]["labels"] = {"colour": "red"}
    await api.apply(red)
    metadata = {"name": "hidden", "namespace": namespace}
    await api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": "b"}})
    found = await waiting
    kinds = {ref.kind: kept for ref, kept in found.items()}
    assert kinds["Secret"] == ["apiVersion", "kind", "metadata"]  # what is secret in it was never sent
    assert "data" not in kinds["ConfigMap"]
    assert not any("plain" in name for names in seen for name in names)


async def test_time_that_is_over_and_what_is_hopeless_are_told(api: Api, namespace: str) -> None:
    with pytest.raises(
        StepError, match=r"timed out after 0\.5 s waiting for the maps \(last condition: \{\}\)"
    ) as caught:
        await until(api, namespace, {"never": "1"}, 0.5)
    assert caught.value.temporary
    hopeless = Observation(False, "it is broken", hopeless=True)
    with pytest.raises(StepError, match="stopped waiting for it: it is broken") as caught:
        await wait_until(api, [await maps_in(api, namespace)], lambda _: hopeless, "it", 10, keep=content)
    assert not caught.value.temporary


async def test_a_broken_or_silent_connection_is_replaced(api: Api, administrator: Credentials, namespace: str) -> None:
    async with proxy_to(port_of(administrator)) as proxy:
        there = replace(administrator, server=f"https://127.0.0.1:{proxy.port}")
        async with (
            Api(there, watch_idle=1.0, timeout=2.0) as far,
            Watch(far, [await maps_in(far, namespace)], content) as watch,
        ):
            await seen(watch, {})
            proxy.cut()
            await apply(api, namespace, "one", "1")
            await seen(watch, {"one": "1"})
            proxy.hang()  # nothing is said any more, and nothing is closed
            await api.delete(config_maps(namespace, "one"))
            await apply(api, namespace, "two", "2")
            await asyncio.wait([asyncio.create_task(asyncio.sleep(1.2))])
            proxy.cut()
            proxy.resume()
            await seen(watch, {"two": "2"})
            assert not watch.trouble


async def seen(watch: Watch[str], wanted: dict[str, str], limit: float = 30) -> None:
    async with asyncio.timeout(limit):
        while not watch.complete or contents(watch.objects) != wanted:
            assert await watch.changed(limit)


async def test_an_api_server_that_was_killed_and_is_back_has_lost_nothing(
    api: Api, namespace: str, control_plane: Path
) -> None:
    async with Watch(api, [await maps_in(api, namespace)], content) as watch:
        await apply(api, namespace, "before", "1")
        await seen(watch, {"before": "1"})
        away = await asyncio.to_thread(_killed_and_back, control_plane)
        assert away
        await apply(api, namespace, "after", "2")
        await seen(watch, {"before": "1", "after": "2"}, 60)


def _killed_and_back(control_plane: Path) -> bool:
    with without_api_server(control_plane):
        pass
    return True


async def test_a_version_that_is_too_old_is_a_410_and_all_is_listed_again(api: Api, namespace: str) -> None:
    selection = await maps_in(api, namespace)
    async with aclosing(api.watch(selection.path, resourceVersion="2")) as events:
        with pytest.raises(KubeError) as caught:
            await anext(events)
    assert caught.value.status == 410
    aging = Aging(api)
    await apply(api, namespace, "one", "1")
    async with Watch(aging, [selection], content) as watch:
        await seen(watch, {"one": "1"})
        await apply(api, namespace, "two", "2")
        await seen(watch, {"one": "1", "two": "2"})
    assert aging.lists >= 2


class Aging:
    """An API that is asked for a version of long ago, once: the server's answer is its own."""

    def __init__(self, api: Api) -> None:
        self._api, self.old, self.lists = api, True, 0

    async def get(self, path: str, *, metadata_only: bool = False, **query: str) -> Object:
        self.lists += 1
        return await self._api.get(path, metadata_only=metadata_only, **query)

    def watch(self, path: str, *, metadata_only: bool = False, **query: str) -> AsyncGenerator[Object, None]:
        if self.old:
            self.old, query["resourceVersion"] = False, "2"
        return self._api.watch(path, metadata_only=metadata_only, **query)


async def test_a_token_that_is_refused_is_renewed_once_and_the_watch_goes_on(
    api: Api, administrator: Credentials, namespace: str
) -> None:
    await ensure_account(api)
    token = await request_token(api, timedelta(hours=1))
    bare = replace(administrator, client_certificate=None, client_key=None)
    renewals: list[int] = []

    async def renew() -> Credentials:
        renewals.append(1)
        return replace(bare, token=token.value)

    async with Api(replace(bare, token="expired"), renew=renew) as ours:
        waiting = asyncio.create_task(until(ours, namespace, {"one": "1"}))
        await apply(api, namespace, "one", "1")
        await waiting
    assert renewals == [1]

    async def again() -> Credentials:
        return replace(bare, token="expired-as-well")

    async with Api(replace(bare, token="expired"), renew=again) as refused:
        with pytest.raises(KubeError, match="401 Unauthorized") as caught:
            await refused.get(config_maps(namespace))
    assert not caught.value.temporary
