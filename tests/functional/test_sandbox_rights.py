"""Who gets at the sandbox VIM, whose machines have wide rights on Slipway's own host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from slipway.app import ProcessRole, assemble
from slipway.model.action import VimConnection
from slipway.model.clock import utcnow
from slipway.model.errors import BadRequest, Forbidden, VimError, VimFault
from slipway.model.instance import VimConnectionInfo
from slipway.model.vim import SANDBOX, SIMULATED, Vim
from slipway.store import instances, vims
from slipway.store.database import Database
from slipway.vim.sandbox import SandboxDriver
from slipway.vim.sandbox.engine_operations import EngineOperations
from slipway.vim.sandbox.engines import Engines
from slipway.vim.sandbox.paths import SandboxPaths
from slipway.vim_registry.choice import merged_connections, resolve_connection
from tests.functional.rig import settings_in
from tests.functional.two_projects import ALL_PROJECTS, Projects, two_projects
from tests.unit.api.world import LCM

VIMS = "/slipway/v1/vims"
V1 = "/vnflcm/v1"
KEYSTONE = {"keystone_url": "http://127.0.0.1:5000/v3"}
ISSUER = {"oidc_issuer": "https://login.example", "oidc_audience": "slipway"}
LOCAL = {"endpoint": "sandbox://local"}
BOX = {"name": "box", "vimType": SANDBOX, "interfaceInfo": LOCAL, "project": "blue"}
SOCKET = {"endpoint": "unix:///run/secret.sock"}


class Watched(Engines):
    """Notes who would have been spoken to, and speaks to nobody."""

    def __init__(self, paths: SandboxPaths) -> None:
        super().__init__(paths, {}, ())
        self.asked: list[str] = []

    def operations(self, endpoint: str) -> EngineOperations:
        self.asked.append(endpoint)
        raise VimError("There is no engine in this test.", VimFault.PERMANENT)


@pytest.fixture
def database_url(sqlite_url: URL) -> URL:
    """No statement here is another one on PostgreSQL."""
    return sqlite_url


@pytest.fixture
def engines(tmp_path: Path) -> Watched:
    return Watched(SandboxPaths(tmp_path / "sandbox", tmp_path / "cache"))


@pytest.fixture
async def projects(database: Database, tmp_path: Path, engines: Watched) -> AsyncIterator[Projects]:
    driver = SandboxDriver(tmp_path / "sandbox", engines, sockets=("/run/listed.sock",))
    async with two_projects(database, tmp_path, others=[driver]) as projects:
        yield projects
    driver.close()


@pytest.fixture
async def without(database: Database, tmp_path: Path, engines: Watched) -> AsyncIterator[Projects]:
    """The sandbox is off, and there is a VIM from the time when it was on."""
    driver = SandboxDriver(tmp_path / "sandbox", engines, on=False)
    async with two_projects(database, tmp_path, others=[driver]) as projects:
        old = Vim(id="old", name="old", vim_type=SANDBOX, project="blue", interface_info=LOCAL, created_at=utcnow())
        await database.write(vims.insert, old)
        yield projects
    driver.close()


async def test_only_an_admin_of_all_projects_registers_changes_and_removes_one(projects: Projects) -> None:
    for who in ("operator", "admin", "stranger"):
        refused = await projects.did(who, "POST", VIMS, 403, json={k: v for k, v in BOX.items() if k != "project"})
        assert "admin of all projects" in refused.json()["detail"]
        legacy = {"name": "box", "type": "sandbox", "auth_url": LOCAL["endpoint"], "auth_cred": {"username": "slipway"},
                  "vim_project": {"name": "x"}}  # fmt: skip
        await projects.did(who, "POST", "/v1.0/vims", 403, json={"vim": legacy})
    vim = (await projects.did(ALL_PROJECTS, "POST", VIMS, 201, json=BOX)).json()
    assert vim["project"] == "blue"
    for who in ("operator", "admin"):
        await projects.did(who, "GET", f"{VIMS}/box", 200)
        for patch in ({"interfaceInfo": SOCKET}, {"description": "mine"}):
            await projects.did(who, "PATCH", f"{VIMS}/box", 403, json=patch)
        await projects.did(who, "PUT", f"/v1.0/vims/{vim['id']}", 403, json={"vim": {"name": "mine"}})
        await projects.did(who, "DELETE", f"{VIMS}/box", 403)
        await projects.did(who, "DELETE", f"/v1.0/vims/{vim['id']}", 403)
    await projects.did("stranger", "GET", f"{VIMS}/{vim['id']}", 404)
    await projects.did(ALL_PROJECTS, "PATCH", f"{VIMS}/{vim['id']}", 200, json={"description": "theirs"})
    await projects.did(ALL_PROJECTS, "DELETE", f"{VIMS}/{vim['id']}", 204)


async def test_a_socket_is_one_of_those_in_the_settings(projects: Projects, engines: Watched) -> None:
    refused = await projects.did(ALL_PROJECTS, "POST", VIMS, 403, json={**BOX, "interfaceInfo": SOCKET})
    assert "sandbox_sockets" in refused.json()["detail"]
    listed = {**BOX, "interfaceInfo": {"endpoint": "unix:///run/listed.sock"}}
    await projects.did(ALL_PROJECTS, "POST", VIMS, 201, json=listed)
    assert (await projects.did("operator", "POST", f"{VIMS}/box/check", 200)).json()["fault"] == "permanent"
    assert engines.asked == ["unix:///run/listed.sock"]


async def test_an_operator_uses_one_that_is_registered_for_the_project(projects: Projects, engines: Watched) -> None:
    await projects.did(ALL_PROJECTS, "POST", VIMS, 201, json=BOX)
    instance_id = await projects.create("operator", projects.things["VNFD"])
    body = {"flavourId": "simple", "vimConnectionInfo": {"vim1": {"vimId": "box"}}}
    await projects.run("operator", instance_id, "instantiate", body, "ROLLED_BACK")
    assert set(engines.asked) == {LOCAL["endpoint"]}


DESCRIBED: list[dict[str, Any]] = [
    {"vimType": SANDBOX, "interfaceInfo": LOCAL},
    {"vimType": SANDBOX, "interfaceInfo": SOCKET},
    {"vimId": "box", "interfaceInfo": SOCKET},
    {"vimId": "box", "vimType": SANDBOX, "interfaceInfo": SOCKET},
    {"vimId": "box", "accessInfo": {"authorizedKeys": ["ssh-ed25519 AAAA"]}},
    {"vimId": "blue-sim", "vimType": SANDBOX, "interfaceInfo": SOCKET},
]


@pytest.mark.parametrize("info", DESCRIBED)
async def test_none_is_described_in_a_request(projects: Projects, engines: Watched, info: dict[str, Any]) -> None:
    box = (await projects.did(ALL_PROJECTS, "POST", VIMS, 201, json=BOX)).json()["id"]
    blue_sim = projects.things["VIM"]
    instance_id = await projects.create("operator", projects.things["VNFD"])
    body = {"flavourId": "simple", "vimConnectionInfo": {"vim1": info}}
    await projects.did("operator", "POST", f"{LCM}/vnf_instances/{instance_id}/instantiate", 400, json=body)
    plan = {"vnfInstanceId": instance_id, "operation": "INSTANTIATE", "request": body}
    await projects.did("operator", "POST", "/slipway/v1/plans", 400, json=plan)
    # v1 does not look at the type of a registered VIM, so an entry that only gets it wrong is a right one.
    older = {"flavourId": "simple", "vimConnectionInfo": [{"id": "vim1", **info}]}
    await projects.did("operator", "POST", f"{V1}/vnf_instances/{instance_id}/instantiate", 400, json=older)
    ids = {"box": box, "blue-sim": blue_sim}
    named = {**info, **({"vimId": ids[info["vimId"]]} if "vimId" in info else {})}
    patch = {"vimConnectionInfo": {"other": named}}
    standing = projects.things["instance"]
    await projects.did("operator", "PATCH", f"{LCM}/vnf_instances/{standing}", 400, json=patch)
    older = {"vimConnectionInfo": [{"id": "other", **named}]}
    if info.get("vimId") != "blue-sim":
        await projects.did("operator", "PATCH", f"{V1}/vnf_instances/{standing}", 400, json=older)
    moved = {"vimConnectionInfo": {"vim": {"vimType": SANDBOX, "interfaceInfo": SOCKET}}}
    await projects.did("operator", "PATCH", f"{LCM}/vnf_instances/{standing}", 400, json=moved)
    assert engines.asked == []


async def test_a_record_that_says_otherwise_leads_nowhere(projects: Projects) -> None:
    """Whichever way it came into an instance's record: what was registered is used, or nothing."""
    box = (await projects.did(ALL_PROJECTS, "POST", VIMS, 201, json=BOX)).json()["id"]
    services, standing = projects.world.services, projects.things["instance"]
    vnf = (await services.database.read(instances.get, standing)).vnf
    for info in (
        VimConnectionInfo(vim_type=SANDBOX, interface_info=LOCAL),
        VimConnectionInfo(vim_id=box, vim_type=SANDBOX, interface_info=SOCKET),
        VimConnectionInfo(vim_id=box, interface_info=SOCKET),
        VimConnectionInfo(vim_id=box, vim_type=SIMULATED, interface_info=SOCKET),
        VimConnectionInfo(vim_id=projects.things["VIM"], vim_type=SANDBOX, interface_info=SOCKET),
    ):
        with pytest.raises(BadRequest):
            await services.database.read(resolve_connection, services.vault, info, standing)
    there = VimConnectionInfo(vim_id=box, vim_type=SANDBOX)
    vnf.vim_connection_info["box"] = there
    assert merged_connections(vnf, {"box": VimConnectionInfo(vim_id=box)})["box"] == there
    with pytest.raises(BadRequest, match="as it is registered"):
        merged_connections(vnf, {"box": VimConnectionInfo(interface_info=SOCKET)})


async def described_before(projects: Projects, endpoint: dict[str, str]) -> str:
    """An instance that stands on a sandbox which its own request described, from the time when that was possible."""
    database, standing = projects.world.services.database, projects.things["instance"]

    def change(connection: Any) -> None:
        instance = instances.get(connection, standing)
        (key,) = instance.vnf.vim_connection_info
        instance.vnf.vim_connection_info[key] = VimConnectionInfo(vim_type=SANDBOX, interface_info=endpoint)
        instances.update(connection, instance)

    await database.write(change)
    return standing


async def test_what_stands_on_one_that_was_described_before_can_be_terminated(
    projects: Projects, engines: Watched
) -> None:
    """And nothing else be done with it; nor does anybody describe it otherwise first."""
    standing = await described_before(projects, LOCAL)
    path = f"{LCM}/vnf_instances/{standing}"
    for moved in ({"interfaceInfo": SOCKET}, {"accessInfo": {"authorizedKeys": ["ssh-ed25519 AAAA"]}}):
        await projects.did("operator", "PATCH", path, 400, json={"vimConnectionInfo": {"vim": moved}})
    scaled = {"type": "SCALE_OUT", "aspectId": "workers"}
    await projects.run("operator", standing, "scale", scaled, "ROLLED_BACK")
    assert engines.asked == []
    # There is no engine in this test: to have been asked for it is as far as a termination gets.
    await projects.run("operator", standing, "terminate", {"terminationType": "FORCEFUL"}, "ROLLED_BACK")
    assert set(engines.asked) == {LOCAL["endpoint"]}


async def test_a_socket_that_is_not_listed_stays_out_of_reach_of_what_was_described_before(
    projects: Projects, engines: Watched
) -> None:
    standing = await described_before(projects, SOCKET)
    await projects.run("operator", standing, "terminate", {"terminationType": "FORCEFUL"}, "ROLLED_BACK")
    assert engines.asked == []


async def test_while_it_is_off_nobody_gets_at_one(without: Projects, engines: Watched) -> None:
    instance_id = await without.create("operator", without.things["VNFD"])
    body = {"flavourId": "simple", "vimConnectionInfo": {"vim1": {"vimId": "old"}}}
    inline = {"flavourId": "simple", "vimConnectionInfo": {"vim1": {"vimType": SANDBOX, "interfaceInfo": LOCAL}}}
    older = {"flavourId": "simple", "vimConnectionInfo": [{"id": "vim1", "vimId": "old"}]}
    plan = {"vnfInstanceId": instance_id, "operation": "INSTANTIATE", "request": body}
    for who, path, wanted in (
        (ALL_PROJECTS, VIMS, BOX),
        (ALL_PROJECTS, f"{VIMS}/old/check", None),
        ("operator", f"{VIMS}/old/check", None),
        ("operator", f"{LCM}/vnf_instances/{instance_id}/instantiate", body),
        ("operator", f"{V1}/vnf_instances/{instance_id}/instantiate", older),
        ("operator", "/slipway/v1/plans", plan),
    ):  # fmt: skip
        refused = await without.did(who, "POST", path, 403, json=wanted)
        assert "slipway serve --sandbox" in refused.json()["detail"]
    await without.did("operator", "POST", f"{LCM}/vnf_instances/{instance_id}/instantiate", 400, json=inline)
    assert engines.asked == []
    await without.did(ALL_PROJECTS, "DELETE", f"{VIMS}/old", 204)


async def test_steps_that_were_planned_before_it_was_turned_off_do_nothing(tmp_path: Path, engines: Watched) -> None:
    connection = VimConnection(SANDBOX, LOCAL, {}, {})
    with pytest.raises(VimError, match="--sandbox"):
        await SandboxDriver(tmp_path, engines, on=False).find(connection, "an instance")
    with pytest.raises(VimError, match="sandbox_sockets"):
        await SandboxDriver(tmp_path, engines).find(VimConnection(SANDBOX, SOCKET, {}, {}), "an instance")
    assert engines.asked == []


@pytest.mark.parametrize(
    ("role", "settings", "on"),
    [
        ("all", {}, True),
        ("all", {"auth": False}, True),
        ("all", {"host": "::1", "base_url": "http://localhost:9890"}, True),
        ("all", {"host": "192.0.2.1"}, False),
        ("all", {"host": "192.0.2.1", "sandbox": True}, True),
        ("all", {"base_url": "https://nfv.example"}, False),
        ("all", {"base_url": "https://nfv.example", "sandbox": True}, True),
        ("all", {"sandbox": False}, False),
        ("all", KEYSTONE, False),
        ("all", KEYSTONE | {"sandbox": True}, True),
        ("all", ISSUER, False),
        ("all", ISSUER | {"sandbox": True}, True),
        ("worker", {}, False),
        ("worker", {"sandbox": True}, True),
    ],
)
def test_unless_told_it_is_on_only_where_none_but_this_machines_users_ask(
    tmp_path: Path, role: ProcessRole, settings: dict[str, Any], on: bool
) -> None:
    slipway = assemble(settings_in(tmp_path, **settings), role)
    try:
        if on:
            assert slipway.drivers.for_type(SANDBOX)
        else:
            with pytest.raises(Forbidden, match="--sandbox"):
                slipway.drivers.for_type(SANDBOX)
    finally:
        slipway.close()
