"""A change of package, as a client of the API sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slipway.package.build import build_package
from slipway.store.database import Database
from tests.functional.next_package import NEXT_ID, next_package
from tests.functional.rig import SAMPLE
from tests.unit.api.world import BASE_URL, LCM, PACKAGES, World, a_world


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


async def test_a_vnf_changes_to_another_package_and_the_old_one_is_free(world: World, tmp_path: Path) -> None:
    instance_id = await world.instantiated()
    old = (await world.call("GET", PACKAGES, 200)).json()[0]
    csar = tmp_path / "next.csar"
    build_package(next_package(SAMPLE, tmp_path, NEXT_ID, words={}), csar)
    new = await world.onboard(csar)

    link = (await world.show(instance_id))["_links"]["changeCurrentVnfPkg"]["href"]
    assert link == f"{BASE_URL}{LCM}/vnf_instances/{instance_id}/change_vnfpkg"
    asked = {"vnfInstanceId": instance_id, "operation": "CHANGE_VNFPKG", "request": {"vnfdId": NEXT_ID}}
    assert (await world.call("POST", "/slipway/v1/plans", 200, json=asked)).json()["steps"] == []
    operation = await world.run(instance_id, "change_vnfpkg", {"vnfdId": NEXT_ID})

    assert operation["operation"] == "CHANGE_VNFPKG"
    changed = {"vnfdId": NEXT_ID, "vnfdVersion": "2.0", "vnfSoftwareVersion": "2.0"}
    assert operation["modificationsTriggeredByVnfPkgChange"] == changed
    assert "changedInfo" not in operation
    shown = await world.show(instance_id)
    assert {key: shown[key] for key in changed} == changed
    await world.call("PATCH", f"{PACKAGES}/{old['id']}", 200, json={"operationalState": "DISABLED"})
    await world.call("DELETE", f"{PACKAGES}/{old['id']}", 204)
    await world.call("PATCH", f"{PACKAGES}/{new['id']}", 200, json={"operationalState": "DISABLED"})
    await world.call("DELETE", f"{PACKAGES}/{new['id']}", 409)


async def test_what_cant_be_is_refused(world: World) -> None:
    instance_id = await world.instantiated()
    path = f"{LCM}/vnf_instances/{instance_id}/change_vnfpkg"
    refused = await world.call("POST", path, 422, json={"vnfdId": "nobody's"})
    assert refused.json()["detail"].startswith("vnfdId: no onboarded VNF package")
    refused = await world.call("POST", path, 400, json={})
    assert "vnfdId" in refused.json()["detail"]
    shown = await world.show(instance_id)
    nobody = await world.create(shown["vnfdId"])
    await world.call("POST", f"{LCM}/vnf_instances/{nobody}/change_vnfpkg", 409, json={"vnfdId": shown["vnfdId"]})
