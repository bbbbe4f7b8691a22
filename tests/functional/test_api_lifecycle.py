"""The whole life of a VNF through the API."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slipway.lcm.operations import OPERATIONS
from slipway.model.operation import OperationType
from slipway.store import steps
from slipway.store.database import Database
from tests.unit.api.world import BASE_URL, LCM, World, a_world

INSTANTIATE = {"flavourId": "simple"}
TERMINATE = {"terminationType": "FORCEFUL"}


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


def vnfcs(shown: dict[str, Any]) -> dict[str, str]:
    """The resource of each VNFC, by its vnfcInfo id."""
    return {vnfc["id"]: vnfc["vnfcResourceInfoId"] for vnfc in shown["instantiatedVnfInfo"]["vnfcInfo"]}


async def test_a_cluster_lives_and_goes(world: World) -> None:
    instance_id = await world.instantiated()
    one = f"{LCM}/vnf_instances/{instance_id}"
    assert len(vnfcs(await world.show(instance_id))) == 3

    scaled = await world.run(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 2})
    assert Counter(vnfc["changeType"] for vnfc in scaled["resourceChanges"]["affectedVnfcs"]) == {"ADDED": 2}
    assert len(vnfcs(await world.show(instance_id))) == 5
    await world.run(instance_id, "scale", {"type": "SCALE_IN", "aspectId": "workers"})
    before = vnfcs(await world.show(instance_id))
    assert len(before) == 4

    sick = sorted(before)[0]
    await world.run(instance_id, "heal", {"vnfcInstanceId": [sick], "cause": "it is sick"})
    after = vnfcs(await world.show(instance_id))
    assert len(set(before.values()) - set(after.values())) == 1
    await world.run(instance_id, "heal", {})
    assert not set(after.values()) & set(vnfcs(await world.show(instance_id)).values())

    await world.run(instance_id, "terminate", TERMINATE)
    assert (await world.show(instance_id))["instantiationState"] == "NOT_INSTANTIATED"
    await world.call("DELETE", one, 204)
    await world.call("GET", one, 404)


async def test_links_say_what_is_possible_now(world: World) -> None:
    await world.add_vim()
    package = await world.onboard()
    instance_id = await world.create(package["vnfdId"])
    here = f"{BASE_URL}{LCM}/vnf_instances/{instance_id}"
    links = (await world.show(instance_id))["_links"]
    assert links == {"self": {"href": here}, "instantiate": {"href": f"{here}/instantiate"}}
    operation = await world.run(instance_id, "instantiate", INSTANTIATE)
    assert operation["_links"]["vnfInstance"] == {"href": here}
    can = {"self", "terminate", "scale", "heal", "changeExtConn", "changeCurrentVnfPkg"}
    assert set((await world.show(instance_id))["_links"]) == can
    listed = (await world.call("GET", f"{LCM}/vnf_instances", 200)).json()
    assert set(listed[0]["_links"]) == can


async def test_a_change_goes_only_onto_what_was_read(world: World) -> None:
    package = await world.onboard()
    instance_id = await world.create(package["vnfdId"], vnfInstanceName="old", metadata={"a": 1, "b": 2})
    one = f"{LCM}/vnf_instances/{instance_id}"
    tag = (await world.call("GET", one, 200)).headers["etag"]
    merge = {"Content-Type": "application/merge-patch+json"}

    patch = {"vnfInstanceName": "new", "metadata": {"a": None, "c": 3}}
    answer = await world.call("PATCH", one, 202, json=patch, headers={"If-Match": tag, **merge})
    await world.ended(answer.headers["location"].rsplit("/", 1)[1])
    shown = await world.call("GET", one, 200)
    assert shown.json()["vnfInstanceName"] == "new"
    assert shown.json()["metadata"] == {"b": 2, "c": 3}
    assert shown.headers["etag"] != tag

    await world.call("PATCH", one, 412, json={"vnfInstanceName": "newer"}, headers={"If-Match": tag})
    await world.call("PATCH", one, 412, json={"vnfInstanceName": "newer"}, headers={"If-Match": "W/" + tag})
    several = f"{tag}, {shown.headers['etag']}"
    answer = await world.call("PATCH", one, 202, json={"vnfInstanceName": None}, headers={"If-Match": several})
    await world.ended(answer.headers["location"].rsplit("/", 1)[1])
    assert "vnfInstanceName" not in await world.show(instance_id)


async def test_of_a_hundred_parallel_requests_one_begins(world: World) -> None:
    await world.add_vim()
    package = await world.onboard()
    instance_id = await world.create(package["vnfdId"])
    path = f"{LCM}/vnf_instances/{instance_id}/instantiate"
    answers = await asyncio.gather(*(world.client.post(path, json=INSTANTIATE) for _ in range(100)))
    assert Counter(answer.status_code for answer in answers) == {202: 1, 409: 99}
    begun = next(answer for answer in answers if answer.status_code == 202)
    await world.ended(begun.headers["location"].rsplit("/", 1)[1])
    assert len((await world.call("GET", f"{LCM}/vnf_lcm_op_occs", 200)).json()) == 1


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("scale", {"type": "SCALE_OUT", "aspectId": "workers", "numberOfSteps": 2}),
        ("scale", {"type": "SCALE_IN", "aspectId": "workers"}),
        ("heal", {}),
        ("terminate", TERMINATE),
    ],
)
async def test_what_runs_is_what_was_shown(world: World, action: str, body: dict[str, Any]) -> None:
    instance_id = await world.instantiated()
    await world.run(instance_id, "scale", {"type": "SCALE_OUT", "aspectId": "workers"})
    asked = {"vnfInstanceId": instance_id, "operation": action.upper(), "request": body}
    plan = (await world.call("POST", "/slipway/v1/plans", 200, json=asked)).json()
    version = (await world.call("GET", f"{LCM}/vnf_instances/{instance_id}", 200)).headers["etag"]
    assert plan["steps"]
    kind = OperationType(action.upper())
    whole = await world.services.lcm.preview_plan(kind, instance_id, msgspec.convert(body, OPERATIONS[kind].request))

    operation = await world.run(instance_id, action, body)
    path = f"/slipway/v1/operations/{operation['id']}/steps"
    progress = (await world.call("GET", path, 200)).json()
    assert progress["operationState"] == "COMPLETED"
    ran = [{name: step[name] for name in ("id", "action", "nodes", "after", "effects")} for step in progress["steps"]]
    assert ran == plan["steps"]
    journal = await world.services.database.read(steps.journal, operation["id"])
    assert [(record.id, record.args) for record in journal] == [(step.id, step.args) for step in whole.steps]
    assert {step["state"] for step in progress["steps"]} == {"DONE"}
    assert all(step["durationSeconds"] >= 0 and step["startedAt"].endswith("Z") for step in progress["steps"])
    named = [f"{effect['kind']} {effect['name']}" for step in plan["steps"] for effect in step["effects"]]
    assert sorted(plan["make"] + plan["change"] + plan["remove"]) == sorted(named)
    assert version == '"3"', "showing a plan changes nothing"
