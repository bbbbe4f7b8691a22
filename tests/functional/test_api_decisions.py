"""What a person can do about an operation that failed, or that takes too long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slipway.store.database import Database
from tests.unit.api.world import LCM, World, a_world

RULES = "/slipway/v1/vims/sim/rules"
BROKEN = [{"kind": "error", "call": "make_machine", "machine": "workerNode-1", "fault": "permanent", "message": "no"}]
SLOW = [{"kind": "latency", "call": "make_machine", "seconds": 5}]


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


async def failed(world: World) -> tuple[str, dict[str, Any]]:
    """An instantiation in FAILED_TEMP."""
    await world.add_vim()
    package = await world.onboard()
    instance_id = await world.create(package["vnfdId"])
    await world.call("PUT", RULES, 200, json=BROKEN)
    return instance_id, await world.run(instance_id, "instantiate", {"flavourId": "simple"}, "FAILED_TEMP")


async def test_a_failure_names_the_node_and_offers_a_way_out(world: World) -> None:
    instance_id, operation = await failed(world)
    assert "workerNode-1" in operation["error"]["detail"]
    assert set(operation["_links"]) == {"self", "vnfInstance", "retry", "rollback", "fail"}
    steps = (await world.call("GET", f"/slipway/v1/operations/{operation['id']}/steps", 200)).json()["steps"]
    assert [step["nodes"] for step in steps if step["state"] == "FAILED"] == [["workerNode-1"]]
    refused = await world.call(
        "POST", f"{LCM}/vnf_instances/{instance_id}/instantiate", 409, json={"flavourId": "simple"}
    )
    assert operation["id"] in refused.json()["detail"]
    await world.call("DELETE", f"{LCM}/vnf_instances/{instance_id}", 409)
    assert (await world.call("GET", RULES, 200)).json()[0]["message"] == "no"


async def test_retry_goes_on(world: World) -> None:
    instance_id, operation = await failed(world)
    await world.call("DELETE", RULES, 204)
    answer = await world.call("POST", f"{LCM}/vnf_lcm_op_occs/{operation['id']}/retry", 202)
    assert answer.content == b""
    await world.ended(operation["id"])
    assert (await world.show(instance_id))["instantiationState"] == "INSTANTIATED"
    await world.call("POST", f"{LCM}/vnf_lcm_op_occs/{operation['id']}/retry", 409)


async def test_rollback_leaves_nothing(world: World) -> None:
    instance_id, operation = await failed(world)
    await world.call("POST", f"{LCM}/vnf_lcm_op_occs/{operation['id']}/rollback", 202)
    await world.ended(operation["id"], "ROLLED_BACK")
    assert (await world.show(instance_id))["instantiationState"] == "NOT_INSTANTIATED"
    check = (await world.call("POST", "/slipway/v1/vims/sim/check", 200)).json()
    assert check["ok"]
    assert "0 machines" in check["detail"]
    await world.call("DELETE", f"{LCM}/vnf_instances/{instance_id}", 204)


async def test_fail_answers_with_the_operation(world: World) -> None:
    _, operation = await failed(world)
    answer = await world.call("POST", f"{LCM}/vnf_lcm_op_occs/{operation['id']}/fail", 200)
    assert answer.json()["operationState"] == "FAILED"
    await world.call("POST", f"{LCM}/vnf_lcm_op_occs/{operation['id']}/fail", 409)


async def test_cancel_stops_what_runs(world: World) -> None:
    await world.add_vim()
    package = await world.onboard()
    instance_id = await world.create(package["vnfdId"])
    await world.call("PUT", RULES, 200, json=SLOW)
    operation_id = await world.begin(instance_id, "instantiate", {"flavourId": "simple"})
    cancel = f"{LCM}/vnf_lcm_op_occs/{operation_id}/cancel"
    await world.call("POST", cancel, 400, json={"cancelMode": "SOMEHOW"})
    await world.call("POST", cancel, 202, json={"cancelMode": "FORCEFUL"})
    async with asyncio.timeout(4):
        shown = await world.ended(operation_id, "FAILED_TEMP", "ROLLED_BACK")
    assert shown["isCancelPending"] is False
    await world.call("POST", cancel, 409, json={"cancelMode": "GRACEFUL"})


async def test_rules_are_for_simulated_vims_and_checked(world: World) -> None:
    await world.add_vim()
    wrong = await world.call("PUT", RULES, 400, json=[{"kind": "error", "call": "fly"}])
    assert "rules[0].call" in wrong.json()["detail"]
    await world.call("PUT", "/slipway/v1/vims/other/rules", 404, json=[])
