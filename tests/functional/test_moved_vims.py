"""A changed description of a VIM leads to where its VNFs are, or is refused: what they have would be left behind."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from slipway.model.action import VimConnection
from slipway.model.vim import SIMULATED
from slipway.package.build import build_package
from slipway.store.database import Database
from tests.functional.next_package import NEXT_ID, next_package
from tests.functional.rig import SAMPLE
from tests.functional.test_vim_secrets import without_connections
from tests.unit.api.world import LCM, World, a_world

V1 = "/vnflcm/v1"
VIMS = "/slipway/v1/vims"
LINK = {"id": "outside", "resourceId": "net-2", "extCps": [{"cpdId": "workerNode_CP1"}]}
FORCEFUL = {"terminationType": "FORCEFUL"}
ELSEWHERE = {"endpoint": "sim://elsewhere"}
SLOW = [{"kind": "latency", "call": "make_machine", "seconds": 30}]
DOWN = [{"kind": "error", "call": "find", "fault": "temporary", "message": "no route to host"}]


@pytest.fixture
def database_url(sqlite_url: URL) -> URL:
    """No statement here is another one on PostgreSQL."""
    return sqlite_url


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


async def another_vim(world: World, name: str) -> str:
    """Registered under this name, at an address of its own."""
    body = {"name": name, "vimType": SIMULATED, "interfaceInfo": {"endpoint": f"sim://{name}"}}
    return str((await world.call("POST", VIMS, 201, json=body)).json()["id"])


async def held(world: World, endpoint: str = "sim://one") -> set[str]:
    """Instances of which the simulated VIM there has anything."""
    return set(await world.driver.inventory(VimConnection(SIMULATED, {"endpoint": endpoint}, {}, {})))


def copied(world: World, name: str) -> None:
    """What a simulated VIM has can be reached at another address from now on, too."""
    directory = world.directory / "simulated"
    for file in directory.glob("one.db*"):
        shutil.copy(file, directory / file.name.replace("one", name))


async def patched(world: World, instance_id: str, connections: Any) -> None:
    answer = await world.call(
        "PATCH", f"{LCM}/vnf_instances/{instance_id}", 202, json={"vimConnectionInfo": connections}
    )
    await world.ended(answer.headers["location"].rpartition("/")[2])


async def test_an_instance_is_not_led_to_a_vim_that_has_nothing_of_it(world: World) -> None:
    instance_id = await world.instantiated()
    other = await another_vim(world, "other")
    where = f"vnf_instances/{instance_id}"
    before = (await world.show(instance_id))["vimConnectionInfo"]
    entries: list[dict[str, Any]] = [
        {"vimId": other},
        {"interfaceInfo": ELSEWHERE},
        {"vimId": None, "interfaceInfo": ELSEWHERE, "accessInfo": {"username": "me"}},
        {"vimId": other, "accessInfo": {"username": "me", "password": "quite-a-secret"}},
    ]
    for entry in entries:
        change = {"vimConnectionInfo": {"vim": entry}}
        refused = (await world.call("PATCH", f"{LCM}/{where}", 409, json=change)).json()["detail"]
        assert refused.startswith("vimConnectionInfo.vim: the VIM there has nothing of"), refused
        assert instance_id in refused
        assert "quite-a-secret" not in refused
        plan = {"vnfInstanceId": instance_id, "operation": "MODIFY_INFO", "request": change}
        await world.call("POST", "/slipway/v1/plans", 409, json=plan)
    of_v1 = {"vimConnectionInfo": [{"id": "vim", "vimId": other}]}
    refused = (await world.call("PATCH", f"{V1}/{where}", 409, json=of_v1)).json()["detail"]
    assert refused.startswith("vimConnectionInfo.vim: the VIM there has nothing of")

    shown = await world.show(instance_id)
    assert shown["vimConnectionInfo"] == before
    await world.run(instance_id, "terminate", FORCEFUL)
    assert await held(world) == set()


@pytest.mark.parametrize("action", ["change_ext_conn", "change_vnfpkg"])
async def test_nor_by_an_operation_that_may_say_how_its_vim_is_reached(
    world: World, action: str, tmp_path: Path
) -> None:
    instance_id = await world.instantiated()
    body: dict[str, Any] = {"extVirtualLinks": [LINK]}
    if action == "change_vnfpkg":
        csar = tmp_path / "next.csar"
        build_package(next_package(SAMPLE, tmp_path, NEXT_ID, words={}), csar)
        await world.onboard(csar)
        body = {"vnfdId": NEXT_ID}
    connections = {"vimConnectionInfo": {"vim": {"interfaceInfo": ELSEWHERE}}}
    refused = await world.call("POST", f"{LCM}/vnf_instances/{instance_id}/{action}", 409, json=body | connections)
    assert refused.json()["detail"].startswith("vimConnectionInfo.vim: the VIM there has nothing of")


async def test_an_instance_follows_its_vim(world: World) -> None:
    """Registered anew, or at another address: what it has is there."""
    instance_id = await world.instantiated()
    copied(world, "anew")
    copied(world, "moved")
    anew = await another_vim(world, "anew")
    await patched(world, instance_id, {"vim": {"vimId": anew}})
    await patched(world, instance_id, {"vim": {"interfaceInfo": {"endpoint": "sim://moved"}}})
    shown = (await world.show(instance_id))["vimConnectionInfo"]["vim"]
    assert (shown["vimId"], shown["interfaceInfo"]) == (anew, {"endpoint": "sim://moved"})
    await world.run(instance_id, "terminate", FORCEFUL)
    assert await held(world, "sim://moved") == set()


async def test_who_logs_in_may_change_while_the_vim_is_down(world: World) -> None:
    instance_id = await world.instantiated()
    await world.call("PUT", f"{VIMS}/sim/rules", 200, json=DOWN)
    await patched(world, instance_id, {"vim": {"accessInfo": {"username": "you", "userDomain": "b"}}})
    await patched(world, instance_id, {"vim": {"extra": {"area": "north"}}})


async def test_a_vim_that_can_not_be_asked_is_not_gone_to(world: World) -> None:
    instance_id = await world.instantiated()
    other = await another_vim(world, "other")
    await world.call("PUT", f"{VIMS}/other/rules", 200, json=DOWN)
    change = {"vimConnectionInfo": {"vim": {"vimId": other}}}
    refused = (await world.call("PATCH", f"{LCM}/vnf_instances/{instance_id}", 409, json=change)).json()["detail"]
    assert "no route to host" in refused
    assert "vimConnectionInfo.vim: the VIM there can't be asked" in refused


async def test_a_connection_that_a_former_version_let_go_comes_back_to_the_same_vim(world: World) -> None:
    instance_id = await world.instantiated()
    own = (await world.show(instance_id))["vimConnectionInfo"]["vim"]
    other = await another_vim(world, "other")
    await world.services.database.write(without_connections, instance_id)
    change = {"vimConnectionInfo": {"vim": {"vimId": other, "vimType": SIMULATED}}}
    await world.call("PATCH", f"{LCM}/vnf_instances/{instance_id}", 409, json=change)
    await patched(world, instance_id, {"vim": own})
    await world.run(instance_id, "terminate", FORCEFUL)
    assert await held(world) == set()


async def test_a_registered_vim_does_not_leave_its_vnfs(world: World) -> None:
    instance_id = await world.instantiated()
    refused = (await world.call("PATCH", f"{VIMS}/sim", 409, json={"interfaceInfo": ELSEWHERE})).json()["detail"]
    assert refused.startswith("VIM 'sim' is in use, and would lead elsewhere: the VIM there has nothing of"), refused
    assert instance_id in refused
    assert (await world.call("GET", f"{VIMS}/sim", 200)).json()["interfaceInfo"] == {"endpoint": "sim://one"}

    copied(world, "moved")
    await world.call("PATCH", f"{VIMS}/sim", 200, json={"interfaceInfo": {"endpoint": "sim://moved"}})
    await world.run(instance_id, "terminate", FORCEFUL)
    assert await held(world, "sim://moved") == set()
    await world.call("PATCH", f"{VIMS}/sim", 200, json={"interfaceInfo": ELSEWHERE})  # nobody is on it


async def test_a_registered_vim_stays_while_something_is_made_there(world: World) -> None:
    await world.add_vim()
    await world.call("PUT", f"{VIMS}/sim/rules", 200, json=SLOW)
    instance_id = await world.create((await world.onboard())["vnfdId"])
    operation_id = await world.begin(instance_id, "instantiate", {"flavourId": "simple"})
    refused = await world.call("PATCH", f"{VIMS}/sim", 409, json={"interfaceInfo": ELSEWHERE})
    assert f"VNF instance {instance_id} is being instantiated on VIM 'sim'" in refused.json()["detail"]
    await world.call("PATCH", f"{VIMS}/sim", 200, json={"accessInfo": {"username": "you"}})
    cancel = {"cancelMode": "FORCEFUL"}
    await world.call("POST", f"{LCM}/vnf_lcm_op_occs/{operation_id}/cancel", 202, json=cancel)
    await world.ended(operation_id, "FAILED_TEMP", "ROLLED_BACK")


async def test_one_that_says_itself_where_it_is_does_not_hold_the_registered_vim(world: World) -> None:
    instance_id = await world.instantiated()
    copied(world, "own")
    await patched(world, instance_id, {"vim": {"interfaceInfo": {"endpoint": "sim://own"}}})
    await world.call("PATCH", f"{VIMS}/sim", 200, json={"interfaceInfo": ELSEWHERE})
    await world.run(instance_id, "terminate", FORCEFUL)
    assert await held(world, "sim://own") == set()
