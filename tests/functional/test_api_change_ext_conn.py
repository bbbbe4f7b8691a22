"""A change of external connectivity, as a client of the API sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slipway.store.database import Database
from tests.unit.api.world import BASE_URL, LCM, World, a_world

LINK = {"id": "outside", "resourceId": "net-2", "extCps": [{"cpdId": "workerNode_CP1"}]}


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


async def test_connection_points_move_and_the_operation_tells_it(world: World) -> None:
    instance_id = await world.instantiated()
    here = f"{LCM}/vnf_instances/{instance_id}"
    link = (await world.show(instance_id))["_links"]["changeExtConn"]["href"]
    assert link == f"{BASE_URL}{here}/change_ext_conn"
    body = {"extVirtualLinks": [LINK]}
    asked = {"vnfInstanceId": instance_id, "operation": "CHANGE_EXT_CONN", "request": body}
    steps = (await world.call("POST", "/slipway/v1/plans", 200, json=asked)).json()["steps"]
    assert {step["node"] for step in steps} == {"workerNode-0", "workerNode-1"}
    operation = await world.run(instance_id, "change_ext_conn", body)

    recorded = {
        "id": "outside",
        "resourceHandle": {"resourceId": "net-2"},
        "currentVnfExtCpData": [{"cpdId": "workerNode_CP1"}],
    }
    assert (operation["operation"], operation["operationState"]) == ("CHANGE_EXT_CONN", "COMPLETED")
    assert operation["changedExtConnectivity"] == [recorded]
    affected = operation["resourceChanges"]["affectedVnfcs"]
    assert [one["changeType"] for one in affected] == ["MODIFIED", "MODIFIED"]
    info = (await world.show(instance_id))["instantiatedVnfInfo"]
    assert info["extVirtualLinkInfo"] == [recorded]
    assert {cp["cpdId"] for cp in info["extCpInfo"]} == {"workerNode_CP1"}
    listed = (await world.call("GET", f"{LCM}/vnf_lcm_op_occs", 200)).json()
    assert all("changedExtConnectivity" not in one for one in listed)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "extVirtualLinks"),
        ({"extVirtualLinks": []}, "extVirtualLinks"),
        ({"extVirtualLinks": [{**LINK, "extCps": [{"cpdId": "nobody"}]}]}, "extVirtualLinks[0].extCps"),
        ({"extVirtualLinks": [LINK], "flavourId": "simple"}, "flavourId"),
    ],
)
async def test_what_cant_be_is_refused(world: World, body: dict[str, Any], field: str) -> None:
    instance_id = await world.instantiated()
    refused = await world.call("POST", f"{LCM}/vnf_instances/{instance_id}/change_ext_conn", 400, json=body)
    assert field in refused.json()["detail"]
    nobody = await world.create((await world.show(instance_id))["vnfdId"])
    refused = await world.call(
        "POST", f"{LCM}/vnf_instances/{nobody}/change_ext_conn", 409, json={"extVirtualLinks": [LINK]}
    )
    assert "not instantiated" in refused.json()["detail"]
