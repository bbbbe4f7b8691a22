"""Registered VIMs over HTTP: their secrets go in and never come out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from slipway.lcm.vim_moves import missing_there
from slipway.model.action import Action, VimConnection
from slipway.model.errors import VimError, VimFault
from slipway.model.instance import VimConnectionInfo
from slipway.model.machine import Found
from slipway.model.plan import Plan
from slipway.model.target import Change, VimResource, VnfTarget
from slipway.store import instances
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim.drivers import Drivers
from slipway.vim_registry.choice import resolve_connection
from slipway.vim_registry.registry import VimRegistry
from tests.unit.api.world import LCM, World, a_world

VIMS = "/slipway/v1/vims"
PASSWORD = "quite-a-secret"


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


async def test_credentials_are_never_shown(world: World) -> None:
    access = {"username": "me", "password": PASSWORD, "somethingNew": PASSWORD}
    vim = await world.add_vim(accessInfo=access)
    answers = [
        await world.call("GET", f"{VIMS}/sim", 200),
        await world.call("GET", f"{VIMS}/{vim['id']}", 200),
        await world.call("GET", VIMS, 200),
        await world.call("GET", f"{VIMS}?all_fields", 200),
        await world.call("GET", f"{VIMS}?fields=accessInfo", 200),
        await world.call("PATCH", f"{VIMS}/sim", 200, json={"accessInfo": {"username": "you"}}),
    ]
    for answer in answers:
        assert PASSWORD not in answer.text
        assert "$secret" not in answer.text
        assert "username" in answer.text
    _, connection = await world.services.vims.driver_and_connection("sim")
    assert connection.access_info == {**access, "username": "you"}


async def test_a_vim_is_changed_by_merge_patch(world: World) -> None:
    await world.add_vim(description="first", accessInfo={"password": PASSWORD})
    patch = {"description": None, "name": "other", "accessInfo": {"password": "new"}, "isDefault": False}
    changed = (await world.call("PATCH", f"{VIMS}/sim", 200, json=patch)).json()
    assert changed["name"] == "other"
    assert "description" not in changed
    _, connection = await world.services.vims.driver_and_connection("other")
    assert connection.access_info == {"password": "new"}
    await world.call("PATCH", f"{VIMS}/other", 400, json={"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"})
    await world.call("PATCH", f"{VIMS}/other", 400, json={"name": None})
    await world.call("PATCH", f"{VIMS}/other", 400, json={"interfaceInfo": {"endpoint": "http://elsewhere"}})
    await world.call("PATCH", f"{VIMS}/other", 400, json={"accessInfo": {"password": {"$secret": "x"}}})
    await world.call("PATCH", f"{VIMS}/sim", 404, json={})


async def test_a_wrong_vim_is_refused(world: World) -> None:
    await world.add_vim()
    body = {"name": "sim", "vimType": "SLIPWAY.SIMULATED.V_1", "interfaceInfo": {"endpoint": "sim://two"}}
    await world.call("POST", VIMS, 409, json=body)
    await world.call("POST", VIMS, 400, json={**body, "name": "b", "vimType": "NO.SUCH"})
    await world.call("POST", VIMS, 400, json={**body, "name": "b", "interfaceInfo": {"endpoint": "sim://../x"}})
    await world.call("POST", VIMS, 400, json={**body, "name": ""})
    assert len((await world.call("GET", VIMS, 200)).json()) == 1


async def test_a_vim_in_use_stays(world: World) -> None:
    instance_id = await world.instantiated()
    assert instance_id in (await world.call("DELETE", f"{VIMS}/sim", 409)).json()["detail"]
    await world.run(instance_id, "terminate", {"terminationType": "FORCEFUL"})
    await world.call("DELETE", f"{VIMS}/sim", 204)
    await world.call("DELETE", f"{VIMS}/sim", 404)
    await world.call("POST", f"{LCM}/vnf_instances/{instance_id}/instantiate", 400, json={"flavourId": "simple"})


class Elsewhere:
    """A driver of another type: nothing but its name and an open door."""

    vim_type = "ELSEWHERE.V_1"
    actions: tuple[Action[Any], ...] = ()

    def validate(self, connection: VimConnection) -> None:
        pass

    async def register(self, connection: VimConnection) -> None:
        if connection.extra.get("broken"):
            raise VimError("It does not want to.", VimFault.PERMANENT)

    async def check(self, connection: VimConnection) -> str:
        return "there"

    def refuse(self, change: Change) -> None:
        pass

    def package_files(self, target: VnfTarget) -> tuple[str, ...]:
        return ()

    def resources(self, change: Change) -> tuple[VimResource, ...]:
        return ()

    async def find(self, connection: VimConnection, instance_id: str, inventory: Found) -> Found:
        return Found()

    def steps(self, change: Change, found: Found) -> Plan:
        return Plan()


async def test_rules_are_for_simulated_vims_only(database: Database, tmp_path: Path) -> None:
    drivers = Drivers([Elsewhere()])
    vims = VimRegistry(database, Vault(tmp_path / "key"), drivers, partial(missing_there, drivers))
    async with a_world(database, tmp_path, vims=vims) as world:
        await world.call("POST", VIMS, 201, json={"name": "far", "vimType": "ELSEWHERE.V_1"})
        assert (await world.call("POST", f"{VIMS}/far/check", 200)).json() == {
            "ok": True, "detail": "there", "fault": None
        }  # fmt: skip
        for method, body in (("GET", None), ("PUT", []), ("DELETE", None)):
            await world.call(method, f"{VIMS}/far/rules", 409, json=body)


async def test_a_vim_that_can_not_be_registered_leaves_nothing(database: Database, tmp_path: Path) -> None:
    drivers = Drivers([Elsewhere()])
    vims = VimRegistry(database, Vault(tmp_path / "key"), drivers, partial(missing_there, drivers))
    async with a_world(database, tmp_path, vims=vims) as world:
        body = {"name": "far", "vimType": "ELSEWHERE.V_1", "extra": {"broken": True}}
        await world.call("POST", VIMS, 502, json=body)
        assert (await world.call("GET", VIMS, 200)).json() == []


async def test_check_says_how_the_vim_is(world: World) -> None:
    await world.add_vim()
    assert (await world.call("POST", f"{VIMS}/sim/check", 200)).json()["ok"] is True
    rule = {"kind": "error", "call": "check", "fault": "auth", "message": "wrong password"}
    await world.call("PUT", f"{VIMS}/sim/rules", 200, json=[rule])
    bad = (await world.call("POST", f"{VIMS}/sim/check", 200)).json()
    assert (bad["ok"], bad["fault"]) == (False, "auth")
    assert "wrong password" in bad["detail"]


async def test_secrets_of_a_request_are_not_shown_by_its_operation(world: World) -> None:
    await world.add_vim()
    package = await world.onboard()
    instance_id = await world.create(package["vnfdId"])
    params = {"ssh_password": PASSWORD, "plain": "seen"}
    operation = await world.run(instance_id, "instantiate", {"flavourId": "simple", "additionalParams": params})
    assert operation["operationParams"]["additionalParams"] == {"plain": "seen"}
    listed = await world.call("GET", f"{LCM}/vnf_lcm_op_occs?all_fields", 200)
    assert PASSWORD not in listed.text
    assert "$secret" not in listed.text
    assert "seen" in listed.text


async def test_stored_credentials_go_to_no_other_address(world: World) -> None:
    vim = await world.add_vim(accessInfo={"password": PASSWORD})
    elsewhere = {"interfaceInfo": {"endpoint": "sim://elsewhere"}}
    refused = await world.call("PATCH", f"{VIMS}/sim", 400, json=elsewhere)
    assert refused.json()["detail"].startswith("accessInfo: the stored credentials")
    await world.call("PATCH", f"{VIMS}/sim", 200, json={**elsewhere, "accessInfo": {"password": "new"}})
    await world.call("PATCH", f"{VIMS}/sim", 200, json={"description": "moved"})

    package = await world.onboard()
    instance_id = await world.create(package["vnfdId"])
    instance = await world.services.database.read(instances.get, instance_id)
    for interface, known in (({"endpoint": "sim://elsewhere"}, True), ({"endpoint": "sim://thief"}, False)):
        info = VimConnectionInfo(vim_id=vim["id"], vim_type=vim["vimType"], interface_info=interface)
        reached = await world.services.database.read(resolve_connection, world.services.vault, info, instance.vnf.id)
        assert reached.interface_info == interface
        assert ("password" in reached.access_info) is known
