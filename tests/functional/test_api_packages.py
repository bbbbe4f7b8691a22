"""VNF packages over HTTP: from nothing to enabled, and back; broken and broken-off uploads; parts of the content."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection, select

from slipway.api.application import make_app
from slipway.onboarding.incoming import IncomingFiles
from slipway.onboarding.records import begin
from slipway.store import tables
from slipway.store.database import Database
from tests.unit.api.world import BASE_URL, PACKAGES, TOKEN, World, a_world, sample_csar
from tests.unit.package.csars import varied, zipped

ZIP = {"Content-Type": "application/zip"}
DISABLED = {"operationalState": "DISABLED"}


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path, max_package_bytes=1_000_000) as world:
        yield world


async def created(world: World) -> str:
    answer = await world.call("POST", PACKAGES, 201, json={"userDefinedData": {"by": "me"}})
    assert answer.headers["location"] == f"{BASE_URL}{PACKAGES}/{answer.json()['id']}"
    return f"{PACKAGES}/{answer.json()['id']}"


def left_behind(world: World) -> list[str]:
    return sorted(path.name for path in (world.directory / "packages").iterdir())


async def test_a_package_comes_and_goes(world: World) -> None:
    package = await world.onboard()
    assert (package["onboardingState"], package["operationalState"]) == ("ONBOARDED", "ENABLED")
    assert package["checksum"]["hash"]
    assert "vnfd" in package["_links"]
    where = f"{PACKAGES}/{package['id']}"

    instance_id = await world.create(package["vnfdId"])
    assert (await world.call("GET", where, 200)).json()["usageState"] == "IN_USE"
    await world.call("DELETE", where, 409)
    await world.call("DELETE", f"/vnflcm/v2/vnf_instances/{instance_id}", 204)

    assert "DISABLED" in (await world.call("DELETE", where, 409)).json()["detail"]
    assert (await world.call("PATCH", where, 200, json=DISABLED)).json() == DISABLED
    await world.call("PATCH", where, 409, json=DISABLED)
    await world.call("POST", "/vnflcm/v2/vnf_instances", 422, json={"vnfdId": package["vnfdId"]})
    await world.call("DELETE", where, 204)
    await world.call("GET", where, 404)
    assert left_behind(world) == []


async def test_user_data_are_merged(world: World) -> None:
    where = await created(world)
    await world.call("PATCH", where, 200, json={"userDefinedData": {"by": None, "for": "you"}})
    assert (await world.call("GET", where, 200)).json()["userDefinedData"] == {"for": "you"}
    await world.call("PATCH", where, 409, json={"operationalState": "ENABLED"})
    await world.call("PATCH", where, 400, json={})
    await world.call("PATCH", where, 400, json={"operationalState": "MAYBE"})


async def test_a_broken_package_says_what_is_wrong_and_can_be_sent_again(world: World) -> None:
    where = await created(world)
    await world.call("PUT", f"{where}/package_content", 202, content=b"this is no ZIP", headers=ZIP)
    shown = (await world.call("GET", where, 200)).json()
    assert shown["onboardingState"] == "CREATED"
    failure = shown["onboardingFailureDetails"]
    assert failure["status"] == 422
    assert failure["detail"] == "package_content: This is not a ZIP archive. Cure: upload a CSAR (ZIP) file."
    assert left_behind(world) == []
    for part in ("package_content", "vnfd", "artifacts/x", "manifest"):
        headers = {"Accept": "*/*"}
        await world.call("GET", f"{where}/{part}", 409, headers=headers)
    content = sample_csar(world.directory).read_bytes()
    await world.call("PUT", f"{where}/package_content", 202, content=content, headers=ZIP)
    shown = (await world.call("GET", where, 200)).json()
    assert shown["onboardingState"] == "ONBOARDED"
    assert "onboardingFailureDetails" not in shown
    await world.call("PUT", f"{where}/package_content", 409, content=content, headers=ZIP)


async def test_what_is_contradictory_and_harms_nothing_is_told_with_the_package(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    where = await created(world)
    warnings = where.replace("/vnfpkgm/v1", "/slipway/v1") + "/warnings"
    assert (await world.call("GET", warnings, 200)).json() == []
    content = zipped(varied("aspect: out", "aspect: sideways"))
    await world.call("PUT", f"{where}/package_content", 202, content=content, headers=ZIP)

    shown = (await world.call("GET", where, 200)).json()
    assert shown["onboardingState"] == "ONBOARDED"
    assert "warnings" not in shown, "the standard's VnfPkgInfo has no such attribute"
    (warning,) = (await world.call("GET", warnings, 200)).json()
    assert (warning["file"], warning["line"]) == ("Definitions/vnfd.yaml", 76)
    assert warning["what"].endswith("which is not declared: it is ignored.")
    assert (
        f"{shown['id']} is onboarded with warnings: 1, the first: Definitions/vnfd.yaml:76: The policy" in caplog.text
    )
    await world.call("GET", "/slipway/v1/vnf_packages/nothing/warnings", 404)


async def test_secrets_in_user_defined_data_are_stored_encrypted_and_shown_to_nobody(
    world: World,
) -> None:
    data = {"owner": "me", "login": {"user": "u", "password": "canary-1"}, "api_token": "canary-2"}
    data["database"] = "postgres://u:canary-5@h/db"
    created = await world.call("POST", PACKAGES, 201, json={"userDefinedData": data})
    where = f"{PACKAGES}/{created.json()['id']}"
    patch = {"userDefinedData": {"sshPassword": "canary-3", "login": {"password": "canary-4"}, "room": 1}}
    patched = await world.call("PATCH", where, 200, json=patch)
    assert patched.json() == {"userDefinedData": {"login": {}, "room": 1}}
    shown = await world.call("GET", where, 200)
    assert shown.json()["userDefinedData"] == {"owner": "me", "login": {"user": "u"}, "room": 1}
    listed = await world.call("GET", f"{PACKAGES}?all_fields", 200)
    stored, ciphertexts = await world.services.database.read(everything_stored)
    for text in (created.text, patched.text, shown.text, listed.text, stored):
        assert "canary" not in text
        assert "$secret" not in text or text == stored
    assert ciphertexts == 4  # what was replaced is gone
    await world.call("PATCH", where, 400, json={"userDefinedData": {"a": {"$secret": "x"}}})
    await world.call("DELETE", where, 204)
    assert (await world.services.database.read(everything_stored))[1] == 0


def everything_stored(connection: Connection) -> tuple[str, int]:
    """The records of packages, and how many secrets there are."""
    records = [msgspec.json.encode(doc).decode() for doc in connection.scalars(select(tables.packages.c.doc))]
    return "\n".join(records), len(connection.execute(select(tables.secrets.c.id)).all())


async def test_user_defined_data_does_not_grow_without_end(world: World) -> None:
    where = f"{PACKAGES}/{(await world.call('POST', PACKAGES, 201, json={})).json()['id']}"
    for number, status in ((1, 200), (2, 400)):
        patch = {"userDefinedData": {f"part {number}": "x" * 600_000}}
        answer = await world.call("PATCH", where, status, json=patch)
    assert "userDefinedData" in answer.json()["detail"]
    assert list((await world.call("GET", where, 200)).json()["userDefinedData"]) == ["part 1"]


async def test_the_same_vnfd_twice_is_refused(world: World) -> None:
    first = await world.onboard()
    second = await world.onboard()
    assert second["onboardingState"] == "CREATED"
    assert first["id"] in second["onboardingFailureDetails"]["detail"]
    assert left_behind(world) == [f"{first['id']}.csar"]


async def test_of_parallel_uploads_one_is_taken(world: World) -> None:
    where = await created(world)
    content = sample_csar(world.directory).read_bytes()
    put = [world.client.put(f"{where}/package_content", content=content, headers=ZIP) for _ in range(8)]
    assert Counter(answer.status_code for answer in await asyncio.gather(*put)) == {202: 1, 409: 7}
    assert (await world.call("GET", where, 200)).json()["onboardingState"] == "ONBOARDED"


async def test_an_upload_over_the_limit_or_of_another_type_is_refused(world: World) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"x" * 10_000

    where = await created(world)
    await world.call("PUT", f"{where}/package_content", 413, content=endless(), headers=ZIP)
    shown = (await world.call("GET", where, 200)).json()
    assert shown["onboardingState"] == "CREATED"
    assert shown["onboardingFailureDetails"]["status"] == 413
    assert "1000000 bytes" in shown["onboardingFailureDetails"]["detail"]
    assert left_behind(world) == []
    await world.call("PUT", f"{where}/package_content", 415, content=b"x", headers={"Content-Type": "text/plain"})
    await world.call("PUT", f"{PACKAGES}/none/package_content", 404, content=b"x", headers=ZIP)


async def test_an_upload_whose_sender_goes_away_is_undone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    where = await created(world)
    events: Iterator[dict[str, Any]] = iter(
        [{"type": "http.request", "body": b"PK", "more_body": True}, {"type": "http.disconnect"}]
    )
    headers = {"x-auth-token": TOKEN, "content-type": "application/zip"}
    scope = {
        "type": "http", "method": "PUT", "path": f"{where}/package_content", "query_string": b"", "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return next(events)

    async def send(message: dict[str, Any]) -> None:
        pass

    app: Any = make_app(world.services)
    await app(scope, receive, send)
    assert (await world.call("GET", where, 200)).json()["onboardingState"] == "CREATED"
    assert left_behind(world) == []
    assert not caplog.records


async def test_a_killed_upload_is_mended_at_the_next_start(world: World) -> None:
    where = await created(world)
    package_id = where.rsplit("/", 1)[1]
    started, never = asyncio.Event(), asyncio.Event()

    async def stalled() -> AsyncIterator[bytes]:
        yield b"x"
        started.set()
        await never.wait()

    onboarding = world.services.onboarding
    upload = asyncio.create_task(onboarding.upload(package_id, stalled()))
    await started.wait()
    await world.call("DELETE", where, 409)
    (world.directory / "packages" / "0000.csar").touch()
    (world.directory / "packages" / ".incoming-0000").touch()
    await onboarding.recover()
    assert (await world.call("GET", where, 200)).json()["onboardingState"] == "UPLOADING", "somebody is at it"
    incoming = f".incoming-{package_id}"
    assert left_behind(world) == [incoming]
    (world.directory / "packages" / incoming).unlink()  # as it is for others when its process is gone
    (world.directory / "packages" / f"{package_id}.csar").touch()
    await onboarding.recover()
    shown = (await world.call("GET", where, 200)).json()
    assert shown["onboardingState"] == "CREATED"
    assert "again" in shown["onboardingFailureDetails"]["detail"]
    assert left_behind(world) == []
    upload.cancel()
    await asyncio.gather(upload, return_exceptions=True)
    await onboarding.recover()
    await world.call("DELETE", where, 204)


async def test_what_a_dead_process_left_is_taken_over_without_a_restart(world: World) -> None:
    content = sample_csar(world.directory).read_bytes()
    for method in ("PUT", "DELETE"):
        where = await created(world)
        package_id = where.rsplit("/", 1)[1]
        with await world.services.database.write(begin, package_id, IncomingFiles(world.directory / "packages")):
            await world.call("DELETE", where, 409)
        if method == "DELETE":
            await world.call("DELETE", where, 204)
        else:
            await world.call("PUT", f"{where}/package_content", 202, content=content, headers=ZIP)
            assert (await world.call("GET", where, 200)).json()["onboardingState"] == "ONBOARDED"
    assert len(left_behind(world)) == 1


async def test_content_comes_whole_or_in_part(world: World) -> None:
    package = await world.onboard()
    path = f"{PACKAGES}/{package['id']}/package_content"
    content = sample_csar(world.directory).read_bytes()
    whole = await world.call("GET", path, 200)
    assert whole.content == content
    assert whole.headers["accept-ranges"] == "bytes"
    for asked, part in (("bytes=0-9", content[:10]), ("bytes=10-", content[10:]), ("bytes=-7", content[-7:])):
        answer = await world.call("GET", path, 206, headers={"Range": asked})
        assert answer.content == part
        assert answer.headers["content-range"].endswith(f"/{len(content)}")
    beyond = await world.call("GET", path, 416, headers={"Range": f"bytes={len(content)}-"})
    assert beyond.headers["content-range"] == f"bytes */{len(content)}"
    await world.call("GET", path, 200, headers={"Range": "bytes=5-1"})
    await world.call("GET", path, 406, headers={"Accept": "text/plain"})


async def test_the_vnfd_and_the_artifacts_can_be_read(world: World) -> None:
    package = await world.onboard()
    where = f"{PACKAGES}/{package['id']}"
    vnfd = await world.call("GET", f"{where}/vnfd", 200)
    with zipfile.ZipFile(io.BytesIO(vnfd.content)) as archive:
        assert any(name.endswith(".vnfd.yaml") for name in archive.namelist())
    await world.call("GET", f"{where}/vnfd", 406, headers={"Accept": "text/plain"})
    await world.call("GET", f"{where}/vnfd", 406, headers={"Accept": "image/png"})
    for name in ("none.sh", "../../secrets.key", "%2e%2e/secrets.key", "/etc/passwd"):
        await world.call("GET", f"{where}/artifacts/{name}", 404)
    for artifact in package.get("additionalArtifacts", ()):
        got = await world.call("GET", f"{where}/artifacts/{artifact['artifactPath']}", 200)
        assert len(got.content) == artifact["sizeBytes"]
        if artifact["sizeBytes"] > 3:
            path = f"{where}/artifacts/{artifact['artifactPath']}"
            assert (await world.call("GET", path, 206, headers={"Range": "bytes=1-3"})).content == got.content[1:4]
