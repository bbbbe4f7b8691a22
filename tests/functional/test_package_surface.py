"""What the standard wants of packages besides their life: filters, parts, forms, and what stock clients are used to."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from slipway.store.database import Database
from tests.cases import in_one_world
from tests.unit.api.world import BASE_URL, PACKAGES, World, a_world
from tests.unit.package.csars import META, SCRIPT, VNFD, varied, written

pytestmark = pytest.mark.sqlite_suffices

IMAGE = bytes(range(256)) * 300
BINARY = b"\x00\xff\xfe\x80 no text"
IMAGE_DATA = f"""properties:
        name: worker
        sw_image_data:
          name: disk-image
          version: '7'
          provider: Images Inc.
          checksum: {hashlib.sha256(IMAGE).hexdigest()}
          container_format: bare
          disk_format: qcow2
          min_disk: 10 GB
          min_ram: 1 GB
          size: 1 MB
          metadata: {{ os: debian }}
"""
IMAGE_FILE = """      artifacts:
        sw_image:
          type: tosca.artifacts.nfv.SwImage
          file: ../Files/image.qcow2
      requirements:
        - virtual_storage: disk
"""
OUTSIDE = "https://files.example/chart-1.2.tgz"
IMAGE_ATTRIBUTES = {
    "id", "name", "provider", "version", "checksum", "containerFormat", "diskFormat", "createdAt", "minDisk", "minRam",
    "size", "imagePath",
}  # fmt: skip
ONBOARDED = "/vnfpkgm/v1/onboarded_vnf_packages"
MANIFEST = b"metadata:\n  vnf_product_name: Sample\n"


def with_image() -> dict[str, bytes]:
    files = varied("properties:\n        name: worker\n", IMAGE_DATA)
    vnfd = files[VNFD].decode().replace("      requirements:\n        - virtual_storage: disk\n", IMAGE_FILE, 1)
    files[VNFD] = vnfd.encode()
    files["Files/image.qcow2"] = IMAGE
    files["Files/thing.bin"] = BINARY
    files["Files/gr\u00f6\u00dfe.txt"] = b""
    files["vnf.mf"] = MANIFEST
    odd = "\nName: Files/thing.bin\nContent-Type: application/x-thing; \u00e4\n".encode()
    head, blank, rest = files[META].partition(b"\n\n")
    outside = f"\nSource: {OUTSIDE}\nContent-Type: application/gzip\nAlgorithm: SHA-256\nHash: {'A' * 64}\n".encode()
    files[META] = head + b"\nETSI-Entry-Manifest: vnf.mf" + blank + rest + odd + outside
    return files


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path) as world:
        yield world


@pytest.fixture
async def package(world: World) -> dict[str, Any]:
    package = await world.onboard(written(with_image(), world.directory))
    assert package["onboardingState"] == "ONBOARDED", package
    await world.call("PATCH", f"{PACKAGES}/{package['id']}", 200, json={"userDefinedData": {"for": {"whom": "me"}}})
    return package


@pytest.fixture
async def where(package: dict[str, Any]) -> str:
    return f"{PACKAGES}/{package['id']}"


@pytest.fixture(params=["by id", "by VNFD"])
async def content(request: pytest.FixtureRequest, package: dict[str, Any]) -> str:
    """Both ways to what is in a package."""
    return f"{PACKAGES}/{package['id']}" if request.param == "by id" else f"{ONBOARDED}/{package['vnfdId']}"


async def test_every_attribute_can_be_filtered_by_and_selected(world: World, package: dict[str, Any]) -> None:
    await world.call("POST", PACKAGES, 201, json={})
    image = package["softwareImages"][0]
    artifact = next(one for one in package["additionalArtifacts"] if one["artifactPath"] == SCRIPT)
    found = {
        "id": package["id"],
        "onboardingState": "ONBOARDED",
        "operationalState": "ENABLED",
        "usageState": "NOT_IN_USE",
        "vnfProvider": "Company",
        "vnfProductName": "Sample",
        "vnfdId": package["vnfdId"],
        "vnfSoftwareVersion": "2.0",
        "vnfdVersion": "1.10",
        "userDefinedData/for/whom": "me",
        "checksum/algorithm": package["checksum"]["algorithm"],
        "checksum/hash": package["checksum"]["hash"],
        "softwareImages/id": "worker",
        "softwareImages/imagePath": "Files/image.qcow2",
        "softwareImages/diskFormat": "QCOW2",
        "softwareImages/containerFormat": "BARE",
        "softwareImages/size": 1_000_000,
        "softwareImages/createdAt": image["createdAt"],
        "softwareImages/name": "disk-image",
        "softwareImages/minDisk": 10_000_000_000,
        "softwareImages/minRam": 1_000_000_000,
        "softwareImages/version": "7",
        "softwareImages/provider": "Images Inc.",
        "softwareImages/checksum/hash": image["checksum"]["hash"],
        "softwareImages/userMetadata/os": "debian",
        "additionalArtifacts/artifactPath": SCRIPT,
        "additionalArtifacts/checksum/algorithm": artifact["checksum"]["algorithm"],
        "additionalArtifacts/checksum/hash": artifact["checksum"]["hash"],
    }
    for attribute, value in found.items():
        params = {"filter": f"(eq,{attribute},{value})"}
        listed = (await world.call("GET", PACKAGES, 200, params=params)).json()
        assert package["id"] in [one["id"] for one in listed], attribute
        if attribute != "usageState":
            assert len(listed) == 1, attribute
        none = (await world.call("GET", PACKAGES, 200, params={"filter": f"(neq,{attribute},{value})"})).json()
        assert package["id"] not in [one["id"] for one in none], attribute
        selected = {"fields": attribute, "filter": f"(eq,id,{package['id']})"}
        assert attribute.partition("/")[0] in (await world.call("GET", PACKAGES, 200, params=selected)).json()[0]
    await world.call("GET", PACKAGES, 400, params={"filter": "(eq,softwareImages/colour,red)"})
    await world.call("GET", PACKAGES, 400, params={"filter": "(gt,softwareImages/size,large)"})


async def test_a_software_image_has_all_that_the_standard_requires(world: World) -> None:
    """SOL003 10.5.3.2, also where the VNFD says no more than SOL001 wants."""
    files = with_image()
    vnfd = files[VNFD].decode()
    for line in (
        "          provider: Images Inc.\n",
        "          min_ram: 1 GB\n",
        "          metadata: { os: debian }\n",
    ):
        assert vnfd.count(line) == 1
        vnfd = vnfd.replace(line, "")
    package = await world.onboard(written({**files, VNFD: vnfd.encode()}, world.directory))
    (image,) = package["softwareImages"]
    assert image.keys() >= IMAGE_ATTRIBUTES
    assert (image["provider"], image["minRam"]) == (package["vnfProvider"], 0)
    listed = (await world.call("GET", PACKAGES, 200, params={"fields": "softwareImages"})).json()
    assert listed[0]["softwareImages"] == [image]


async def test_a_software_image_in_the_package_has_the_checksum_and_size_of_its_file(
    world: World,
) -> None:
    files = with_image()
    vnfd = files[VNFD].decode()
    for line in (f"          checksum: {hashlib.sha256(IMAGE).hexdigest()}\n", "          size: 1 MB\n"):
        assert vnfd.count(line) == 1
        vnfd = vnfd.replace(line, "")
    (image,) = (await world.onboard(written({**files, VNFD: vnfd.encode()}, world.directory)))["softwareImages"]
    assert image["checksum"] == {"algorithm": "SHA-256", "hash": hashlib.sha256(IMAGE).hexdigest()}
    assert image["size"] == len(IMAGE)


async def test_an_artifact_outside_of_the_package_is_listed(
    world: World, package: dict[str, Any], content: str
) -> None:
    found = [one for one in package["additionalArtifacts"] if one["artifactPath"] == OUTSIDE]
    assert found == [
        {
            "artifactPath": OUTSIDE,
            "checksum": {"algorithm": "SHA-256", "hash": "a" * 64},
            "mediaType": "application/gzip",
        }
    ]
    detail = (await world.call("GET", f"{content}/artifacts/{OUTSIDE}", 404)).json()["detail"]
    assert "outside" in detail
    assert OUTSIDE in detail


@in_one_world("accept", ["application/json", "*/*", "application/octet-stream"])
async def test_an_artifact_is_given_as_it_is(world: World, content: str, accept: str) -> None:
    headers = {"Accept": accept}
    script = await world.call("GET", f"{content}/artifacts/{SCRIPT}", 200, headers=headers)
    assert script.headers["content-type"] == "text/plain"
    odd = await world.call("GET", f"{content}/artifacts/Files/thing.bin", 200, headers=headers)
    assert (odd.content, odd.headers["content-type"]) == (BINARY, "application/octet-stream")
    part = await world.call(
        "GET", f"{content}/artifacts/Files/thing.bin", 206, headers={**headers, "Range": "bytes=-4"}
    )
    assert part.content == BINARY[-4:]


async def test_an_image_has_the_size_of_its_file(world: World, content: str) -> None:
    """What the VNFD says of it is another matter."""
    path = f"{content}/artifacts/Files/image.qcow2"
    assert (await world.call("GET", path, 200)).content == IMAGE
    part = await world.call("GET", path, 206, headers={"Range": "bytes=70000-"})
    assert part.content == IMAGE[70000:]
    assert part.headers["content-range"] == f"bytes 70000-{len(IMAGE) - 1}/{len(IMAGE)}"
    await world.call("GET", path, 416, headers={"Range": f"bytes={len(IMAGE)}-"})
    for directory in ("Files", "Files/"):
        await world.call("GET", f"{content}/artifacts/{directory}", 404)


@in_one_world(
    ("asked", "status"),
    [("bytes=0-", 206), ("bytes=0-1,5-6", 200), (f"bytes={'9' * 5000}-", 200), ("bytes=-0", 416), ("items=0-1", 200)],
)
async def test_ranges(world: World, content: str, asked: str, status: int) -> None:
    await world.call("GET", f"{content}/package_content", status, headers={"Range": asked})


@in_one_world(
    ("accept", "media_type"),
    [
        ("text/plain", "text/plain"),
        ("application/zip", "application/zip"),
        ("text/plain,application/zip", "text/plain"),
        ("text/plain;q=0.5, application/zip", "application/zip"),
        ("*/*", "application/zip"),
        (None, "application/zip"),
    ],
)
async def test_a_vnfd_of_one_file(world: World, content: str, accept: str | None, media_type: str) -> None:
    request = world.client.build_request("GET", f"{content}/vnfd")
    request.headers.pop("accept")
    if accept:
        request.headers["accept"] = accept
    answer = await world.client.send(request)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == media_type, "the stock client compares all of it"
    if media_type == "text/plain":
        assert answer.content == with_image()[VNFD]
    else:
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.read(VNFD) == with_image()[VNFD]
            assert META in archive.namelist()


async def test_a_vnfd_of_several_files(world: World) -> None:
    where = f"{PACKAGES}/{(await world.onboard())['id']}/vnfd"
    for accept in ("text/plain,application/zip", "application/zip", "*/*"):
        answer = await world.call("GET", where, 200, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/zip"
    detail = (await world.call("GET", where, 406, headers={"Accept": "text/plain"})).json()["detail"]
    assert "application/zip" in detail


async def test_the_manifest_is_plain_text(world: World, content: str) -> None:
    answer = await world.call("GET", f"{content}/manifest", 200)
    assert (answer.content, answer.headers["content-type"]) == (MANIFEST, "text/plain")


async def test_all_artifacts_come_as_one_zip(world: World, content: str) -> None:
    answer = await world.call("GET", f"{content}/artifacts", 200, headers={"Accept": "application/zip"})
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            SCRIPT: with_image()[SCRIPT],
            "Files/thing.bin": BINARY,
            "Files/gr\u00f6\u00dfe.txt": b"",
        }
    part = await world.call("GET", f"{content}/artifacts", 206, headers={"Range": "bytes=10-19"})
    assert part.content == answer.content[10:20]
    await world.call("GET", f"{content}/artifacts", 416, headers={"Range": f"bytes={len(answer.content)}-"})
    await world.call("GET", f"{content}/artifacts", 406, headers={"Accept": "application/json"})


async def test_artifacts_that_are_too_large_together_are_got_one_by_one(database: Database, tmp_path: Path) -> None:
    async with a_world(database, tmp_path, max_artifacts_bytes=1000) as world:
        package = await world.onboard(written({**with_image(), "Files/large.bin": bytes(1000)}, world.directory))
        there = f"{ONBOARDED}/{package['vnfdId']}/artifacts"
        assert "artifacts/{artifactPath}" in (await world.call("GET", there, 413)).json()["detail"]
        assert len((await world.call("GET", f"{there}/Files/large.bin", 200)).content) == 1000


async def test_onboarded_packages_are_found_by_their_vnfd(world: World, package: dict[str, Any]) -> None:
    """SOL003 10.4.2 and 10.4.3 for onboarded packages: the same documents, with links of their own."""
    await world.call("POST", PACKAGES, 201, json={})  # which is not onboarded, and has no VNFD
    listed = (await world.call("GET", ONBOARDED, 200)).json()
    assert [one["id"] for one in listed] == [package["id"]]
    one = (await world.call("GET", f"{ONBOARDED}/{package['vnfdId']}", 200)).json()
    by_id = (await world.call("GET", f"{PACKAGES}/{package['id']}", 200)).json()
    assert one | {"_links": {}} == by_id | {"_links": {}}
    here = f"{BASE_URL}{ONBOARDED}/{package['vnfdId']}"
    assert (
        one["_links"]
        == listed[0]["_links"]
        == {
            "self": {"href": here},
            "packageContent": {"href": f"{here}/package_content"},
            "vnfd": {"href": f"{here}/vnfd"},
        }
    )
    for link in one["_links"].values():
        await world.call("GET", link["href"], 200)


async def test_lists_of_onboarded_packages_are_filtered_and_cut(world: World, package: dict[str, Any]) -> None:
    for filtered, count in (("(eq,vnfProductName,Sample)", 1), ("(eq,onboardingState,CREATED)", 0)):
        assert len((await world.call("GET", ONBOARDED, 200, params={"filter": filtered})).json()) == count
    whole = (await world.call("GET", ONBOARDED, 200, params={"all_fields": ""})).json()[0]
    assert whole["softwareImages"][0]["provider"] == "Images Inc."
    assert "softwareImages" not in (await world.call("GET", ONBOARDED, 200)).json()[0]
    cut = (await world.call("GET", ONBOARDED, 200, params={"exclude_fields": "vnfdId"})).json()[0]
    assert "vnfdId" not in cut
    await world.call("GET", cut["_links"]["self"]["href"], 200)
    await world.call("GET", ONBOARDED, 400, params={"filter": "(eq,colour,red)"})


async def test_what_is_not_onboarded_is_not_found_by_a_vnfd(world: World, package: dict[str, Any]) -> None:
    nowhere = "00000000-0000-4000-8000-000000000000"
    parts = ("", "/vnfd", "/manifest", "/package_content", "/artifacts", f"/artifacts/{SCRIPT}")
    for part in parts:
        detail = (await world.call("GET", f"{ONBOARDED}/{nowhere}{part}", 404)).json()["detail"]
        assert nowhere in detail
    by_package = f"{ONBOARDED}/{package['id']}"
    await world.call("GET", by_package, 404)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        await world.call(method, f"{ONBOARDED}/{package['vnfdId']}", 405, json={})


async def test_a_vnfd_of_two_projects_is_each_callers_own(world: World, package: dict[str, Any]) -> None:
    body = {"name": "other", "role": "operator", "project": "other"}
    token = (await world.call("POST", "/slipway/v1/tokens", 201, json=body)).json()["token"]
    headers = {"X-Auth-Token": token}
    there = f"{ONBOARDED}/{package['vnfdId']}"
    await world.call("GET", there, 404, headers=headers)
    second = (await world.call("POST", PACKAGES, 201, json={}, headers=headers)).json()["id"]
    csar = written(with_image(), world.directory, "second.csar").read_bytes()
    zipped = {**headers, "Content-Type": "application/zip"}
    await world.call("PUT", f"{PACKAGES}/{second}/package_content", 202, content=csar, headers=zipped)
    assert (await world.call("GET", there, 200, headers=headers)).json()["id"] == second
    detail = (await world.call("GET", there, 409)).json()["detail"]  # by somebody who sees both projects
    assert second in detail
    assert package["id"] in detail


async def test_a_reader_reads_and_changes_nothing(world: World, where: str) -> None:
    body = {"name": "looks", "role": "reader", "project": "default"}
    token = (await world.call("POST", "/slipway/v1/tokens", 201, json=body)).json()["token"]
    headers = {"X-Auth-Token": token}
    parts = ("", "/vnfd", "/manifest", "/package_content", f"/artifacts/{SCRIPT}")
    for part in parts:
        await world.call("GET", f"{where}{part}", 200, headers=headers)
    await world.call("PATCH", where, 403, json={"operationalState": "DISABLED"}, headers=headers)
    await world.call("DELETE", where, 403, headers=headers)
    other = {"name": "strange", "role": "operator", "project": "other"}
    token = (await world.call("POST", "/slipway/v1/tokens", 201, json=other)).json()["token"]
    for part in parts:
        await world.call("GET", f"{where}{part}", 404, headers={"X-Auth-Token": token})


async def test_user_data_are_merged_and_can_be_given_up(world: World, where: str) -> None:
    merge = {"Content-Type": "application/merge-patch+json"}
    for data, left in (
        ({"a": {"b": 1}}, {"for": {"whom": "me"}, "a": {"b": 1}}),
        ({"a": {"b": 1}}, {"for": {"whom": "me"}, "a": {"b": 1}}),  # as it is already: no error in the standard
        ({"for": None, "a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        (None, None),
    ):
        body = {"userDefinedData": data}
        assert (await world.call("PATCH", where, 200, json=body, headers=merge)).json() == body
        assert (await world.call("GET", where, 200)).json().get("userDefinedData") == left
    both = {"operationalState": "DISABLED", "userDefinedData": {"why": "old"}}
    assert (await world.call("PATCH", where, 200, json=both)).json() == both


async def test_the_links_lead_somewhere(world: World, package: dict[str, Any]) -> None:
    assert set(package["_links"]) == {"self", "vnfd", "packageContent"}
    for link in package["_links"].values():
        await world.call("GET", link["href"], 200)
    empty = (await world.call("POST", PACKAGES, 201, json={})).json()
    assert set(empty["_links"]) == {"self", "packageContent"}


@pytest.mark.parametrize("prefix", ["/vnfpkgm", "/vnfpkgm/v1"])
async def test_the_versions_of_the_interface(world: World, prefix: str) -> None:
    versions = (await world.call("GET", f"{prefix}/api_versions", 200)).json()
    assert versions["uriPrefix"] == prefix
    assert [one["version"].partition(".")[0] for one in versions["apiVersions"]] == ["1"]
