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

pytestmark = pytest.mark.sqlite_suffices


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


async def test_vnfcs_with_another_image_are_made_anew_and_both_versions_show_it(world: World, tmp_path: Path) -> None:
    instance_id = await world.instantiated()
    before = (await world.show(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    csar = tmp_path / "next.csar"
    build_package(next_package(SAMPLE, tmp_path, NEXT_ID, image="2.0", words={}), csar)
    await world.onboard(csar)
    body = {
        "vnfdId": NEXT_ID,
        "additionalParams": {"upgrade_type": "RollingUpdate", "vdu_params": [{"vdu_id": "workerNode"}]},
    }
    asked = {"vnfInstanceId": instance_id, "operation": "CHANGE_VNFPKG", "request": body}
    plan = (await world.call("POST", "/slipway/v1/plans", 200, json=asked)).json()["steps"]
    assert [step["id"] for step in plan if not step.get("after")] == ["remove machine workerNode-0"]
    assert not any(step.get("irreversible") for step in plan)

    operation = await world.run(instance_id, "change_vnfpkg", body)
    affected = operation["resourceChanges"]["affectedVnfcs"]
    assert [(one["vduId"], one["changeType"]) for one in affected] == [
        ("workerNode", "REMOVED"),
        ("workerNode", "REMOVED"),
        ("workerNode", "ADDED"),
        ("workerNode", "ADDED"),
    ]
    shown = (await world.call("GET", f"/vnflcm/v1/vnf_lcm_op_occs/{operation['id']}", 200)).json()
    assert shown["resourceChanges"]["affectedVnfcs"] == affected
    after = (await world.show(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    for old, new in zip(before, after, strict=True):
        stays = old["vduId"] == "masterNode"
        assert (old["id"] == new["id"]) is stays
        assert new["vnfcCpInfo"] == old["vnfcCpInfo"]


async def test_the_way_of_a_change_is_checked_when_it_is_asked_for(world: World, tmp_path: Path) -> None:
    instance_id = await world.instantiated()
    csar = tmp_path / "next.csar"
    build_package(next_package(SAMPLE, tmp_path, NEXT_ID, image="2.0", words={}), csar)
    await world.onboard(csar)
    path = f"{LCM}/vnf_instances/{instance_id}/change_vnfpkg"
    for params, status, said in (
        ({"upgrade_type": "BlueGreen"}, 400, "additionalParams.upgrade_type: it is 'BlueGreen'"),
        ({"vdu_params": [{"vdu_id": "nobody"}]}, 400, "additionalParams.vdu_params[0].vdu_id: the VNF has no VDU"),
        ({"lcm-operation-coordinate-new-vnf": "Scripts/x.py"}, 422, "the new package has no file 'Scripts/x.py'"),
    ):
        refused = await world.call("POST", path, status, json={"vnfdId": NEXT_ID, "additionalParams": params})
        assert said in refused.json()["detail"]
