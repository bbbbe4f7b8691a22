"""A change of external connectivity, as a client of the API sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slipway.store.database import Database
from tests.unit.api.world import BASE_URL, LCM, World, a_world

pytestmark = pytest.mark.sqlite_suffices

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
    assert {node for step in steps for node in step["nodes"]} == {"workerNode-0", "workerNode-1"}
    operation = await world.run(instance_id, "change_ext_conn", body)

    anything = {"workerNode_CP1": {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}}
    recorded = {
        "id": "outside",
        "resourceHandle": {"resourceId": "net-2", "vimConnectionId": "vim"},
        "currentVnfExtCpData": [{"cpdId": "workerNode_CP1", "cpConfig": anything}],
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


async def test_external_connection_points_have_all_that_the_standard_requires(world: World) -> None:
    fixed = {"type": "IPV4", "fixedAddresses": ["10.10.0.77"]}
    config = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": [fixed]}}]}
    link = {**LINK, "extCps": [{"cpdId": "workerNode_CP1", "cpConfig": {"first": config}}]}
    instance_id = await world.instantiated(extVirtualLinks=[link])
    shown = await world.show(instance_id)
    info = shown["instantiatedVnfInfo"]
    (recorded,) = info["extVirtualLinkInfo"]
    assert recorded["resourceHandle"] == {"resourceId": "net-2", "vimConnectionId": "vim"}
    assert recorded["resourceHandle"]["vimConnectionId"] in shown["vimConnectionInfo"]
    anything = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}
    configs = {"first": config, "workerNode_CP1": anything}  # for the first member, and for those beyond the request
    assert recorded["currentVnfExtCpData"] == [{"cpdId": "workerNode_CP1", "cpConfig": configs}]
    assert [cp["cpConfigId"] for cp in info["extCpInfo"]] == ["first", "workerNode_CP1"]
    dynamic = [address["isDynamic"] for cp in info["extCpInfo"] for address in addresses_of(cp)]
    assert dynamic == [False, True]
    assert [address["addresses"] for address in addresses_of(info["extCpInfo"][0])] == [["10.10.0.77"]]
    inner = [cp for vnfc in info["vnfcResourceInfo"] for cp in vnfc["vnfcCpInfo"] if "vnfExtCpId" not in cp]
    assert inner
    assert all(address["isDynamic"] for cp in inner for address in addresses_of(cp))
    await world.run(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "workers"})
    scaled = (await world.show(instance_id))["instantiatedVnfInfo"]["extCpInfo"]
    assert [cp["cpConfigId"] for cp in scaled] == ["first", "workerNode_CP1", "workerNode_CP1"]
    in_v1 = (await world.call("GET", f"/vnflcm/v1/vnf_instances/{instance_id}", 200)).json()["instantiatedVnfInfo"]
    assert "cpConfigId" not in in_v1["extCpInfo"][0]
    assert addresses_of(in_v1["extCpInfo"][0])[0]["isDynamic"] is False
    assert in_v1["extVirtualLinkInfo"][0]["resourceHandle"]["vimConnectionId"] == "vim"


def addresses_of(cp: dict[str, Any]) -> list[dict[str, Any]]:
    return [address for info in cp["cpProtocolInfo"] for address in info["ipOverEthernet"].get("ipAddresses", ())]


async def test_saying_the_same_again_moves_nothing(world: World) -> None:
    """Whatever the record says in place of what the request left out."""
    instance_id = await world.instantiated(extVirtualLinks=[LINK])
    before = (await world.show(instance_id))["instantiatedVnfInfo"]
    await world.run(instance_id, "change_ext_conn", {"extVirtualLinks": [LINK]})
    after = (await world.show(instance_id))["instantiatedVnfInfo"]
    assert after["extCpInfo"] == before["extCpInfo"]
    fixed = {"type": "IPV4", "fixedAddresses": ["10.10.0.88"]}
    config = {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": [fixed]}}]}
    link = {**LINK, "extCps": [{"cpdId": "workerNode_CP1", "cpConfig": {"zz": config}}]}
    await world.run(instance_id, "change_ext_conn", {"extVirtualLinks": [link]})
    (first, second) = (await world.show(instance_id))["instantiatedVnfInfo"]["extCpInfo"]
    assert (first["cpConfigId"], addresses_of(first)[0]["addresses"]) == ("zz", ["10.10.0.88"])
    assert second == before["extCpInfo"][1]
    now = (await world.show(instance_id))["instantiatedVnfInfo"]
    (cp,) = now["extVirtualLinkInfo"][0]["currentVnfExtCpData"]
    assert sorted(cp["cpConfig"]) == ["workerNode_CP1", "zz"]
    asked = {"vnfInstanceId": instance_id, "operation": "CHANGE_EXT_CONN"}
    as_shown = {"extVirtualLinks": [{**LINK, "extCps": [cp]}]}
    preview = await world.call("POST", "/slipway/v1/plans", 200, json=asked | {"request": as_shown})
    assert preview.json()["steps"] == []
    await world.run(instance_id, "change_ext_conn", as_shown)
    assert (await world.show(instance_id))["instantiatedVnfInfo"] == now


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
