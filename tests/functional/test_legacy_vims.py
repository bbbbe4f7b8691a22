"""`/v1.0/vims` with the very requests of the peer's command line: the same registry in other words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.lcm.vim_moves import missing_there
from slipway.simulator.vim.driver import SimulatedDriver
from slipway.store.database import Database
from slipway.store.secrets import Vault
from slipway.vim.drivers import Drivers
from slipway.vim.kubernetes.driver import KubernetesVimDriver
from slipway.vim.openstack.driver import OpenStackDriver
from slipway.vim_registry.registry import VimRegistry
from tests.unit.api.world import World, a_world
from tests.unit.vim.cluster_standin import Cluster, a_cluster, a_token_endpoint
from tests.unit.vim.keystone_standin import Keystone, a_keystone

pytestmark = pytest.mark.sqlite_suffices

VIMS = "/v1.0/vims"
OURS = "/slipway/v1/vims"
CLIENT = {"User-Agent": "python-tackerclient", "Accept": "application/json", "Content-Type": "application/json"}
SECRETS = ("demo-password", "good-token", "oidc-password", "oidc-secret", "$secret")


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    simulated = SimulatedDriver(tmp_path / "other simulated")
    drivers = Drivers([simulated, OpenStackDriver(), KubernetesVimDriver()])
    vims = VimRegistry(database, Vault(tmp_path / "other.key"), drivers, partial(missing_there, drivers))
    async with a_world(database, tmp_path, vims=vims) as world:
        yield world
    simulated.close()


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    with a_keystone() as keystone:
        yield keystone


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with a_cluster() as cluster:
        yield cluster


async def call(world: World, method: str, path: str, status: int, **kwargs: Any) -> Any:
    """As the stock client asks; and every error is one that it understands, without anybody's secrets."""
    answer = await world.client.request(method, path, headers=CLIENT, **kwargs)
    assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    for secret in SECRETS:
        assert secret not in answer.text
    if status >= 400:
        assert answer.headers["content-type"] == "application/json"
        error = answer.json()["TackerError"]
        assert sorted(error) == ["detail", "message", "type"]
        assert error["type"]
        assert error["message"]
        return error
    return answer.json() if answer.content else None


def openstack(keystone: Keystone, **changes: Any) -> dict[str, Any]:
    """What `openstack vim register NAME --config-file F` sends."""
    vim = {
        "auth_url": keystone.url.removesuffix("/v3"),
        "type": "openstack",
        "vim_project": {"name": "demo", "project_domain_name": "Default"},
        "auth_cred": {
            "username": "demo",
            "password": "demo-password",
            "user_domain_name": "Default",
            "cert_verify": "True",
        },
        "name": "VIM0",
        **changes,
    }
    return {"vim": vim}


def kubernetes(cluster: Cluster, auth_cred: dict[str, Any] | None = None) -> dict[str, Any]:
    cred = {"bearer_token": "good-token"} if auth_cred is None else auth_cred
    vim = {
        "auth_url": cluster.url,
        "type": "kubernetes",
        "vim_project": {"name": "default"},
        "auth_cred": {**cred, "ssl_ca_cert": cluster.authority.pem},
        "name": "kubernetes-VIM",
        "description": "a cluster",
        "is_default": True,
        "extra": {"use_helm": False},
    }
    return {"vim": vim}


async def test_a_cluster_without_a_ca_as_the_peers_documentation_writes_it(world: World, cluster: Cluster) -> None:
    body = kubernetes(cluster)
    body["vim"]["auth_cred"] |= {"ssl_ca_cert": "None", "cert_verify": "False"}
    vim = (await call(world, "POST", f"{VIMS}.json", 201, json=body))["vim"]
    assert vim["auth_cred"] == {"bearer_token": "***", "cert_verify": "False"}


async def test_an_openstack_is_registered_found_shown_and_deleted(world: World, keystone: Keystone) -> None:
    vim = (await call(world, "POST", f"{VIMS}.json", 201, json=openstack(keystone)))["vim"]
    created = vim.pop("created_at")
    assert created
    assert vim == {
        "id": vim["id"],
        "tenant_id": vim["tenant_id"],
        "name": "VIM0",
        "description": "",
        "type": "openstack",
        "auth_url": keystone.url,
        "auth_cred": {
            "username": "demo",
            "password": "***",
            "user_domain_name": "Default",
            "cert_verify": "True",
        },
        "vim_project": {"name": "demo", "project_domain_name": "Default"},
        "is_default": False,
        "status": "ACTIVE",
        "placement_attr": {"regions": ["RegionOne"]},
        "extra": {},
        "updated_at": None,
    }
    found = [{"id": vim["id"]}]
    assert (await call(world, "GET", f"{VIMS}.json?id={vim['id']}&fields=id", 200))["vims"] == found
    assert (await call(world, "GET", f"{VIMS}.json?fields=id&name=VIM0", 200))["vims"] == found
    assert (await call(world, "GET", f"{VIMS}.json?fields=id&name=VIM", 200))["vims"] == []
    assert (await call(world, "GET", f"{VIMS}/{vim['id']}.json", 200))["vim"]["name"] == "VIM0"
    assert (await call(world, "GET", f"{VIMS}/{vim['id']}", 200))["vim"]["name"] == "VIM0"
    assert await call(world, "DELETE", f"{VIMS}/{vim['id']}.json", 204) is None
    assert await call(world, "GET", VIMS, 200) == {"vims": []}


async def test_a_vim_is_the_same_in_both_apis(world: World, keystone: Keystone, cluster: Cluster) -> None:
    await world.add_vim(accessInfo={"password": "demo-password"})
    await call(world, "POST", VIMS, 201, json=openstack(keystone))
    await call(world, "POST", VIMS, 201, json=kubernetes(cluster))
    listed = (await call(world, "GET", f"{VIMS}.json", 200))["vims"]
    assert [(vim["name"], vim["type"], vim["is_default"]) for vim in listed] == [
        ("sim", "simulated", False),  # it was the default, until another one was
        ("VIM0", "openstack", False),
        ("kubernetes-VIM", "kubernetes", True),
    ]
    ours = (await world.call("GET", f"{OURS}/VIM0", 200)).json()
    assert ours["vimType"] == "ETSINFV.OPENSTACK_KEYSTONE.V_3"
    assert ours["interfaceInfo"] == {"endpoint": keystone.url, "skipCertificateVerification": False}
    assert ours["accessInfo"] == {
        "username": "demo", "userDomain": "Default", "project": "demo", "projectDomain": "Default"
    }  # fmt: skip
    assert ours["regions"] == ["RegionOne"]
    for name in ("VIM0", "kubernetes-VIM"):
        assert (await world.call("POST", f"{OURS}/{name}/check", 200)).json()["ok"] is True


async def test_a_cluster_is_registered_by_oidc(world: World, cluster: Cluster) -> None:
    with a_token_endpoint(cluster) as endpoint:
        cred = {
            "oidc_token_url": endpoint.url,
            "username": "operator",
            "password": "oidc-password",
            "client_id": "slipway",
            "client_secret": "oidc-secret",
        }
        vim = (await call(world, "POST", VIMS, 201, json=kubernetes(cluster, cred)))["vim"]
    assert vim["placement_attr"] == {"regions": ["default", "kube-system"]}
    assert vim["vim_project"] == {"name": "default"}
    assert vim["auth_cred"] == {
        **cred, "password": "***", "client_secret": "***", "ssl_ca_cert": cluster.authority.pem
    }  # fmt: skip


async def test_what_can_not_be_logged_in_to_is_not_kept(world: World, keystone: Keystone, cluster: Cluster) -> None:
    wrong = openstack(keystone)
    wrong["vim"]["auth_cred"]["password"] = "wrong"
    error = await call(world, "POST", f"{VIMS}.json", 400, json=wrong)
    assert "does not let user demo" in error["message"]
    error = await call(world, "POST", VIMS, 400, json=kubernetes(cluster, {"bearer_token": "bad"}))
    assert "401" in error["message"]
    with a_keystone() as gone:
        pass
    assert "Cure: " in (await call(world, "POST", VIMS, 400, json=openstack(gone)))["message"]
    assert (await call(world, "GET", VIMS, 200))["vims"] == []
    assert (await world.call("GET", OURS, 200)).json() == []


async def test_a_vim_is_changed_by_what_is_given(world: World, keystone: Keystone) -> None:
    vim = (await call(world, "POST", VIMS, 201, json=openstack(keystone, extra={"area": "a@b"})))["vim"]
    one = f"{VIMS}/{vim['id']}.json"
    changed = (await call(world, "PUT", one, 200, json={"vim": {"name": "new", "is_default": True}}))["vim"]
    assert (changed["name"], changed["is_default"], changed["extra"]) == ("new", True, {"area": "a@b"})
    logins = len(keystone.asked)
    keystone.users["admin"].password = "demo-password"
    cred = {**openstack(keystone)["vim"]["auth_cred"], "username": "admin"}
    body = {"vim": {"auth_cred": cred, "vim_project": {"name": "admin", "project_domain_name": "Default"}, "extra": {}}}
    changed = (await call(world, "PUT", one, 200, json=body))["vim"]
    assert (changed["auth_cred"]["username"], changed["vim_project"]["name"]) == ("admin", "admin")
    assert changed["extra"] == {}
    assert len(keystone.asked) == logins + 1
    error = await call(world, "PUT", one, 400, json={"vim": {"auth_cred": {"password": "wrong"}}})
    assert "does not let user admin" in error["message"]
    assert (await world.call("POST", f"{OURS}/new/check", 200)).json()["ok"] is True
    masked = {"vim": {"auth_cred": changed["auth_cred"], "description": "as shown"}}
    assert (await call(world, "PUT", one, 200, json=masked))["vim"]["description"] == "as shown"
    assert (await world.call("POST", f"{OURS}/new/check", 200)).json()["ok"] is True


async def test_another_way_to_log_in_replaces_the_one_before(world: World, cluster: Cluster) -> None:
    vim = (await call(world, "POST", VIMS, 201, json=kubernetes(cluster)))["vim"]
    cluster.passwords = {"me": "oidc-password"}
    body = {"vim": {"auth_cred": {"username": "me", "password": "oidc-password"}}}
    changed = (await call(world, "PUT", f"{VIMS}/{vim['id']}.json", 200, json=body))["vim"]
    assert sorted(changed["auth_cred"]) == ["password", "ssl_ca_cert", "username"]


async def test_errors_have_the_status_they_should(world: World, keystone: Keystone) -> None:
    body = openstack(keystone)
    vim = (await call(world, "POST", VIMS, 201, json=body))["vim"]
    one = f"{VIMS}/{vim['id']}"
    assert "VIM0" in (await call(world, "POST", VIMS, 409, json=body))["message"]
    assert (await call(world, "GET", f"{VIMS}/5f5b7d6e-0000-4000-8000-000000000000.json", 404))["type"] == "NotFound"
    await call(world, "DELETE", f"{VIMS}/nobody.json", 404)
    await call(world, "PUT", f"{VIMS}/nobody.json", 404, json={"vim": {"name": "x"}})
    await call(world, "GET", "/v1.0/nothing", 404)
    await call(world, "PATCH", one, 405, json={})
    for wrong in (
        {},
        {"vim": None},
        body["vim"],
        openstack(keystone, name=""),
        openstack(keystone, name="x" * 256),
        openstack(keystone, name="b", type="vmware"),
        openstack(keystone, name="b", auth_url="nowhere"),
        openstack(keystone, name="b", auth_cred={}),
        openstack(keystone, name="b", vim_project={}),
        openstack(keystone, name="b", auth_cred={"username": "u"}),
        openstack(keystone, name="b", auth_cred={"username": "u", "password": {"$secret": "1"}}),
        openstack(keystone, name="b", status="ERROR"),
    ):
        message = (await call_unchecked(world, "POST", VIMS, json=wrong)).json()["TackerError"]["message"]
        assert message
    changes: list[dict[str, Any]] = [
        {"type": "kubernetes"},
        {"auth_url": "http://elsewhere"},
        {"name": ""},
        {"auth_cred": {}},
    ]
    for change in changes:
        await call(world, "PUT", one, 400, json={"vim": change})
    await call(world, "POST", VIMS, 400, content=b"{")
    await call(world, "GET", f"{VIMS}?colour=red", 400)
    assert len((await call(world, "GET", VIMS, 200))["vims"]) == 1


async def call_unchecked(world: World, method: str, path: str, **kwargs: Any) -> httpx.Response:
    answer = await world.client.request(method, path, headers=CLIENT, **kwargs)
    assert answer.status_code == 400, answer.text
    return answer


async def test_without_a_token_the_answer_is_401(world: World) -> None:
    answer = await world.client.get(VIMS, headers={"X-Auth-Token": "notused"})
    assert answer.status_code == 401
    assert answer.json()["TackerError"]["type"] == "Unauthorized"


async def test_names_may_be_anything(world: World, keystone: Keystone) -> None:
    for name in ("x" * 255, "a b/c?d=e&f#g.json", "名前", "../../etc"):
        await call(world, "POST", f"{VIMS}.json", 201, json=openstack(keystone, name=name))
        found = await world.client.get(f"{VIMS}.json", params={"name": name, "fields": "id"}, headers=CLIENT)
        (vim,) = found.json()["vims"]
        assert (await call(world, "GET", f"{VIMS}/{vim['id']}.json", 200))["vim"]["name"] == name
        await call(world, "DELETE", f"{VIMS}/{vim['id']}.json", 204)


async def test_a_vim_in_use_stays(database: Database, tmp_path: Path) -> None:
    async with a_world(database, tmp_path) as world:
        instance_id = await world.instantiated()
        (vim,) = (await call(world, "GET", f"{VIMS}.json", 200))["vims"]
        assert instance_id in (await call(world, "DELETE", f"{VIMS}/{vim['id']}.json", 409))["message"]


async def test_the_root_says_what_there_is(world: World) -> None:
    (version,) = (await call(world, "GET", "/", 200))["versions"]
    assert (version["id"], version["status"]) == ("v1.0", "CURRENT")
    assert (await call(world, "GET", "/v1.0", 200))["resources"][0]["collection"] == "vims"
