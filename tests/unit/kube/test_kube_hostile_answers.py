"""A cluster that a user registered may answer with anything: no more is taken than fits, and nothing but objects."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from slipway.kube.api import Api
from slipway.kube.credentials import Credentials
from slipway.kube.discovery import Resource
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object, ObjectRef
from slipway.kube.watch import Selection, wait_until
from slipway.outgoing.guard import Guard
from slipway.waiting import Observation
from tests.unit.vim.authority import Authority
from tests.unit.vim.loopback import Answering, Asked, Reply, serving

PODS = Resource("v1", "Pod", "pods", namespaced=True)
FILLING = ["x" * 16] * 200_000  # some 16 MB once it is read


def pod(number: int, **metadata: Any) -> Object:
    return {"metadata": {"name": f"p{number}", "uid": f"u{number}", **metadata}, "status": {"x": FILLING}}


def page(number: int) -> Object:
    return {"metadata": {"resourceVersion": "1", "continue": str(number + 1)}, "items": [pod(number)]}


def never(found: Mapping[ObjectRef, Object]) -> Observation:
    return Observation(False, f"{len(found)} there")


class Endless:
    """Pages without end, or events without end."""

    def __init__(self, *, lists: bool) -> None:
        self.lists, self.sent = lists, 0

    async def get(self, path: str, *, metadata_only: bool = False, **query: str) -> Object:
        self.sent += self.lists
        return page(self.sent) if self.lists else {"metadata": {"resourceVersion": "1"}, "items": []}

    async def watch(self, path: str, *, metadata_only: bool = False, **query: str) -> AsyncGenerator[Object, None]:
        while True:
            self.sent += 1
            yield {"type": "ADDED", "object": pod(self.sent)}


@pytest.mark.parametrize("lists", [True, False])
async def test_a_watch_keeps_no_more_than_fits(lists: bool) -> None:
    endless = Endless(lists=lists)
    with pytest.raises(KubeError, match=r"GET /api/v1/pods: the answer is larger than .* 256 MiB") as raised:
        await wait_until(endless, [Selection(PODS)], never, "it", 60, keep=lambda one: one)
    assert not raised.value.temporary
    assert endless.sent < 30


async def test_what_changes_again_and_again_is_kept_once() -> None:
    class Changing(Endless):
        async def watch(self, path: str, *, metadata_only: bool = False, **query: str) -> AsyncGenerator[Object, None]:
            for number in range(60):
                yield {"type": "DELETED" if number % 3 == 2 else "MODIFIED", "object": pod(number % 2)}
            yield {"type": "ADDED", "object": pod(100)}

    def done(found: Mapping[ObjectRef, Object]) -> Observation:
        return Observation(any(ref.name == "p100" for ref in found), "not yet")

    await wait_until(Changing(lists=False), [Selection(PODS)], done, "it", 60, keep=lambda one: one)


WRONG: list[Any] = [
    5,
    [5],
    [{}],
    [{"metadata": []}],
    [{"metadata": {"name": "p", "uid": 5}}],
    [{"metadata": {"name": 5, "uid": "u"}}],
    [{"metadata": {"name": "p" * 254, "uid": "u"}}],
    [{"metadata": {"name": "p", "uid": "u", "namespace": ["a"]}}],
    [{"metadata": {"name": "p", "uid": "u", "labels": ["a"]}}],
    [{"metadata": {"name": "p", "uid": "u", "annotations": {"a": 5}}}],
    [{"metadata": {"name": "p", "uid": "u", "ownerReferences": ["a"]}}],
]


@pytest.mark.parametrize("items", WRONG, ids=lambda items: json.dumps(items)[:60])
async def test_what_is_no_list_of_objects_is_told_as_such(items: Any) -> None:
    with answering(lambda _: Reply(200, {"metadata": {}, "items": items})) as api:
        async with api:
            with pytest.raises(KubeError, match=r"GET /api/v1/pods on https://.*: the answer is not a Kubernetes obj"):
                await api.list("/api/v1/pods")
            with pytest.raises(KubeError, match="what came back is no list of Kubernetes"):
                await wait_until(api, [Selection(PODS)], never, "it", 60, keep=lambda one: one)


async def test_a_list_without_metadata_has_one_page() -> None:
    with answering(lambda _: Reply(200, {"metadata": [1], "items": []})) as api:
        async with api:
            assert await api.list("/api/v1/pods") == []


async def test_discovery_that_is_nested_without_end_is_told_as_such() -> None:
    nested: Any = []
    for _ in range(800):
        nested = [nested]
    with answering(lambda _: Reply(200, {"kind": "APIGroupDiscoveryList", "items": [], "x": nested})) as api:
        async with api:
            with pytest.raises(KubeError, match=r"the answer is not (one of Kubernetes|a Kubernetes object)"):
                await api.discovery.resource("v1", "Pod")


@pytest.mark.parametrize("found", [None, [], "text", {}, {"metadata": {"uid": "u"}}])
async def test_what_is_no_event_is_told_as_such(found: Any) -> None:
    class Wrong(Endless):
        async def watch(self, path: str, *, metadata_only: bool = False, **query: str) -> AsyncGenerator[Object, None]:
            yield {"type": "ADDED", "object": found}

    with pytest.raises(KubeError, match=r"GET /api/v1/pods: (an event without an object|what came back is no object)"):
        await wait_until(Wrong(lists=False), [Selection(PODS)], never, "it", 60, keep=lambda one: one)


async def test_lists_of_one_session_take_no_more_than_fits() -> None:
    asked = list[Asked]()

    def answer(one: Asked) -> Reply:
        asked.append(one)
        return Reply(200, page(len(asked)))

    with answering(answer) as api:
        async with api:
            with pytest.raises(KubeError, match="larger than what is taken of one cluster at once, 512 MiB"):
                await api.list("/api/v1/pods")
    assert len(asked) < 60


@contextmanager
def answering(answer: Answering) -> Iterator[Api]:
    authority = Authority()
    with serving(answer, authority.server_context("127.0.0.1")) as url:
        yield Api(Credentials(url, authority.pem, token="t"), guard=Guard(loopback=True))


@pytest.mark.parametrize("many", [{"text": "x" * 600_000}, {"values": [1] * 60_000}], ids=["bytes", "values"])
async def test_a_list_of_large_objects_is_asked_for_in_smaller_pages(many: Object) -> None:
    """Twenty definitions, or Secrets that Helm keeps releases in, are more than is taken at once."""
    there = [{"metadata": {"name": f"p{number}", "uid": f"u{number}"}, **many} for number in range(20)]

    def answer(one: Asked) -> Reply:
        if "watch" in one.query:
            return Reply(410, {})
        begin = int(one.query.get("continue", "0"))
        end = begin + int(one.query["limit"])
        following = {"continue": str(end)} if end < len(there) else {}
        return Reply(200, {"metadata": {"resourceVersion": "1", **following}, "items": there[begin:end]})

    with answering(answer) as api:
        async with api:
            assert [one["metadata"]["name"] for one in await api.list("/api/v1/pods")] == [f"p{n}" for n in range(20)]
            assert await api.names("/api/v1/pods") == [f"p{n}" for n in range(20)]
            found = await wait_until(
                api, [Selection(PODS)], lambda found: Observation(len(found) == 20, "few"), "it", 30, keep=len
            )
            assert len(found) == 20
