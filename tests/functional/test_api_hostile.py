"""Whatever is sent, the answer is never an error of ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.store.database import Database
from tests.unit.api.world import LCM, World, a_world

JSON = {"Content-Type": "application/json"}
NAMES = (
    "vnfdId", "flavourId", "metadata", "additionalParams", "type", "aspectId", "numberOfSteps", "terminationType",
    "vnfcInstanceId", "vimConnectionInfo", "vimId", "accessInfo", "password", "$secret", "operation", "request",
    "vnfInstanceId", "name", "vimType", "interfaceInfo", "endpoint", "extra", "rules", "kind", "cancelMode",
    "userDefinedData", "operationalState", "extVirtualLinks", "id", "resourceId", "vnfInstanceName", "all",
)  # fmt: skip
VALUES = ("simple", "workers", "SCALE_OUT", "FORCEFUL", "INSTANTIATE", "SLIPWAY.SIMULATED.V_1", "sim://two", "error")

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(VALUES)
    | st.sampled_from([10**30, -(2**63), 2**63, 1e308, "\0", "\ud800", "x" * 5000])
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner),
    max_leaves=15,
)
bodies = documents.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=50)
texts = st.text(max_size=30) | st.sampled_from(
    ["(eq,id,1)", "(gt,metadata/a,1e999)", "a/b", "~", "metadata/@key", "\0"]
)


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


async def answered(world: World, method: str, path: str, **kwargs: Any) -> None:
    answer = await world.client.request(method, path, **kwargs)
    assert answer.status_code < 500, f"{method} {path} {kwargs}: {answer.text}"
    if answer.status_code >= 400:
        assert answer.json()["status"] == answer.status_code


def test_hostile_bodies(database: Database, tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        context = a_world(database, tmp_path)
        world = runner.run(context.__aenter__())
        package = runner.run(world.onboard())
        instance_id = runner.run(world.create(package["vnfdId"]))
        one = f"{LCM}/vnf_instances/{instance_id}"
        targets = [
            ("POST", f"{LCM}/vnf_instances"), ("PATCH", one), ("POST", f"{one}/instantiate"), ("POST", f"{one}/scale"),
            ("POST", f"{one}/heal"), ("POST", f"{one}/change_vnfpkg"), ("POST", f"{one}/terminate"),
            ("POST", f"{one}/change_ext_conn"),
            ("POST", "/slipway/v1/plans"),
            ("POST", "/slipway/v1/vims"), ("PATCH", "/slipway/v1/vims/sim"), ("PUT", "/slipway/v1/vims/sim/rules"),
            ("POST", "/vnfpkgm/v1/vnf_packages"), ("PATCH", f"/vnfpkgm/v1/vnf_packages/{package['id']}"),
            ("POST", f"{LCM}/vnf_lcm_op_occs/x/cancel"),
        ]  # fmt: skip

        @settings(max_examples=150, suppress_health_check=list(HealthCheck))
        @given(st.sampled_from(targets), bodies)
        def check(target: tuple[str, str], body: bytes) -> None:
            runner.run(answered(world, *target, content=body, headers=JSON))

        @settings(max_examples=60, suppress_health_check=list(HealthCheck))
        @given(st.sampled_from(["filter", "fields", "exclude_fields", "nextpage_opaque_marker", "all_fields"]), texts)
        def check_query(name: str, value: str) -> None:
            if not any("\ud800" <= character <= "\udfff" for character in value):
                runner.run(answered(world, "GET", f"{LCM}/vnf_instances", params={name: value}))

        try:
            check()
            check_query()
        finally:
            runner.run(context.__aexit__(None, None, None))


async def test_the_deepest_and_the_longest(world: World) -> None:
    package = await world.onboard()
    for depth in (60, 63, 64, 65, 300, 900, 5000, 200_000):
        for start, end in ((b'{"a":', b"}"), (b"[", b"]")):
            nested = (
                b'{"vnfdId":"%s","metadata":{"a":' % package["vnfdId"].encode() + start * depth + b"1" + end * depth
            )
            await answered(world, "POST", f"{LCM}/vnf_instances", content=nested + b"}}", headers=JSON)
    await answered(world, "POST", f"{LCM}/vnf_instances", content=b"9" * 1_000_000, headers=JSON)
    await answered(world, "GET", f"{LCM}/vnf_instances/" + "a/" * 2000)
    await answered(world, "GET", f"{LCM}/vnf_instances?filter=" + "(eq,id,1);" * 400)
    await answered(world, "GET", f"{LCM}/vnf_instances?fields=" + "metadata/" * 900 + "x")
