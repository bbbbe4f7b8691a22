"""A VNF whose internal link is a network that exists, for its whole life and in both versions of the API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL

from slipway.store.database import Database
from tests.unit.api.world import LCM, World, a_world

V1 = "/vnflcm/v1"
MANAGED = {"id": "given", "vnfVirtualLinkDescId": "clusterNet", "resourceId": "net-9", "resourceProviderId": "somebody"}


@pytest.fixture
async def world(sqlite_url: URL, tmp_path: Path) -> AsyncIterator[World]:
    database = Database(sqlite_url)
    async with a_world(database, tmp_path) as world:
        yield world
    database.close()


async def info(world: World, version: str, instance_id: str) -> dict[str, Any]:
    shown = (await world.call("GET", f"{version}/vnf_instances/{instance_id}", 200)).json()
    found: dict[str, Any] = shown["instantiatedVnfInfo"]
    return found


@pytest.mark.parametrize("version", [V1, LCM])
async def test_it_is_used_and_shown_and_left_alone(world: World, version: str) -> None:
    await world.add_vim()
    instance_id = await world.create((await world.onboard())["vnfdId"])
    body = {"flavourId": "simple", "extManagedVirtualLinks": [MANAGED]}
    begun = await world.call("POST", f"{version}/vnf_instances/{instance_id}/instantiate", 202, json=body)
    operation = await world.ended(begun.headers["Location"].rpartition("/")[2])
    assert operation["operationParams"]["extManagedVirtualLinks"] == [MANAGED]
    for shown in (V1, LCM):
        there = await info(world, shown, instance_id)
        assert there["extManagedVirtualLinkInfo"] == [
            {
                "id": "given",
                "vnfVirtualLinkDescId": "clusterNet",
                "networkResource": {
                    "resourceId": "net-9",
                    "vimConnectionId": "vim",
                    "resourceProviderId": "somebody",
                },
            }
        ]
        assert "vnfVirtualLinkResourceInfo" not in there
    for action, request in (
        ("scale", {"type": "SCALE_OUT", "aspectId": "workers"}),
        ("heal", {"additionalParams": {"all": True}}),
    ):
        await world.run(instance_id, action, request)
        after = await info(world, LCM, instance_id)
        on = {cp["metadata"]["network"] for vnfc in after["vnfcResourceInfo"] for cp in vnfc["vnfcCpInfo"]}
        assert on == {"net-9"}
        assert after["extManagedVirtualLinkInfo"] == there["extManagedVirtualLinkInfo"]
    await world.run(instance_id, "terminate", {"terminationType": "FORCEFUL"})


@pytest.mark.parametrize("version", [V1, LCM])
@pytest.mark.parametrize("attribute", ["vnfVirtualLinkDescId", "resourceId", "vimConnectionId", "resourceProviderId"])
async def test_control_characters_in_a_name_are_refused_with_its_place(
    world: World, version: str, attribute: str
) -> None:
    await world.add_vim()
    instance_id = await world.create((await world.onboard())["vnfdId"])
    body = {"flavourId": "simple", "extManagedVirtualLinks": [{**MANAGED, attribute: "net\x019"}]}
    refused = await world.call("POST", f"{version}/vnf_instances/{instance_id}/instantiate", 400, json=body)
    assert f"extManagedVirtualLinks[0].{attribute}" in refused.json()["detail"]


async def test_control_characters_in_a_subnet_of_version_1_are_refused_with_its_place(world: World) -> None:
    await world.add_vim()
    instance_id = await world.create((await world.onboard())["vnfdId"])
    address = {"type": "IPV4", "numDynamicAddresses": 1, "subnetId": "net\x019"}
    data = {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"ipAddresses": [address]}}
    cps = [{"cpdId": "masterNode_CP1", "cpConfig": [{"cpProtocolData": [data]}]}]
    body = {"flavourId": "simple", "extVirtualLinks": [{"id": "net", "resourceId": "net-9", "extCps": cps}]}
    refused = await world.call("POST", f"{V1}/vnf_instances/{instance_id}/instantiate", 400, json=body)
    assert "ipAddresses[0].subnetId" in refused.json()["detail"]
