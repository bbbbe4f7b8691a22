"""Every VIM type both ways, registered and described in the request itself, in both versions of the API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from slipway.store.database import Database
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim_registry.choice import LARGEST_VIM
from tests.unit.api.world import LCM, World, a_world

V1 = "/vnflcm/v1"
VIMS = "/slipway/v1/vims"
SIMULATED = {"vimType": "SLIPWAY.SIMULATED.V_1", "interfaceInfo": {"endpoint": "sim://two"}, "accessInfo": {}}
OPENSTACK = {
    "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
    "interfaceInfo": {"endpoint": "https://127.0.0.1:1/v3"},  # where nobody listens
    "accessInfo": {"username": "me", "password": "quite-a-secret", "project": "mine"},
}
BY_APPLICATION = {
    "applicationCredentialId": "11111111-2222-4333-8444-555555555555",
    "applicationCredentialSecret": "quite-a-secret",
}
KUBERNETES = {
    "vimType": "ETSINFV.KUBERNETES.V_1",
    "interfaceInfo": {"endpoint": "https://cluster.example:6443"},
    "accessInfo": {"bearer_token": "quite-a-secret"},
}
# What each is refused for, once nothing is wrong with how it is described; None: the operation begins.
CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "simulated": (SIMULATED, None),
    "openstack": (OPENSTACK, None),
    "openstack, application credential": ({**OPENSTACK, "accessInfo": BY_APPLICATION}, None),
    "kubernetes": (KUBERNETES, "A Kubernetes VIM runs containers, and masterNode, workerNode are machines"),
}


@pytest.fixture
def database_url(sqlite_url: URL) -> URL:
    """No statement here is another one on PostgreSQL."""
    return sqlite_url


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path, others=[OpenStackDriver(), KubernetesVimDriver()]) as world:
        yield world


async def instantiate(
    world: World, version: str, info: dict[str, Any], refused: str | None, *, reachable: bool
) -> None:
    """Refused for that reason alone, before anything begins; or done, as far as there is a VIM at the address."""
    instance_id = await world.create((await world.onboard())["vnfdId"])
    connections: Any = {"vim1": info} if version == LCM else [{"id": "vim1", **info}]
    body = {"flavourId": "simple", "vimConnectionInfo": connections}
    status = 202 if refused is None else 422 if version == LCM else 400
    answer = await world.call("POST", f"{version}/vnf_instances/{instance_id}/instantiate", status, json=body)
    if refused is not None:
        assert refused in answer.json()["detail"]
        return
    operation_id = answer.headers["location"].rpartition("/")[2]
    if reachable:
        await world.ended(operation_id, "COMPLETED")
    else:
        ended = await world.ended(operation_id, "ROLLED_BACK")
        assert "127.0.0.1:1" in ended["error"]["detail"]


async def test_an_id_of_the_senders_own_beside_a_whole_description_is_no_matter(world: World) -> None:
    await instantiate(world, LCM, {**OPENSTACK, "vimId": "94b203e4-own"}, None, reachable=False)


async def test_an_id_that_nobody_knows_does_not_stand_for_a_vim(world: World) -> None:
    unknown = "There is no VIM with the id or name '94b203e4-own'"
    await instantiate(world, LCM, {"vimId": "94b203e4-own"}, unknown, reachable=False)


@pytest.mark.parametrize("version", [V1, LCM])
@pytest.mark.parametrize("case", CASES)
async def test_a_vim_of_every_type_is_described_in_the_request(world: World, version: str, case: str) -> None:
    info, refused = CASES[case]
    await instantiate(world, version, info, refused, reachable=info is SIMULATED)


@pytest.mark.parametrize("version", [V1, LCM])
@pytest.mark.parametrize("case", CASES)
async def test_a_vim_of_every_type_is_registered_and_named(world: World, version: str, case: str) -> None:
    info, refused = CASES[case]
    vim = (await world.call("POST", VIMS, 201, json={"name": "registered", **info})).json()
    await instantiate(world, version, {"vimId": vim["id"]}, refused, reachable=info is SIMULATED)


@pytest.mark.parametrize("version", [V1, LCM])
@pytest.mark.parametrize("info", [OPENSTACK, KUBERNETES])
async def test_a_described_vim_that_lacks_something_is_refused_by_name(
    world: World, version: str, info: dict[str, Any]
) -> None:
    instance_id = await world.create((await world.onboard())["vnfdId"])
    wrong = {**info, "accessInfo": {"username": "me"}}
    connections: Any = {"vim1": wrong} if version == LCM else [{"id": "vim1", **wrong}]
    body = {"flavourId": "simple", "vimConnectionInfo": connections}
    answer = await world.call("POST", f"{version}/vnf_instances/{instance_id}/instantiate", 400, json=body)
    assert "accessInfo" in answer.json()["detail"]
    plan = {"vnfInstanceId": instance_id, "operation": "INSTANTIATE", "request": {**body, "vimConnectionInfo": {}}}
    plan["request"] = {"flavourId": "simple", "vimConnectionInfo": {"vim1": wrong}}
    await world.call("POST", "/slipway/v1/plans", 400, json=plan)


@pytest.mark.parametrize("version", [V1, LCM])
@pytest.mark.parametrize("where", ["interfaceInfo", "accessInfo", "extra"])
async def test_a_vim_in_a_request_has_a_largest_size(world: World, version: str, where: str) -> None:
    """As a registered one has; a secret counts as it is, not as the reference that takes its place."""
    instance_id = await world.create((await world.onboard())["vnfdId"])
    info = {**SIMULATED, where: {"endpoint": "sim://two", "password": "x" * LARGEST_VIM}}
    connections: Any = {"vim1": info} if version == LCM else [{"id": "vim1", **info}]
    body = {"flavourId": "simple", "vimConnectionInfo": connections}
    refused = await world.call("POST", f"{version}/vnf_instances/{instance_id}/instantiate", 400, json=body)
    assert f"vimConnectionInfo.vim1: it is larger than {LARGEST_VIM >> 10} KiB" in refused.json()["detail"]


async def test_a_vim_of_an_instance_does_not_grow_by_patches(world: World) -> None:
    instance_id = await world.create((await world.onboard())["vnfdId"])
    where = f"{LCM}/vnf_instances/{instance_id}"
    body = {"flavourId": "simple", "vimConnectionInfo": {"vim1": SIMULATED}}
    answer = await world.call("POST", f"{where}/instantiate", 202, json=body)
    await world.ended(answer.headers["location"].rpartition("/")[2], "COMPLETED")
    patch = {"headers": {"Content-Type": "application/merge-patch+json"}}
    half = "x" * (LARGEST_VIM // 2)
    answer = await world.call(
        "PATCH", where, 202, json={"vimConnectionInfo": {"vim1": {"extra": {"a": half}}}}, **patch
    )
    await world.ended(answer.headers["location"].rpartition("/")[2], "COMPLETED")
    grown = {"vimConnectionInfo": {"vim1": {"extra": {"b": half}}}}
    refused = await world.call("PATCH", where, 400, json=grown, **patch)
    assert "vimConnectionInfo.vim1: it is larger than" in refused.json()["detail"]
