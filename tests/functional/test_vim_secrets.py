"""Stored credentials of a VIM go only where they were given for: no change of an address takes them along."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import Connection
from sqlalchemy.engine import URL

from slipway.model.errors import BadRequest
from slipway.model.instance import VimConnectionInfo
from slipway.store import instances
from slipway.store.database import Database
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim_registry.choice import merged_connections, resolve_connection
from tests.unit.api.world import LCM, World, a_world
from tests.unit.vim.cluster_standin import Cluster, a_cluster, a_token_endpoint

V1 = "/vnflcm/v1"
VIMS = "/slipway/v1/vims"
SIM = "SLIPWAY.SIMULATED.V_1"
PASSWORD = "quite-a-secret"


@pytest.fixture
def database_url(sqlite_url: URL) -> URL:
    """No statement here is another one on PostgreSQL."""
    return sqlite_url


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path, others=[OpenStackDriver(), KubernetesVimDriver()]) as world:
        yield world


OIDC = {
    "oidc_token_url": "https://login.example/token",
    "client_id": "slipway",
    "client_secret": PASSWORD,
    "username": "me",
    "password": PASSWORD,
}


async def kubernetes(world: World, cluster: Cluster | None = None, **more: Any) -> dict[str, Any]:
    interface = {"endpoint": cluster.url if cluster else "https://cluster.example:6443"}
    if cluster:
        interface["ssl_ca_cert"] = cluster.authority.pem
    return await world.add_vim(
        vimType="ETSINFV.KUBERNETES.V_1", interfaceInfo=interface, accessInfo={**OIDC, **more}, extra={"area": "north"}
    )


@pytest.mark.parametrize(
    "change",
    [
        {"accessInfo": {"oidc_token_url": "https://thief.example/token"}},
        {"accessInfo": {"oidc_token_url": "https://thief.example/token", "password": "new"}},
        {"accessInfo": {"auth_url": "https://thief.example"}},
        {"accessInfo": {"somethingNew": "https://thief.example"}},
        {"accessInfo": {"https_proxy": "http://thief.example:3128"}},
        {"interfaceInfo": {"endpoint": "https://thief.example:6443"}},
        {"interfaceInfo": {"skipCertificateVerification": True}},
        {"interfaceInfo": {"skipCertificateHostnameCheck": "true"}},
        {"interfaceInfo": {"tls_server_name": "thief.example"}},
        {"interfaceInfo": {"http_proxy": "http://thief.example:3128"}},
        {"accessInfo": {"project": "b"}},
        {"accessInfo": {"projectId": "b"}},
        {"accessInfo": {"project_name": "b"}},
        {"accessInfo": {"projectDomainName": "b"}},
        {"accessInfo": {"tenant": "b"}},
        {"accessInfo": {"tenantName": "b"}},
        {"accessInfo": {"domain_id": "b"}},
        {"extra": {"helm_info": {"masternode_ip": ["203.0.113.9"]}}},
        {"extra": None},
    ],
)
async def test_a_change_of_an_address_or_of_trust_asks_for_the_secrets_again(
    world: World, change: dict[str, Any]
) -> None:
    await kubernetes(world)
    refused = (await world.call("PATCH", f"{VIMS}/sim", 400, json=change)).json()["detail"]
    assert refused.startswith("accessInfo: the stored credentials"), refused
    assert PASSWORD not in refused
    access = {**OIDC, **(change.get("accessInfo") or {}), "password": "other", "client_secret": "other"}
    await world.call("PATCH", f"{VIMS}/sim", 200, json={**change, "accessInfo": access})
    _, reached = await world.services.vims.driver_and_connection("sim")
    assert PASSWORD not in str((reached.interface_info, reached.access_info, reached.extra))


@pytest.mark.parametrize(
    "change",
    [
        {"name": "sim", "description": "other", "isDefault": False},
        {"accessInfo": {"password": "new"}},
        {"accessInfo": {"username": "you", "client_id": "other", "namespace": "mine"}},
        {"interfaceInfo": {"skipCertificateVerification": False}},
    ],
)
async def test_a_change_of_who_logs_in_keeps_the_other_secrets(world: World, change: dict[str, Any]) -> None:
    await kubernetes(world)
    await world.call("PATCH", f"{VIMS}/sim", 200, json=change)
    _, reached = await world.services.vims.driver_and_connection("sim")
    assert reached.access_info == {**OIDC, **change.get("accessInfo", {})}


async def test_the_other_vim_api_asks_for_the_secrets_again(world: World) -> None:
    with a_cluster() as cluster, a_token_endpoint(cluster) as endpoint, a_token_endpoint(cluster) as thief:
        access = {"oidc_token_url": endpoint.url, "username": "operator", "password": "oidc-password",
                  "client_id": "slipway", "client_secret": "oidc-secret"}  # fmt: skip
        vim = await kubernetes(world, cluster, **access)
        for cred in ({"oidc_token_url": thief.url}, {"cert_verify": "False"}, {"project_name": "b"}):
            answer = await world.client.put(f"/v1.0/vims/{vim['id']}", json={"vim": {"auth_cred": cred}})
            assert answer.status_code == 400, answer.text
            assert "the stored credentials" in answer.json()["TackerError"]["message"]
        assert thief.asked == []


async def on_own_vim(world: World) -> str:
    """An instance on a VIM that its request described, with secrets."""
    instance_id = await world.create((await world.onboard())["vnfdId"])
    vim = {
        "vimType": SIM,
        "interfaceInfo": {"endpoint": "sim://two"},
        "accessInfo": {"username": "me", "password": PASSWORD},
    }
    await world.run(instance_id, "instantiate", {"flavourId": "simple", "vimConnectionInfo": {"vim1": vim}})
    return instance_id


MOVED = [
    {"accessInfo": {"project": "b"}},
    {"accessInfo": {"projectDomain": "b"}},
    {"interfaceInfo": {"endpoint": "sim://thief"}},
    {"interfaceInfo": {"skipCertificateVerification": True}},
    {"accessInfo": {"oidc_token_url": "https://thief.example/token"}},
    {"extra": {"somewhere": "else"}},
]


@pytest.mark.parametrize("change", MOVED)
async def test_an_instances_own_vim_is_not_moved_with_its_secrets(world: World, change: dict[str, Any]) -> None:
    instance_id = await on_own_vim(world)
    path = f"{LCM}/vnf_instances/{instance_id}"
    older = f"/vnflcm/v1/vnf_instances/{instance_id}"
    refused = await world.call("PATCH", path, 400, json={"vimConnectionInfo": {"vim1": change}})
    assert refused.json()["detail"].startswith("vimConnectionInfo.vim1.accessInfo: the stored credentials")
    if "extra" not in change:  # v1 takes an entry with nothing else in it for no change at all
        await world.call("PATCH", older, 400, json={"vimConnectionInfo": [{"id": "vim1", **change}]})
    vnf = (await world.services.database.read(instances.get, instance_id)).vnf
    given = msgspec.convert(change, VimConnectionInfo)
    with pytest.raises(BadRequest, match="the stored credentials"):  # change_ext_conn and change_vnfpkg
        merged_connections(vnf, {"vim1": given})


async def test_an_instances_own_vim_is_moved_with_new_secrets(world: World) -> None:
    instance_id = await on_own_vim(world)
    for file in (world.directory / "simulated").glob("two.db*"):  # the same VIM, at another address
        shutil.copy(file, file.with_name(file.name.replace("two", "three")))
    change = {"interfaceInfo": {"endpoint": "sim://three"}, "accessInfo": {"password": "new"}}
    body = {"vimConnectionInfo": {"vim1": change}}
    answer = await world.call("PATCH", f"{LCM}/vnf_instances/{instance_id}", 202, json=body)
    await world.ended(answer.headers["location"].rpartition("/")[2])
    shown = (await world.show(instance_id))["vimConnectionInfo"]["vim1"]
    assert shown["interfaceInfo"] == {"endpoint": "sim://three"}


async def test_an_instances_secrets_do_not_go_to_another_registered_vim(world: World) -> None:
    await world.add_vim()
    instance_id = await on_own_vim(world)
    vim = (await world.call("GET", f"{VIMS}/sim", 200)).json()
    body = {"vimConnectionInfo": {"vim1": {"vimId": vim["id"], "interfaceInfo": None}}}
    refused = await world.call("PATCH", f"{LCM}/vnf_instances/{instance_id}", 400, json=body)
    assert "the stored credentials" in refused.json()["detail"]


@pytest.mark.parametrize("said", [{}, {"vimType": "ETSINFV.KUBERNETES.V_1"}])
async def test_an_instance_stays_on_the_type_of_its_vim(world: World, said: dict[str, str]) -> None:
    sim = await world.add_vim(name="other")
    instance_id = await world.create((await world.onboard())["vnfdId"])
    named = {"vimConnectionInfo": {"vim1": {"vimId": sim["id"]}}}
    await world.run(instance_id, "instantiate", {"flavourId": "simple", **named})
    other = await kubernetes(world)
    body = {"vimConnectionInfo": {"vim1": {"vimId": other["id"], **said}}}
    refused = await world.call("PATCH", f"{LCM}/vnf_instances/{instance_id}", 400, json=body)
    assert "and the VNF is on a SLIPWAY.SIMULATED.V_1" in refused.json()["detail"]
    older = {"vimConnectionInfo": [{"id": "vim1", "vimId": other["id"]}]}
    await world.call("PATCH", f"/vnflcm/v1/vnf_instances/{instance_id}", 400, json=older)


async def test_the_connection_to_the_vim_that_an_instance_is_on_stays(world: World) -> None:
    """Without it nothing could be done to the VNF any more, not even ended, and its VIM could be removed under it."""
    sim = await world.add_vim(name="other")
    instance_id = await world.create((await world.onboard())["vnfdId"])
    named = {"vimConnectionInfo": {"vim1": {"vimId": sim["id"]}}}
    await world.run(instance_id, "instantiate", {"flavourId": "simple", **named})
    path = f"vnf_instances/{instance_id}"
    for version, body in (
        (LCM, {"vimConnectionInfo": {"vim1": None}}),
        (V1, {"vimConnectionInfoDeleteIds": ["vim1"]}),
    ):
        refused = await world.call("PATCH", f"{version}/{path}", 400, json=body)
        assert refused.json()["detail"].startswith("vimConnectionInfo.vim1: the VNF is on this VIM")
    await world.call("DELETE", f"{VIMS}/other", 409)
    await world.run(instance_id, "terminate", {"terminationType": "FORCEFUL"})


async def test_a_connection_that_a_former_version_let_go_is_added_again(world: World) -> None:
    sim = await world.add_vim(name="other")
    instance_id = await world.create((await world.onboard())["vnfdId"])
    named = {"vimConnectionInfo": {"vim1": {"vimId": sim["id"]}}}
    await world.run(instance_id, "instantiate", {"flavourId": "simple", **named})
    await world.services.database.write(without_connections, instance_id)
    gone = await world.call(
        "POST", f"{LCM}/vnf_instances/{instance_id}/terminate", 409, json={"terminationType": "FORCEFUL"}
    )
    assert "add it with a PATCH" in gone.json()["detail"]
    typeless = await world.call("PATCH", f"{LCM}/vnf_instances/{instance_id}", 400, json=named)
    assert typeless.json()["detail"].startswith("vimConnectionInfo.vim1.vimType")
    named["vimConnectionInfo"]["vim1"]["vimType"] = SIM
    again = await world.call("PATCH", f"{LCM}/vnf_instances/{instance_id}", 202, json=named)
    await world.ended(again.headers["location"].rpartition("/")[2])
    await world.run(instance_id, "terminate", {"terminationType": "FORCEFUL"})


def without_connections(connection: Connection, instance_id: str) -> None:
    instance = instances.get(connection, instance_id)
    instances.update(connection, replace(instance, vnf=replace(instance.vnf, vim_connection_info={})))


async def test_a_connection_named_like_a_secret_is_refused(world: World) -> None:
    vim = await world.add_vim()
    instance_id = await world.create((await world.onboard())["vnfdId"])
    body = {"flavourId": "simple", "vimConnectionInfo": {"token": {"vimId": vim["id"]}}}
    refused = await world.call("POST", f"{LCM}/vnf_instances/{instance_id}/instantiate", 400, json=body)
    assert refused.json()["detail"].startswith("vimConnectionInfo[...]")
    assert "named like a secret" in refused.json()["detail"]


async def test_the_short_name_of_another_type_is_refused_in_v1(world: World) -> None:
    vim = await kubernetes(world)
    instance_id = await world.create((await world.onboard())["vnfdId"])
    where = [{"id": "a", "vimId": vim["id"], "vimType": "openstack"}]
    body = {"flavourId": "simple", "vimConnectionInfo": where}
    refused = await world.call("POST", f"/vnflcm/v1/vnf_instances/{instance_id}/instantiate", 400, json=body)
    assert refused.json()["detail"].startswith("vimConnectionInfo.a.vimType: VIM ")


async def test_a_registered_vim_is_not_moved_under_an_instances_own_secrets(world: World) -> None:
    vim = await world.add_vim()
    instance_id = await world.create((await world.onboard())["vnfdId"])
    info = {"vimId": vim["id"], "accessInfo": {"password": PASSWORD}}
    await world.run(instance_id, "instantiate", {"flavourId": "simple", "vimConnectionInfo": {"vim1": info}})
    change = {"interfaceInfo": {"endpoint": "sim://thief"}}
    refused = await world.call("PATCH", f"{VIMS}/sim", 409, json=change)
    assert instance_id in refused.json()["detail"]
    await world.call("PATCH", f"{VIMS}/sim", 200, json={"description": "same place"})


@pytest.mark.parametrize("change", MOVED)
async def test_registered_secrets_do_not_follow_what_an_instance_says(world: World, change: dict[str, Any]) -> None:
    vim = await world.add_vim(accessInfo={"username": "me", "password": PASSWORD})
    instance_id = await world.create((await world.onboard())["vnfdId"])
    names = {"interfaceInfo": "interface_info", "accessInfo": "access_info", "extra": "extra"}
    given: dict[str, Any] = {names[part]: value for part, value in change.items()}
    info = VimConnectionInfo(vim_id=vim["id"], vim_type=SIM, **given)
    reached = await world.services.database.read(resolve_connection, world.services.vault, info, instance_id)
    assert PASSWORD not in str((reached.interface_info, reached.access_info, reached.extra))
    same = VimConnectionInfo(vim_id=vim["id"], vim_type=SIM, access_info={"username": "you"})
    reached = await world.services.database.read(resolve_connection, world.services.vault, same, instance_id)
    assert reached.access_info == {"username": "you", "password": PASSWORD}
