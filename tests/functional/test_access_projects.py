"""Two projects beside each other: neither can use what the other has, and the same names are no trouble."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from slipway.model.instance import VimConnectionInfo
from slipway.model.subscription import Interface
from slipway.model.vim import SIMULATED
from slipway.package.build import build_package
from slipway.store import instances
from slipway.store.database import Database
from tests.cases import in_one_world
from tests.functional.next_package import NEXT_ID, next_package
from tests.functional.rig import SAMPLE
from tests.functional.two_projects import ALL_PROJECTS, Projects, two_projects
from tests.unit.api.world import LCM, PACKAGES, TOKEN

pytestmark = pytest.mark.sqlite_suffices

V1 = "/vnflcm/v1"
VIMS = "/slipway/v1/vims"
TOKENS = "/slipway/v1/tokens"
NAME = "VIM's name"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def projects(database: Database, tmp_path: Path) -> AsyncIterator[Projects]:
    async with two_projects(database, tmp_path) as projects:
        yield projects


async def refused(projects: Projects, method: str, path: str, body: dict[str, Any], *paths: str) -> None:
    """For red, a body with something of blue at the last of `paths` is as one with something that never was."""
    thing = body
    for place in paths[:-1]:
        thing = thing[place]
    told = []
    real = thing[paths[-1]]
    for value in (real, UNKNOWN):
        thing[paths[-1]] = value
        answer = await projects.ask("stranger", method, path, json=body)
        assert answer.status_code in (400, 404, 422), f"{method} {path} {body}: {answer.status_code} {answer.text}"
        told.append((answer.status_code, answer.text.replace(value, "IT")))
    assert told[0] == told[1]


async def test_bodies_cant_use_what_others_have(projects: Projects, tmp_path: Path) -> None:
    things = projects.things
    csar = tmp_path / "next.csar"
    build_package(next_package(SAMPLE, tmp_path, NEXT_ID, words={}), csar)
    newer = await projects.onboard("operator", csar)
    await projects.onboard("stranger")
    await projects.add_vim("stranger", "red-sim", "sim://red", isDefault=True)
    standing, _ = await projects.instantiated("stranger", things["VNFD"])
    waiting = await projects.create("stranger", things["VNFD"])

    for vim in (things["VIM"], things["VIM's name"]):
        new = {"flavourId": "simple", "vimConnectionInfo": {"vim": {"vimId": vim}}}
        await refused(
            projects, "POST", f"{LCM}/vnf_instances/{waiting}/instantiate", new, "vimConnectionInfo", "vim", "vimId"
        )
        old: dict[str, Any] = {"flavourId": "simple", "vimConnectionInfo": [{"id": "vim", "vimId": vim}]}
        for action in ("instantiate", "change_ext_conn"):
            path = f"{V1}/vnf_instances/{waiting}/{action}"
            assert (await projects.ask("stranger", "POST", path, json=old)).status_code == 400
        change = {"vimConnectionInfo": {"vim": {"vimId": vim}}}
        await refused(projects, "PATCH", f"{LCM}/vnf_instances/{standing}", change, "vimConnectionInfo", "vim", "vimId")
        change_of_v1: dict[str, Any] = {"vimConnectionInfo": [{"id": "vim", "vimId": vim}]}
        path = f"{V1}/vnf_instances/{standing}"
        assert (await projects.ask("stranger", "PATCH", path, json=change_of_v1)).status_code == 400
        plan = {"vnfInstanceId": waiting, "operation": "INSTANTIATE", "request": new}
        await refused(projects, "POST", "/slipway/v1/plans", plan, "request", "vimConnectionInfo", "vim", "vimId")

    package = {"vnfdId": NEXT_ID}
    await refused(projects, "POST", f"{LCM}/vnf_instances/{standing}/change_vnfpkg", dict(package), "vnfdId")
    await refused(projects, "PATCH", f"{LCM}/vnf_instances/{standing}", dict(package), "vnfdId")
    await refused(projects, "PATCH", f"{V1}/vnf_instances/{standing}", dict(package), "vnfdId")
    await refused(projects, "PATCH", f"{V1}/vnf_instances/{standing}", {"vnfPkgId": newer["id"]}, "vnfPkgId")
    plan = {"vnfInstanceId": standing, "operation": "CHANGE_VNFPKG", "request": dict(package)}
    await refused(projects, "POST", "/slipway/v1/plans", plan, "request", "vnfdId")


async def test_a_record_that_names_a_vim_of_others_leads_nowhere(projects: Projects) -> None:
    """Even if a connection to it came into the record in some way: steps of an instance don't get at it."""
    await projects.onboard("stranger")
    await projects.add_vim("stranger", "red-sim", "sim://red", isDefault=True)
    standing, _ = await projects.instantiated("stranger", projects.things["VNFD"])
    database = projects.world.services.database
    instance = await database.read(instances.get, standing)
    wrong = {"vim": VimConnectionInfo(vim_type=SIMULATED, vim_id=projects.things["VIM"])}
    await database.write(instances.update, replace(instance, vnf=replace(instance.vnf, vim_connection_info=wrong)))
    begun = await projects.did("stranger", "POST", f"{LCM}/vnf_instances/{standing}/heal", 202, json={})
    ended = await projects.world.ended(begun.headers["location"].rpartition("/")[2], "ROLLED_BACK", "FAILED_TEMP")
    assert f"There is no VIM {projects.things['VIM']}" in ended["error"]["detail"]


async def test_a_simulated_vim_is_its_projects_own(projects: Projects) -> None:
    """Whoever gives the same address: rules of one project break nothing in another, and nothing of it is seen."""
    broken = [{"kind": "error", "call": "make_machine", "fault": "permanent"}]
    await projects.onboard("stranger")
    await projects.add_vim("stranger", "same", "sim://blue", extra={"rules": broken})
    await projects.did("stranger", "PUT", f"{VIMS}/same/rules", 200, json=broken)
    seen = (await projects.did("stranger", "POST", f"{VIMS}/same/check", 200)).json()["detail"]
    assert "0 machines of 0 instances" in seen
    await projects.run("operator", projects.things["instance"], "scale", {"type": "SCALE_OUT", "aspectId": "workers"})

    described = {"vimType": SIMULATED, "interfaceInfo": {"endpoint": "sim://blue"}}
    body = {"flavourId": "simple", "vimConnectionInfo": {"vim1": described}}
    instance_id = await projects.create("stranger", projects.things["VNFD"])
    await projects.run("stranger", instance_id, "instantiate", body, "FAILED_TEMP")
    seen = (await projects.did("operator", "POST", f"{VIMS}/blue-sim/check", 200)).json()["detail"]
    assert "of 1 instance, 0 rules" in seen


async def test_the_same_names_in_two_projects(projects: Projects) -> None:
    """The same VNFD, a VIM of the same name, and a default of each."""
    things = projects.things
    red_package = await projects.onboard("stranger")
    assert red_package["vnfdId"] == things["VNFD"]
    red_vim = await projects.add_vim("stranger", things["VIM's name"], "sim://red", isDefault=True)
    red, _ = await projects.instantiated("stranger", things["VNFD"])

    for who, instance_id, vim_id, package_id in (
        ("operator", things["instance"], things["VIM"], things["package"]),
        ("stranger", red, red_vim, red_package["id"]),
    ):
        shown = (await projects.did(who, "GET", f"{LCM}/vnf_instances/{instance_id}", 200)).json()
        assert shown["vimConnectionInfo"]["vim"]["vimId"] == vim_id
        of_v1 = (await projects.did(who, "GET", f"{V1}/vnf_instances/{instance_id}", 200)).json()
        assert of_v1["vnfPkgId"] == package_id
        assert (await projects.did(who, "GET", f"{VIMS}/{things[NAME]}", 200)).json()["id"] == vim_id
        by_package = {"filter": f"(eq,vnfPkgId,{package_id})"}
        found = (await projects.did(who, "GET", f"{V1}/vnf_instances", 200, params=by_package)).json()
        assert [one["id"] for one in found] == [instance_id]
        assert found[0]["vnfPkgId"] == package_id
    ambiguous = await projects.did(ALL_PROJECTS, "GET", f"{VIMS}/{things[NAME]}", 409)
    assert "several projects" in ambiguous.json()["detail"]
    both = (await projects.did(ALL_PROJECTS, "GET", VIMS, 200)).json()
    assert {one["id"] for one in both} == {things["VIM"], red_vim}

    await projects.did("stranger", "PATCH", f"{VIMS}/{things[NAME]}", 200, json={"isDefault": False})
    assert (await projects.did("operator", "GET", f"{VIMS}/{things['VIM']}", 200)).json()["isDefault"]


async def test_a_package_is_used_disabled_and_removed_in_its_own_project(projects: Projects) -> None:
    vnfd_id = projects.things["VNFD"]
    red = await projects.onboard("stranger")
    path = f"{PACKAGES}/{red['id']}"
    assert red["usageState"] == "NOT_IN_USE"
    assert (await projects.did("operator", "GET", f"{PACKAGES}/{projects.things['package']}", 200)).json()[
        "usageState"
    ] == "IN_USE"
    await projects.did("stranger", "PATCH", path, 200, json={"operationalState": "DISABLED"})
    await projects.did("stranger", "POST", f"{LCM}/vnf_instances", 422, json={"vnfdId": vnfd_id})
    await projects.create("operator", vnfd_id)
    await projects.did("stranger", "DELETE", path, 204)
    await projects.create("operator", vnfd_id)
    await projects.run("operator", projects.things["instance"], "scale", {"type": "SCALE_OUT", "aspectId": "workers"})


async def test_without_a_default_vim_of_its_own_a_project_has_none(projects: Projects) -> None:
    await projects.onboard("stranger")
    instance_id = await projects.create("stranger", projects.things["VNFD"])
    path = f"{LCM}/vnf_instances/{instance_id}/instantiate"
    answer = await projects.did("stranger", "POST", path, 400, json={"flavourId": "simple"})
    assert "no default one" in answer.json()["detail"]


async def test_a_vim_stays_in_its_project(projects: Projects) -> None:
    await projects.did("operator", "PATCH", f"{VIMS}/{projects.things['VIM']}", 400, json={"project": "red"})
    body = {"name": "x", "vimType": "SLIPWAY.SIMULATED.V_1", "interfaceInfo": {"endpoint": "sim://x"}, "project": "red"}
    for who in ("operator", "admin"):
        assert (
            "only an admin of all projects" in (await projects.did(who, "POST", VIMS, 403, json=body)).json()["detail"]
        )
    assert (await projects.did(ALL_PROJECTS, "POST", VIMS, 201, json=body)).json()["project"] == "red"
    await projects.did("stranger", "GET", f"{VIMS}/x", 200)
    await projects.did("operator", "GET", f"{VIMS}/x", 404)


async def test_what_who_has_all_projects_makes_is_in_the_default_one(projects: Projects) -> None:
    package = await projects.onboard(ALL_PROJECTS)
    await projects.did(ALL_PROJECTS, "GET", f"{PACKAGES}/{projects.things['package']}", 200)
    await projects.did("admin", "GET", f"{PACKAGES}/{package['id']}", 404)


async def test_an_admin_of_a_project_gives_tokens_for_it_and_takes_them_back(projects: Projects) -> None:
    for project in ({"project": "red"}, {}, {"project": None}):
        body = {"name": "new", "role": "reader", **project}
        answer = await projects.did("admin", "POST", TOKENS, 403, json=body)
        assert "'blue' only" in answer.json()["detail"]
    body = {"name": "new", "role": "operator", "project": "blue"}
    made = (await projects.did("admin", "POST", TOKENS, 201, json=body)).json()
    projects.tokens["new"] = made["token"]
    await projects.did("new", "GET", f"{LCM}/vnf_instances/{projects.things['instance']}", 200)
    listed = (await projects.did("admin", "GET", TOKENS, 200)).text
    assert made["id"] in listed
    assert not [token for token in projects.tokens.values() if token in listed]
    await projects.did("strange admin", "DELETE", f"{TOKENS}/new", 404)
    await projects.did("admin", "DELETE", f"{TOKENS}/new", 204)
    await projects.did("new", "GET", f"{LCM}/vnf_instances", 401)


@in_one_world("project", ["", " ", "a/b", "../x", "x" * 65, "-x", "ä"])
async def test_a_project_has_a_plain_name(projects: Projects, project: str) -> None:
    body = {"name": "new", "role": "reader", "project": project}
    answer = await projects.did(ALL_PROJECTS, "POST", TOKENS, 400, json=body)
    assert "project" in answer.json()["detail"]


# What a proxy, or an authentication middleware in front of other services, would say. Anybody can send it.
CLAIMS = {
    "X-Project-Id": "blue", "X-Project-Name": "blue", "X-Tenant-Id": "blue", "X-Tenant": "blue",
    "X-Roles": "admin", "X-Role": "admin", "X-User-Id": "first token", "X-User": "first token", "X-User-Name": "admin",
    "X-Identity-Status": "Confirmed", "X-Service-Token": TOKEN, "X-Service-Roles": "admin",
    "X-Is-Admin-Project": "True",
    "X-Remote-User": "admin", "Remote-User": "admin", "X-Forwarded-User": "admin", "X-Auth-Request-User": "admin",
    "X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1", "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil", "Forwarded": "for=127.0.0.1;host=evil.example",
    "X-Client-Cert": "yes", "X-SSL-Client-Verify": "SUCCESS", "X-SSL-Client-S-DN": "CN=admin",
    "X-HTTP-Method-Override": "GET", "X-Original-URL": "/health", "X-Rewrite-URL": "/health", "Host": "evil.example",
}  # fmt: skip


async def test_headers_that_say_who_somebody_is_change_nothing(projects: Projects) -> None:
    one = f"{LCM}/vnf_instances/{projects.things['instance']}"
    for who, method, path in (
        (None, "GET", one), ("nobody", "GET", one), ("stranger", "GET", one),
        ("stranger", "GET", f"{LCM}/vnf_instances"),
        ("reader", "DELETE", one), ("reader", "GET", TOKENS), ("operator", "GET", TOKENS), ("operator", "GET", one),
        ("strange admin", "GET", VIMS), ("stranger", "DELETE", f"{VIMS}/{projects.things['VIM']}"),
    ):  # fmt: skip
        plain = await projects.ask(who, method, path)
        claiming = await projects.ask(who, method, path, headers=CLAIMS)
        assert (claiming.status_code, claiming.text) == (plain.status_code, plain.text), f"{who} {method} {path}"
    made = await projects.did("operator", "POST", PACKAGES, 201, json={}, headers=CLAIMS)
    assert "evil.example" not in made.headers["location"] + made.text
    await projects.did("stranger", "GET", f"{PACKAGES}/{made.json()['id']}", 404)


@pytest.mark.parametrize("interface", Interface)
async def test_who_asks_for_what_others_have_subscribed_to_hears_of_no_other(
    projects: Projects, interface: Interface
) -> None:
    path, body = f"/{interface}/subscriptions", {"callbackUri": "http://127.0.0.1:8088/blue"}
    again = await projects.did("operator", "POST", path, 303, json=body)
    assert again.headers["location"].endswith(projects.things[f"subscription of {interface}"])
    made = await projects.did("stranger", "POST", path, 201, json=body)
    assert [one["id"] for one in (await projects.did("stranger", "GET", path, 200)).json()] == [made.json()["id"]]
