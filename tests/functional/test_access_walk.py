"""Every route, every method, every kind of caller: what nobody said is denied.

The walk is made from the application's own routes. A route that the tables below don't know fails it: whoever adds one
says here what its path names, or what its list shows, or what of others its body could name.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.api.application import make_app
from slipway.model.subscription import Interface
from slipway.store.database import Database
from tests.functional.two_projects import ALL_PROJECTS, Projects, two_projects

pytestmark = pytest.mark.sqlite_suffices

PUBLIC = {"/health", "/schema", "/schema/page"}  # the same for everybody
ADMIN_ONLY = {"/slipway/v1/tokens", "/slipway/v1/tokens/{name}", "/slipway/v1/clusters/{id}/kubeconfig"}

# What the first parameter of a path names: kinds of things of the project blue.
NAMED = {
    "/vnflcm/v1/vnf_instances": ["instance"],
    "/vnflcm/v2/vnf_instances": ["instance"],
    "/vnflcm/v1/vnf_lcm_op_occs": ["operation"],
    "/vnflcm/v2/vnf_lcm_op_occs": ["operation"],
    "/vnfpkgm/v1/vnf_packages": ["package"],
    "/vnfpkgm/v1/onboarded_vnf_packages": ["VNFD"],
    "/slipway/v1/vnf_packages": ["package"],
    "/slipway/v1/operations": ["operation"],
    "/slipway/v1/clusters": ["instance"],
    "/slipway/v1/vnf_instances": ["instance"],
    "/slipway/v1/vims": ["VIM", "VIM's name"],
    "/v1.0/vims": ["VIM", "VIM's name"],
    "/slipway/v1/tokens": ["token", "token's name"],
    "/slipway/v1/subscriptions": [f"subscription of {interface}" for interface in Interface],
    **{f"/{interface}/subscriptions": [f"subscription of {interface}"] for interface in Interface},
}
# What lists show to blue, and to nobody else.
LISTS = {
    "/vnflcm/v1/vnf_instances": "instance",
    "/vnflcm/v2/vnf_instances": "instance",
    "/vnflcm/v1/vnf_lcm_op_occs": "operation",
    "/vnflcm/v2/vnf_lcm_op_occs": "operation",
    "/vnfpkgm/v1/vnf_packages": "package",
    "/vnfpkgm/v1/onboarded_vnf_packages": "package",
    "/slipway/v1/vims": "VIM",
    "/v1.0/vims": "VIM",
    "/v1.0/vims.json": "VIM",
    "/slipway/v1/tokens": "token",
    **{f"/{interface}/subscriptions": f"subscription of {interface}" for interface in Interface},
}
# What shows nothing that belongs to anybody.
NEUTRAL = {
    "/", "/health", "/metrics", "/slipway/v1/info", "/v1.0",
    "/vnflcm/api_versions", "/vnflcm/v1/api_versions", "/vnflcm/v2/api_versions",
    "/vnfpkgm/api_versions", "/vnfpkgm/v1/api_versions", "/schema", "/schema/page",
}  # fmt: skip
# What a body names of blue, and the refusal that somebody of red meets; None where a body names nothing.
BODIES: dict[str, tuple[dict[str, Any], int] | None] = {
    "/vnflcm/v1/vnf_instances": ({"vnfdId": "VNFD"}, 404),
    "/vnflcm/v2/vnf_instances": ({"vnfdId": "VNFD"}, 422),
    "/slipway/v1/plans": ({"vnfInstanceId": "instance", "operation": "HEAL"}, 404),
    "/vnfpkgm/v1/vnf_packages": None,
    "/slipway/v1/vims": None,
    "/v1.0/vims": None,
    "/v1.0/vims.json": None,
    "/slipway/v1/tokens": None,
    **{f"/{interface}/subscriptions": None for interface in Interface},
}
UNKNOWN = "00000000-0000-4000-8000-000000000000"
ANY_BODIES: list[Any] = [{}, [], {"vim": {"description": "x"}}, {"cancelMode": "FORCEFUL"}]
_PARAMETER = re.compile(r"\{(\w+)(:\w+)?\}")


@pytest.fixture
async def projects(database: Database, tmp_path: Path) -> AsyncIterator[Projects]:
    async with two_projects(database, tmp_path) as projects:
        yield projects


def routes(projects: Projects) -> Iterator[tuple[str, str]]:
    """Every method with every path, as the path is written in the docs."""
    for route in make_app(projects.world.services).routes:
        for method in sorted(route.methods):
            yield method, _PARAMETER.sub(r"{\1}", route.path)


def named(path: str) -> list[str]:
    collection = path.partition("/{")[0]
    assert collection in NAMED, f"{path} is new here: say in NAMED which things of a project its parameter names"
    return NAMED[collection]


def filled(path: str, thing: str) -> str:
    """The first parameter is the thing, all others are the same for everybody."""
    return _PARAMETER.sub("x", path.replace(path[path.index("{") : path.index("}") + 1], thing, 1))


def with_things(projects: Projects) -> Iterator[tuple[str, str, str, str]]:
    """Every way to each thing of blue: method, path as written, path with the thing, the thing."""
    for method, path in routes(projects):
        if "{" in path:
            for kind in named(path):
                yield method, path, filled(path, projects.things[kind]), projects.things[kind]


def anywhere(projects: Projects) -> Iterator[tuple[str, str, str]]:
    """Every way at all: method, path as written, path to ask for."""
    for method, path in routes(projects):
        if "{" not in path:
            yield method, path, path
    for method, path, there, _ in with_things(projects):
        yield method, path, there


def said(answer: httpx.Response, thing: str) -> tuple[int, str]:
    """What an answer tells, but for the name that the caller knew already."""
    return answer.status_code, answer.text.replace(thing, "IT")


async def test_the_walk_is_long(projects: Projects) -> None:
    assert len(list(anywhere(projects))) > 100
    assert {kind for kinds in NAMED.values() for kind in kinds} <= projects.things.keys()


@pytest.mark.parametrize("who", [None, "nobody"])
async def test_without_a_good_token_there_is_only_what_everybody_may_see(projects: Projects, who: str | None) -> None:
    for method, path, there in anywhere(projects):
        answer = await projects.ask(who, method, there)
        assert (answer.status_code == 401) is (path not in PUBLIC), f"{method} {there}: {answer.status_code}"
        if path not in PUBLIC:
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_reader_reads_and_does_nothing_else(projects: Projects) -> None:
    for method, path, there in anywhere(projects):
        answer = await projects.ask("reader", method, there)
        forbidden = method != "OPTIONS" and (method != "GET" or path in ADMIN_ONLY)
        assert (answer.status_code == 403) is forbidden, f"{method} {there}: {answer.status_code} {answer.text}"
        if forbidden:
            assert "role" in answer.text


@pytest.mark.parametrize("who", ["operator", "admin", ALL_PROJECTS])
async def test_who_may_is_let_in(projects: Projects, who: str) -> None:
    for method, path, there in sorted(anywhere(projects), key=lambda one: one[0] == "DELETE"):
        answer = await projects.ask(who, method, there)
        may = who != "operator" or path not in ADMIN_ONLY or method == "OPTIONS"
        assert (answer.status_code == 403) is not may, f"{method} {there}: {answer.status_code} {answer.text}"
        assert answer.status_code != 401
        gone = method == "DELETE" and path == "/slipway/v1/tokens/{name}"  # by its id first, then by its name
        assert "There is no" not in answer.text or gone, f"{method} {there}: {answer.text}"


@pytest.mark.parametrize("who", ["stranger", "strange admin"])
async def test_what_others_have_is_not_there(projects: Projects, who: str) -> None:
    """To the letter: an answer for something of blue is the answer for something that never was."""
    for method, path, there, thing in with_things(projects):
        answer = await projects.ask(who, method, there)
        where = f"{method} {there}: {answer.status_code} {answer.text}"
        nothing = await projects.ask(who, method, filled(path, UNKNOWN))
        assert said(answer, thing) == said(nothing, UNKNOWN), where
        if method == "OPTIONS":
            assert answer.status_code == 204, where
            assert answer.content == b""
        elif who == "stranger" and path in ADMIN_ONLY:
            assert answer.status_code == 403, where
        elif answer.status_code != 404:
            # The body is looked at first, and would be refused for something of one's own, too.
            assert answer.status_code in (400, 415), where
            assert (await projects.ask("operator", method, there)).status_code == answer.status_code, where


@pytest.mark.parametrize("who", ["stranger", "strange admin"])
async def test_no_body_makes_a_difference_to_what_others_have(projects: Projects, who: str) -> None:
    """Bodies of the right type reach further than none at all."""
    for method, path, there, thing in with_things(projects):
        if method in ("POST", "PUT", "PATCH") and not (who == "stranger" and path in ADMIN_ONLY):
            for body in ANY_BODIES:
                answer = await projects.ask(who, method, there, json=body)
                nothing = await projects.ask(who, method, filled(path, UNKNOWN), json=body)
                assert said(answer, thing) == said(nothing, UNKNOWN)
                assert answer.status_code in (404, 400), f"{method} {there}: {answer.status_code} {answer.text}"


async def test_lists_show_what_is_ones_own(projects: Projects) -> None:
    for method, path in routes(projects):
        if method != "GET" or "{" in path:
            continue
        assert path in LISTS.keys() | NEUTRAL, (
            f"GET {path} is new here: does it list things of projects? Say so in LISTS"
        )
        if path not in LISTS:
            continue
        thing = projects.things[LISTS[path]]
        for who in ("admin", ALL_PROJECTS, *(() if path in ADMIN_ONLY else ("reader", "operator"))):
            assert thing in (await projects.did(who, "GET", path, 200)).text, f"GET {path} as {who}"
        strange = "strange admin" if path in ADMIN_ONLY else "stranger"
        found = (await projects.did(strange, "GET", path, 200)).json()
        listed = found["vims"] if isinstance(found, dict) else found
        if path in ADMIN_ONLY:
            assert {one["project"] for one in listed} == {"red"}
        else:
            assert listed == [], f"GET {path}"


async def test_filters_find_nothing_of_others(projects: Projects) -> None:
    for path, kind in LISTS.items():
        wanted = projects.things[kind]
        for query in ({"filter": f"(eq,id,{wanted})"}, {"filter": f"(neq,id,{UNKNOWN})"}):
            if path.startswith("/v1.0"):
                query = {"id": wanted}
            if path not in ADMIN_ONLY:
                found = (await projects.did("stranger", "GET", path, 200, params=query)).json()
                assert found in ([], {"vims": []}), f"{path} {query}"
                assert wanted in (await projects.did("operator", "GET", path, 200, params=query)).text
    by_package = {"filter": f"(eq,vnfPkgId,{projects.things['package']})"}
    assert (await projects.did("stranger", "GET", "/vnflcm/v1/vnf_instances", 200, params=by_package)).json() == []


async def test_nothing_of_others_shows_anywhere_else(projects: Projects) -> None:
    for path in NEUTRAL:
        shown = (await projects.did("stranger", "GET", path, 200)).text
        assert not [thing for thing in projects.things.values() if len(thing) > 8 and thing in shown], path


async def test_bodies_name_nothing_of_others(projects: Projects) -> None:
    for method, path in routes(projects):
        if "{" in path or method in ("GET", "OPTIONS"):
            continue
        assert path in BODIES, f"{method} {path} is new here: say in BODIES what of others its body could name"
        if (asked := BODIES[path]) is None:
            continue
        body, status = asked
        real = {name: projects.things.get(value, value) for name, value in body.items()}
        unreal = {name: UNKNOWN if value in projects.things else value for name, value in body.items()}
        named_thing = next(projects.things[value] for value in body.values() if value in projects.things)
        answer = await projects.did("stranger", method, path, status, json=real)
        nothing = await projects.did("stranger", method, path, status, json=unreal)
        assert said(answer, named_thing) == said(nothing, UNKNOWN)
