"""Lists over HTTP: filters, selectors and pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slipway.store.database import Database
from tests.unit.api.world import BASE_URL, LCM, PACKAGES, World, a_world

INSTANCES = f"{LCM}/vnf_instances"
OP_OCCS = f"{LCM}/vnf_lcm_op_occs"


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path, page_size=3) as world:
        yield world


async def names(world: World, query: dict[str, str]) -> list[str]:
    listed = (await world.call("GET", INSTANCES, 200, params=query)).json()
    return [item["vnfInstanceName"] for item in listed]


async def several(world: World, count: int) -> None:
    package = await world.onboard()
    for number in range(count):
        await world.create(package["vnfdId"], vnfInstanceName=f"n{number}", metadata={"number": number})


async def test_pages_follow_each_other(world: World) -> None:
    await several(world, 8)
    seen: list[str] = []
    path: str | None = f"{INSTANCES}?exclude_default&filter=(neq,vnfInstanceName,n4)"
    pages = 0
    while path:
        answer = await world.call("GET", path, 200)
        seen += [item["vnfInstanceName"] for item in answer.json()]
        pages += 1
        link = answer.headers.get("link")
        path = None
        if link:
            url, _, relation = link.partition(";")
            assert relation == 'rel="next"'
            assert url.startswith(f"<{BASE_URL}{INSTANCES}?")
            path = url[1:-1].removeprefix(BASE_URL)
    assert seen == [f"n{number}" for number in range(8) if number != 4]
    assert pages == 3
    await world.call("GET", f"{INSTANCES}?nextpage_opaque_marker=nonsense", 400)


async def test_names_of_any_script_are_listed_as_they_were_given(world: World) -> None:
    given = ["Größe 5 €", "集群 😀", 'a "$secret" {0},\n$']
    package = await world.onboard()
    for name in given:
        await world.create(package["vnfdId"], vnfInstanceName=name)
    assert await names(world, {}) == given


async def test_filters(world: World) -> None:
    await several(world, 3)
    assert await names(world, {"filter": "(eq,vnfInstanceName,n1)"}) == ["n1"]
    assert await names(world, {"filter": "(gt,metadata/number,0)"}) == ["n1", "n2"]
    assert await names(world, {"filter": "(in,vnfInstanceName,n0,n2);(cont,vnfInstanceName,2)"}) == ["n2"]
    for wrong in ("", "(eq,nonsense,1)", "eq,id,1", "(like,id,1)", "(eq,vimConnectionInfo/accessInfo/password,x)"):
        await world.call("GET", INSTANCES, 400, params={"filter": wrong})
    packages = await world.call("GET", PACKAGES, 200, params={"filter": "(eq,usageState,IN_USE)"})
    assert len(packages.json()) == 1


async def test_selectors(world: World) -> None:
    await several(world, 1)

    async def one(**query: str) -> dict[str, Any]:
        item: dict[str, Any] = (await world.call("GET", INSTANCES, 200, params=query)).json()[0]
        assert item["_links"]["self"]["href"].startswith(BASE_URL)
        return item

    assert "metadata" not in await one()
    assert "metadata" not in await one(exclude_default="")
    assert (await one(all_fields=""))["metadata"] == {"number": 0}
    chosen = await one(fields="metadata/number")
    assert chosen["metadata"] == {"number": 0}
    assert "vnfInstanceName" not in chosen
    assert "vnfdId" in chosen, "what must be there is always there"
    without = await one(exclude_fields="vnfInstanceName,metadata/number")
    assert "vnfInstanceName" not in without
    assert without["metadata"] == {}
    both = await one(exclude_default="", fields="metadata")
    assert both["metadata"] == {"number": 0}
    assert both["vnfInstanceName"] == "n0"
    await world.call("GET", INSTANCES, 400, params={"fields": "nonsense"})
    await world.call("GET", INSTANCES, 400, params={"all_fields": "", "fields": "id"})
    await world.call("GET", INSTANCES, 400, params={"all_fields": "no"})


async def test_operations_come_newest_first_without_their_details(world: World) -> None:
    instance_id = await world.instantiated()
    await world.run(instance_id, "heal", {})
    listed = (await world.call("GET", OP_OCCS, 200)).json()
    assert [item["operation"] for item in listed] == ["HEAL", "INSTANTIATE"]
    assert not {"operationParams", "resourceChanges"} & set(listed[0])
    query = {"filter": f"(eq,vnfInstanceId,{instance_id});(eq,operation,INSTANTIATE)", "all_fields": ""}
    found = (await world.call("GET", OP_OCCS, 200, params=query)).json()
    assert [item["operationParams"]["flavourId"] for item in found] == ["simple"]
    nested = await world.call("GET", INSTANCES, 200, params={"fields": "instantiatedVnfInfo/vnfcInfo/vduId"})
    info = nested.json()[0]["instantiatedVnfInfo"]
    assert set(info) == {"flavourId", "vnfState", "vnfcInfo"}
    assert set(info["vnfcInfo"][0]) == {"id", "vduId", "vnfcState"}
