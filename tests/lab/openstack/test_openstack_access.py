"""Who gets in, by a real Keystone: Slipway to an OpenStack, and users of that OpenStack to Slipway."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from slipway.access.keystone import CACHE_SECONDS
from slipway.model.action import VimConnection
from slipway.model.errors import VimError, VimFault
from slipway.model.machine import Found
from slipway.model.operation import OperationType
from slipway.package.build import build_package
from slipway.vim.openstack.driver import OpenStackDriver
from tests.contract.life import FIRST, INSTANTIATE, TERMINATE, Life, out, two_vdus
from tests.contract.plans import run_plan
from tests.functional.processes import Process, running
from tests.functional.stock_client.stock_program import Stock, installed, warm
from tests.lab.openstack.openstack_lab import PASSWORD, OpenStackLab

pytestmark = pytest.mark.group(name="openstack")

T = TypeVar("T")
INSTANCES = "/vnflcm/v2/vnf_instances"
SMALL = Path(__file__).with_name("small_vnf")


@pytest.fixture
async def driver() -> AsyncIterator[OpenStackDriver]:
    driver = OpenStackDriver()
    yield driver
    driver.close()


def with_access(connection: VimConnection, **changes: str | None) -> VimConnection:
    access = {**connection.access_info, **changes}
    return dataclasses.replace(connection, access_info={key: value for key, value in access.items() if value})


async def test_an_application_credential_logs_in(driver: OpenStackDriver, cloud: OpenStackLab) -> None:
    with cloud.application_credential() as connection:
        found = await driver.inspect(connection)
    assert "orchestration" in found.detail
    assert found.regions == ("RegionOne",)


async def test_heat_makes_no_stack_for_an_application_credential_that_may_not_make_trusts(
    driver: OpenStackDriver, cloud: OpenStackLab
) -> None:
    """As Keystone is by itself, and Heat answers 500."""
    with cloud.application_credential(unrestricted=True) as connection:
        life = Life(driver, connection, {FIRST: two_vdus()}, files_of=lambda globs, vnfd_id: {})
        with pytest.raises(VimError, match=r"answered 500.* Cure: give the VIM a user and password"):
            await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        assert await life.found() == Found()


async def test_a_vnf_lives_by_an_application_credential_where_keystone_allows_it_trusts(
    driver: OpenStackDriver, cloud: OpenStackLab
) -> None:
    with cloud.application_trusts(), cloud.application_credential() as connection:
        life = Life(driver, connection, {FIRST: two_vdus()}, files_of=lambda globs, vnfd_id: {})
        await life.run(OperationType.INSTANTIATE, INSTANTIATE)
        try:
            await life.run(OperationType.SCALE, out())
            await life.agreed()
        finally:
            await life.run(OperationType.TERMINATE, TERMINATE)
        assert await life.found() == Found()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"password": "wrong"}, "correct the name, its domain, and the password"),
        ({"project": "admin"}, "accessInfo.project must be one of: lab"),
        ({"region": "nowhere"}, "accessInfo.region must be one of: RegionOne"),
    ],
)
async def test_what_is_wrong_with_an_account_is_told(
    driver: OpenStackDriver, cloud: OpenStackLab, changes: dict[str, str], told: str
) -> None:
    with pytest.raises(VimError) as caught:
        await driver.inspect(with_access(cloud.connection(), **changes))
    assert told in caught.value.detail
    assert caught.value.fault in (VimFault.AUTH, VimFault.PERMANENT)


async def test_a_project_sees_and_touches_nothing_of_another(driver: OpenStackDriver, cloud: OpenStackLab) -> None:
    clouds = cloud, cloud.project("neighbour")
    ours, theirs = (
        Life(driver, one.connection(), {FIRST: two_vdus()}, files_of=lambda globs, vnfd_id: {}) for one in clouds
    )
    await ours.run(OperationType.INSTANTIATE, INSTANTIATE)
    try:
        assert await theirs.found() == Found()
        plan = await ours.plan(OperationType.TERMINATE, TERMINATE)
        await run_plan(driver, plan, theirs.context())  # by the same name of a stack, and the ids of its servers
        await ours.agreed()
    finally:
        await ours.run(OperationType.TERMINATE, TERMINATE)


@pytest.fixture
def slipway(cloud: OpenStackLab, tmp_path: Path) -> Iterator[Process]:
    """One that knows the lab's Keystone, and asks it as `nova` does, which may validate tokens."""
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    settings = {"keystone_url": cloud.keystone, "keystone_user": "nova", "keystone_password_file": secret}
    with running("serve", tmp_path / "data", **settings) as process:
        yield process


def token_of(cloud: OpenStackLab) -> str:
    account = {**cloud.user.config.get_auth_args()}
    user = {"name": account["username"], "password": account["password"], "domain": {"id": "default"}}
    scope = {"project": {"name": account["project_name"], "domain": {"id": "default"}}}
    identity = {"methods": ["password"], "password": {"user": user}}
    answer = httpx.post(f"{cloud.keystone}/auth/tokens", json={"auth": {"identity": identity, "scope": scope}})
    return str(answer.headers["x-subject-token"])


def as_caller(process: Process, token: str) -> Callable[..., httpx.Response]:
    def call(method: str, path: str, json: Any = None) -> httpx.Response:
        with process.client() as client:
            return client.request(method, path, json=json, headers={"X-Auth-Token": token})

    return call


def test_the_stock_client_by_an_openrc_file_and_the_catalogue(
    slipway: Process, cloud: OpenStackLab, tmp_path: Path
) -> None:
    """As an operator of an OpenStack would, from nothing to a server and back: the catalogue tells where Slipway is."""
    url = str(slipway.client().base_url)
    openrc = {
        "OS_AUTH_URL": cloud.keystone,
        "OS_USERNAME": cloud.name,
        "OS_PASSWORD": PASSWORD,
        "OS_PROJECT_NAME": cloud.name,
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": "RegionOne",
    }
    vim = {
        "auth_url": cloud.keystone,
        "username": cloud.name,
        "password": PASSWORD,
        "project_name": cloud.name,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "cert_verify": "False",
    }
    csar = str(build_package(SMALL, tmp_path / "small.csar").path)
    link = {"cpdId": "server_CP1", "cpConfig": {"any": {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}}}
    links = [{"id": "link", "resourceId": cloud.network_id("mgmt"), "extCps": [link]}]
    with cloud.service("nfv-orchestration", url), warm(installed()) as client:
        stock = Stock(client, tmp_path, openrc)
        config = stock.file("vim.yaml", vim)  # JSON is YAML
        stock.says("vim register", "--config-file", config, "--is-default", "lab")
        package = stock.json("vnf package create")["ID"]
        stock.says("vnf package upload", "--path", csar, package)
        vnfd = until(lambda: stock.json("vnf package show", package).get("VNFD ID"))
        stock = stock.version("2")  # of which VIMs and packages are no part
        vnf = stock.json("vnflcm create", vnfd)["ID"]
        asked = stock.file("instantiate.json", {"flavourId": "simple", "extVirtualLinks": links})
        stock.says("vnflcm instantiate", vnf, asked)
        until(lambda: stock.json("vnflcm show", vnf)["Instantiation State"] == "INSTANTIATED")
        assert [server.status for server in cloud.user.compute.servers()] == ["ACTIVE"]
        stock.says("vnflcm terminate", vnf, "--termination-type", "FORCEFUL")
        until(lambda: stock.json("vnflcm show", vnf)["Instantiation State"] == "NOT_INSTANTIATED")
        stock.says("vnflcm delete", vnf)
        assert stock.json("vnflcm list") == []


def until(test: Callable[[], T], seconds: float = 180) -> T:
    deadline = time.monotonic() + seconds
    while not (found := test()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.5)
    return found


def test_a_user_of_the_cloud_works_in_his_own_project_until_his_token_is_revoked(
    slipway: Process, cloud: OpenStackLab
) -> None:
    mine, theirs = token_of(cloud), token_of(cloud.project("neighbour"))
    assert as_caller(slipway, mine)("GET", INSTANCES).json() == []
    vim = {"name": "lab", **cloud.vim}
    assert as_caller(slipway, mine)("POST", "/slipway/v1/vims", json=vim).status_code == 201
    assert [one["name"] for one in as_caller(slipway, mine)("GET", "/slipway/v1/vims").json()] == ["lab"]
    assert as_caller(slipway, theirs)("GET", "/slipway/v1/vims").json() == []
    httpx.delete(
        f"{cloud.keystone}/auth/tokens", headers={"X-Auth-Token": mine, "X-Subject-Token": mine}
    ).raise_for_status()
    deadline = time.monotonic() + CACHE_SECONDS + 10
    while as_caller(slipway, mine)("GET", INSTANCES).status_code != 401:
        assert time.monotonic() < deadline, "a revoked token still counts"
        time.sleep(1)
    assert as_caller(slipway, theirs)("GET", INSTANCES).status_code == 200
