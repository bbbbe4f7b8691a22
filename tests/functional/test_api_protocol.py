"""Who comes in, in which form, and what every refusal looks like."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway.api.application import make_app
from slipway.store.database import Database
from tests.cases import in_one_world
from tests.unit.api.world import BASE_URL, LCM, PACKAGES, TOKEN, World, a_world

pytestmark = pytest.mark.sqlite_suffices

INSTANCES = f"{LCM}/vnf_instances"
PUBLIC = {"/health", "/schema", "/schema/page"}


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path, max_body_bytes=4096) as world:
        yield world


def client_of(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url=BASE_URL)


async def test_only_what_is_the_same_for_everybody_answers_without_a_token(world: World) -> None:
    app = make_app(world.services)
    walked = 0
    async with client_of(app) as stranger:
        for route in app.routes:
            path = re.sub(r"\{[^}]*\}", "x", route.path)
            for method in [*sorted(route.methods), "PURGE"]:
                for headers in ({}, {"X-Auth-Token": "wrong"}, {"Authorization": "Bearer wrong"}):
                    answer = await stranger.request(method, path, headers={"Version": "2.0.0", **headers})
                    walked += 1
                    if path in PUBLIC:
                        assert answer.status_code != 401
                        continue
                    assert answer.status_code == 401, f"{method} {path}"
                    assert answer.headers["www-authenticate"].startswith("Bearer")
                    if path.startswith("/v1.0"):  # whose clients know errors of another shape only
                        assert answer.headers["content-type"] == "application/json"
                        assert answer.json()["TackerError"]["type"] == "Unauthorized"
                    else:
                        assert answer.headers["content-type"] == "application/problem+json"
                        assert answer.json()["status"] == 401
        for path in ("/", "/no/such/thing", "/schema/x", "//health", "/health/", "/health/../slipway/v1/info"):
            assert (await stranger.get(path)).status_code == 401, path
    assert walked > 100


async def test_every_route_is_documented(world: World) -> None:
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    for route in make_app(world.services).routes:
        path = re.sub(r":(str|path)\}", "}", route.path).removesuffix(".json")
        for method in sorted(route.methods - {"OPTIONS"}):
            assert f"| {method} `{path}` |" in text, f"docs/api.md says nothing about {method} {path}"


async def test_both_ways_to_give_the_token(world: World) -> None:
    async with client_of(make_app(world.services)) as client:
        assert (await client.get("/slipway/v1/info", headers={"X-Auth-Token": TOKEN})).status_code == 200
        assert (await client.get("/slipway/v1/info", headers={"Authorization": f"Bearer {TOKEN}"})).status_code == 200
        assert (await client.get("/slipway/v1/info", headers={"Authorization": f"Basic {TOKEN}"})).status_code == 401


async def test_health_and_info(world: World) -> None:
    assert (await world.call("GET", "/health", 200)).json() == {
        "status": "ok",
        "version": world.services.version,
    }
    info = (await world.call("GET", "/slipway/v1/info", 200)).json()
    assert info["database"] in ("sqlite", "postgresql")
    assert info["workers"] == 1


@in_one_world(
    ("version", "status"),
    [("2.0.0", 200), ("2.0.0-impl:acme:1", 200), ("2", 400), ("two", 400), ("", 400), ("1.3.0", 406), ("2.0.1", 406)],
)
async def test_the_version_is_checked(world: World, version: str, status: int) -> None:
    answer = await world.call("GET", INSTANCES, status, headers={"Version": version})
    assert answer.headers["version"] == "2.0.0"


async def test_the_version_must_be_there_but_for_the_list_of_versions(world: World) -> None:
    async with client_of(make_app(world.services)) as client:
        client.headers["X-Auth-Token"] = TOKEN
        missing = await client.get(INSTANCES)
        assert (missing.status_code, missing.headers["content-type"]) == (400, "application/problem+json")
        assert "Version" in missing.json()["detail"]
        for path, prefix in (("/vnflcm/api_versions", "/vnflcm"), (f"{LCM}/api_versions", LCM)):
            answer = await client.get(path)
            assert answer.json()["uriPrefix"] == prefix
            assert {"version": "2.0.0", "isDeprecated": False} in answer.json()["apiVersions"]


@in_one_world(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("*/*", 200),
        ("application/*;q=0.5, text/html", 200),
        ("text/html", 406),
        ("application/json;q=0", 406),
        (",;;=,q", 406),
    ],
)
async def test_only_json_can_be_had(world: World, accept: str, status: int) -> None:
    await world.call("GET", INSTANCES, status, headers={"Accept": accept})


async def test_a_body_that_is_missing_is_said_to_be(world: World) -> None:
    """Not its media type, which nothing has."""
    one, package = f"{INSTANCES}/1", "/vnfpkgm/v1/vnf_packages/1"
    paths = [
        INSTANCES, "/vnflcm/v1/vnf_instances", "/vnfpkgm/v1/vnf_packages", f"{package}/package_content/upload_from_uri",
        *(f"{one}/{action}" for action in ("instantiate", "scale", "heal", "terminate", "change_ext_conn")),
        f"{one.replace('v2', 'v1')}/instantiate", f"{INSTANCES.rpartition('/')[0]}/vnf_lcm_op_occs/1/cancel",
        "/vnflcm/v1/subscriptions", "/vnflcm/v2/subscriptions", "/vnfpkgm/v1/subscriptions",
        "/slipway/v1/vims", "/slipway/v1/plans", "/slipway/v1/tokens",
    ]  # fmt: skip
    calls = [("POST", path) for path in paths] + [
        ("PATCH", one),
        ("PATCH", package),
        ("PUT", f"{package}/package_content"),
    ]
    for method, path in calls:
        for headers in ({}, {"Content-Type": "application/json"}, {"Content-Type": "application/zip"}):
            refused = await world.call(method, path, 400, headers=headers)
            assert "body is missing" in refused.json()["detail"], (method, path)
    answer = await world.client.post("/v1.0/vims")
    assert (answer.status_code, "body is missing" in answer.text) == (400, True)


async def test_errors_of_the_way_in(world: World) -> None:
    await world.call("GET", "/no/such/thing", 404)
    await world.call("GET", f"{INSTANCES}/no-such-id", 404)
    await world.call("GET", f"{INSTANCES}/%00", 404)
    await world.call("GET", f"{INSTANCES}/%ff%fe", 404)
    allowed = await world.call("PUT", INSTANCES, 405)
    assert {"GET", "POST"} <= set(allowed.headers["allow"].split(", "))
    await world.call("POST", INSTANCES, 415, content=b"vnfdId=x", headers={"Content-Type": "text/csv"})
    await world.call("POST", INSTANCES, 415, content=b"{}")
    await world.call("POST", INSTANCES, 422, json={"vnfdId": "no such VNFD"})
    unknown = await world.call("GET", f"{INSTANCES}?page=2", 400)
    assert "nextpage_opaque_marker" in unknown.json()["detail"]
    await world.call("GET", f"{INSTANCES}/x?verbose=1", 400)
    await world.call("GET", f"{INSTANCES}?filter=%ff", 400)
    await world.call("GET", f"{INSTANCES}?fields=id&fields=id", 400)


@in_one_world(
    ("body", "place"),
    [
        (b"", "missing"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid"),
        (b"[]", "The body: Expected `object`"),
        (b"{}", "vnfdId"),
        (b'{"vnfdId": 1}', "vnfdId: Expected `str`, got `int`."),
        (b'{"vnfdId": "x", "nonsense": 1}', "nonsense"),
        (b'{"vnfdId": "x", "metadata": {"a": "\\u0000"}}', "zero character"),
        (b'{"vnfdId": "x", "metadata": {"a": ' + b"9" * 400 + b"}}", "64 bits"),
        (b'{"vnfdId": "x", "metadata": {"a": 1e999}}', "out of range"),
        (b'{"vnfdId": "x", "metadata": ' + b'{"a":' * 200 + b"1" + b"}" * 201, "deeper"),
        (b'{"vnfdId": "x", "metadata": {"k": {"$secret": "x"}}}', "$secret"),
    ],
)
async def test_a_wrong_body_is_told_by_its_attribute(world: World, body: bytes, place: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await world.call("POST", INSTANCES, 400, content=body, headers=headers)
    assert place in answer.json()["detail"]


async def test_a_body_is_cut_off_at_the_limit(world: World) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    headers = {"Content-Type": "application/json"}
    await world.call("POST", INSTANCES, 413, content=b" " * 5000, headers=headers)
    await world.call("POST", INSTANCES, 413, content=chunks(), headers=headers)
    await world.call("POST", PACKAGES, 413, content=chunks(), headers=headers)


async def test_the_unexpected_shows_nothing_from_inside(world: World, caplog: pytest.LogCaptureFixture) -> None:
    await world.services.database.write(lambda c: c.exec_driver_sql("ALTER TABLE instances RENAME TO gone"))
    answer = await world.client.get(INSTANCES)
    assert answer.status_code in (500, 503)
    assert answer.headers["content-type"] == "application/problem+json"
    assert "instances" not in answer.text
    assert caplog.records
    await world.services.database.write(lambda c: c.exec_driver_sql("ALTER TABLE gone RENAME TO instances"))


async def test_no_token_lets_everybody_in(database: Database, tmp_path: Path) -> None:
    async with (
        a_world(database, tmp_path, authenticator=None) as world,
        client_of(make_app(world.services)) as client,
    ):
        assert (await client.get("/slipway/v1/info")).status_code == 200
