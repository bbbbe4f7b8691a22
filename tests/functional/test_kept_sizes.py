"""What an instance keeps of requests has a bound, however it comes: at once, or by many requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL

from slipway.package.build import build_package
from slipway.store.database import Database
from tests.functional.next_package import NEXT_ID, next_package
from tests.functional.rig import SAMPLE
from tests.unit.api.world import LCM, World, a_world

V1 = "/vnflcm/v1"
KEPT = ("extensions", "vnfConfigurableProperties", "additionalParams")
HALF = "x" * 600_000  # two of them are too many


@pytest.fixture
async def world(sqlite_url: URL, tmp_path: Path) -> AsyncIterator[World]:
    database = Database(sqlite_url)
    async with a_world(database, tmp_path) as world:
        yield world
    database.close()


async def refused(world: World, path: str, body: dict[str, Any], name: str, method: str = "POST") -> None:
    detail = (await world.call(method, path, 400, json=body)).json()["detail"]
    assert detail.startswith(f"{name}"), detail
    assert "bytes as JSON; at most 1048576 are kept" in detail


@pytest.mark.parametrize("version", [V1, LCM])
async def test_an_instantiation_brings_no_more_than_is_kept(world: World, version: str) -> None:
    await world.add_vim()
    new = await world.create((await world.onboard())["vnfdId"])
    path = f"{version}/vnf_instances/{new}/instantiate"
    for name in KEPT[:1] + KEPT[2:] if version == V1 else KEPT:
        await refused(world, path, {"flavourId": "simple", name: {"a": HALF, "b": HALF}}, f"{name}: ")
    await world.call("POST", path, 202, json={"flavourId": "simple", "extensions": {"a": HALF}})


async def test_a_change_of_package_adds_no_more_than_is_kept(world: World, tmp_path: Path) -> None:
    instance_id = await world.instantiated(**{name: {"a": HALF} for name in KEPT})
    csar = tmp_path / "next.csar"
    build_package(next_package(SAMPLE, tmp_path, NEXT_ID, words={}), csar)
    await world.onboard(csar)
    path = f"{LCM}/vnf_instances/{instance_id}/change_vnfpkg"
    for name in KEPT:
        await refused(world, path, {"vnfdId": NEXT_ID, name: {"b": HALF}}, f"{name}: ")
    replaced = {name: {"a": None, "b": HALF} for name in KEPT}
    await world.run(instance_id, "change_vnfpkg", {"vnfdId": NEXT_ID, **replaced})


async def test_properties_of_a_vnfc_have_the_same_bound(world: World) -> None:
    instance_id = await world.instantiated()
    vnfc = (await world.show(instance_id))["instantiatedVnfInfo"]["vnfcInfo"][0]["id"]
    body = {"vnfcInfoModifications": [{"id": vnfc, "vnfcConfigurableProperties": {"a": HALF, "b": HALF}}]}
    path = f"{LCM}/vnf_instances/{instance_id}"
    await refused(world, path, body, f"vnfcConfigurableProperties of {vnfc}: ", "PATCH")
