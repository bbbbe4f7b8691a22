"""Which kinds a server serves: all at once, group by group, and those that came later."""

from __future__ import annotations

import asyncio

import pytest

from slipway.kube.discovery import AGGREGATED, Discovery
from slipway.kube.errors import KubeError
from slipway.kube.interface import Object
from slipway.model.errors import StepError


class Server:
    """Answers what it is given, and remembers what it was asked for."""

    def __init__(self, answers: dict[str, Object], *, refuses: int | None = None) -> None:
        self.answers, self.refuses = answers, refuses
        self.asked: list[str] = []

    async def get(self, path: str, *, accept: str | None = None) -> Object:
        self.asked.append(path)
        await asyncio.sleep(0)
        if path in ("/api", "/apis"):
            assert accept == AGGREGATED
            if self.refuses:
                raise KubeError("no", status=self.refuses)
        if path not in self.answers:
            raise KubeError("no", status=404)
        return self.answers[path]


def version(name: str, *kinds: str) -> Object:
    resources = [
        {
            "resource": f"{kind.lower()}s",
            "scope": "Namespaced",
            "verbs": ["get", "list"],
            "responseKind": {"kind": kind},
            "subresources": [{"subresource": "scale"}],
        }
        for kind in kinds
    ]
    return {"version": name, "resources": resources}


def aggregated(**groups: list[Object]) -> Object:
    items = [{"metadata": {"name": f"{name}.test"}, "versions": versions} for name, versions in groups.items()]
    return {"kind": "APIGroupDiscoveryList", "items": items}


def manifest(api_version: str, kind: str, **metadata: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a/b", **metadata}}


async def test_all_groups_come_with_one_call() -> None:
    server = Server({"/apis": aggregated(sea=[version("v1", "Ship")], air=[version("v2", "Plane")])})
    discovery = Discovery(server.get, "https://k")
    ship = await discovery.resource("sea.test/v1", "Ship")
    assert (ship.group, ship.plural, ship.namespaced) == ("sea.test", "ships", True)
    assert "list" in ship.verbs
    assert ship.path("ns", "one", "scale") == "/apis/sea.test/v1/namespaces/ns/ships/one/scale"
    assert ship.collection() == "/apis/sea.test/v1/ships"
    assert "scale" in ship.subresources
    assert await discovery.path(manifest("air.test/v2", "Plane")) == "/apis/air.test/v2/namespaces/default/planes/a%2Fb"
    assert server.asked == ["/apis"]


async def test_many_who_ask_at_once_are_one_call() -> None:
    server = Server({"/apis": aggregated(sea=[version("v1", "Ship")])})
    discovery = Discovery(server.get, "https://k")
    await asyncio.gather(*(discovery.resource("sea.test/v1", "Ship") for _ in range(200)))
    assert server.asked == ["/apis"]


@pytest.mark.parametrize("refuses", [None, 403, 406])
async def test_where_there_is_no_aggregated_discovery_a_group_is_asked_for_once_and_again_for_a_new_kind(
    refuses: int | None,
) -> None:
    kinds: list[Object] = [
        {"name": "ships", "kind": "Ship", "namespaced": True},
        {"name": "ships/status", "kind": "Ship"},
    ]
    server = Server({"/apis": {"kind": "APIGroupList"}, "/apis/sea.test/v1": {"resources": kinds}}, refuses=refuses)
    discovery = Discovery(server.get, "https://k")
    for _ in range(3):
        found = await discovery.path(manifest("sea.test/v1", "Ship", namespace="ns"))
        assert found == "/apis/sea.test/v1/namespaces/ns/ships/a%2Fb"
    assert server.asked == ["/apis", "/apis/sea.test/v1"]
    assert (await discovery.resource("sea.test/v1", "Ship")).subresources == {"status"}
    with pytest.raises(KubeError, match=r"knows no Fleet in sea\.test/v1; no CustomResourceDefinition there serves it"):
        await discovery.resource("sea.test/v1", "Fleet")
    kinds.append({"name": "fleets", "kind": "Fleet", "namespaced": False})
    assert await discovery.path(manifest("sea.test/v1", "Fleet")) == "/apis/sea.test/v1/fleets/a%2Fb"


async def test_everything_is_found_where_there_is_no_aggregated_discovery() -> None:
    """Else what is left in a cluster, and what others have in a namespace, would not be seen."""
    groups = [{"name": f"{name}.test", "versions": [{"groupVersion": f"{name}.test/v1"}]} for name in ("sea", "air")]
    server = Server({
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]},
        "/apis": {"kind": "APIGroupList", "groups": groups},
        "/apis/sea.test/v1": {"resources": [{"name": "ships", "kind": "Ship", "namespaced": True}]},
    })  # fmt: skip
    discovery = Discovery(server.get, "https://k")
    assert {one.kind for one in await discovery.everything()} == {"Pod", "Ship"}
    asked = len(server.asked)
    assert {one.kind for one in await discovery.everything()} == {"Pod", "Ship"}
    assert len(server.asked) == asked


@pytest.mark.parametrize("status", [403, 503])
async def test_a_group_that_does_not_answer_hides_no_other(status: int) -> None:
    groups = [{"name": name, "versions": [{"groupVersion": f"{name}/v1"}]} for name in ("metrics.test", "sea.test")]
    ships = {"resources": [{"name": "ships", "kind": "Ship", "namespaced": True}]}
    server = Server({"/apis": {"kind": "APIGroupList", "groups": groups}, "/apis/sea.test/v1": ships, "/api": {}})

    async def get(path: str, *, accept: str | None = None) -> Object:
        if path == "/apis/metrics.test/v1":
            raise KubeError("no", status=status, temporary=status == 503)
        return await server.get(path, accept=accept)

    assert [one.kind for one in await Discovery(get, "https://k").everything()] == ["Ship"]


def test_the_former_version_of_aggregated_discovery_is_taken_as_well() -> None:
    """Kubernetes has v2 from 1.30 on; of 1.27 to 1.29 it is v2beta1, which says the same."""
    assert [one.split(";")[2] for one in AGGREGATED.split(",")] == ["v=v2", "v=v2beta1"]


async def test_a_version_that_is_not_served_is_told_with_those_that_are() -> None:
    served = {"versions": [{"groupVersion": "sea.test/v1"}, {"groupVersion": "sea.test/v2"}]}
    server = Server({
        "/apis": aggregated(sea=[version("v1", "Ship"), version("v2", "Ship", "Fleet")]), "/apis/sea.test": served,
    })  # fmt: skip
    discovery = Discovery(server.get, "https://k")
    with pytest.raises(KubeError) as caught:
        await discovery.resource("sea.test/v3", "Ship")
    assert "https://k knows no Ship in sea.test/v3; served versions: sea.test/v1, sea.test/v2." in caught.value.detail
    assert "Cure: write one of these as apiVersion" in caught.value.detail
    with pytest.raises(KubeError, match=r"served versions: sea\.test/v2\."):
        await discovery.resource("sea.test/v1", "Fleet")


async def test_what_was_forgotten_is_asked_for_again() -> None:
    server = Server({"/apis": aggregated(sea=[version("v1", "Ship")])})
    discovery = Discovery(server.get, "https://k")
    await discovery.resource("sea.test/v1", "Ship")
    server.answers["/apis"] = aggregated()
    discovery.forget()
    with pytest.raises(KubeError):
        await discovery.resource("sea.test/v1", "Ship")


@pytest.mark.parametrize("answer", [{"kind": "APIGroupDiscoveryList", "items": [3]}, {"kind": "APIGroupDiscoveryList"}])
async def test_an_answer_that_is_none_of_kubernetes_is_told(answer: Object) -> None:
    with pytest.raises(KubeError, match=r"not one of Kubernetes|knows no Ship"):
        await Discovery(Server({"/apis": answer}).get, "https://k").resource("sea.test/v1", "Ship")


@pytest.mark.parametrize("given", [{}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}}])
async def test_a_manifest_without_identity_is_refused(given: Object) -> None:
    with pytest.raises(StepError, match="lacks apiVersion, kind or"):
        await Discovery(Server({}).get, "https://k").path(given)
