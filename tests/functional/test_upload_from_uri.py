"""Packages from a given address: fetched behind the answer, refused where they must be, and never left half done."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.onboarding.download import DownloadLimits, DownloadSource
from slipway.onboarding.onboarding import Onboarding
from slipway.outgoing.guard import Guard
from slipway.store.database import Database
from slipway.store.secrets import Vault
from tests.cases import in_one_world
from tests.functional.package_server import PASSWORD, USER, PackageServer
from tests.unit.api.world import PACKAGES, World, a_world, sample_csar
from tests.unit.outgoing.certificates import Authority
from tests.unit.package.csars import Raw, with_member

pytestmark = pytest.mark.sqlite_suffices

BOUNDS = DownloadLimits(max_bytes=1_000_000, idle_seconds=20.0, total_seconds=60.0)
UNDER_WAY = ("UPLOADING", "PROCESSING")


def onboarding(database: Database, directory: Path, bounds: DownloadLimits = BOUNDS) -> Onboarding:
    vault = Vault(directory / "secrets.key")
    return Onboarding(database, directory / "packages", vault, guard=Guard(loopback=True), download_limits=bounds)


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(database, tmp_path, onboarding=onboarding(database, tmp_path)) as world:
        yield world
        await world.services.onboarding.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PackageServer]:
    with PackageServer(sample_csar(tmp_path).read_bytes()).running() as server:
        yield server


async def created(world: World) -> str:
    return f"{PACKAGES}/{(await world.call('POST', PACKAGES, 201, json={})).json()['id']}"


async def asked(world: World, where: str, uri: str, status: int = 202, **more: Any) -> Any:
    body = {"addressInformation": uri, **more}
    return await world.call("POST", f"{where}/package_content/upload_from_uri", status, json=body)


async def shown(world: World, where: str) -> dict[str, Any]:
    document: dict[str, Any] = (await world.call("GET", where, 200)).json()
    return document


async def settled(world: World, where: str) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while True:
            package = await shown(world, where)
            if package["onboardingState"] not in UNDER_WAY:
                return package
            await asyncio.sleep(0.01)


async def reached(server: PackageServer) -> None:
    assert await asyncio.to_thread(server.reached.wait, 20)


def left_behind(world: World) -> list[str]:
    return sorted(path.name for path in (world.directory / "packages").iterdir())


async def test_a_package_is_fetched_behind_the_answer(world: World, server: PackageServer) -> None:
    where = await created(world)
    answer = await asked(world, where, server.url("/stall"))
    assert answer.content == b""
    await reached(server)
    assert (await shown(world, where))["onboardingState"] == "UPLOADING"
    await asked(world, where, server.url("/ok"), 409)
    await world.call("PUT", f"{where}/package_content", 409, content=b"x", headers={"Content-Type": "application/zip"})
    await world.call("DELETE", where, 409)
    server.go.set()
    package = await settled(world, where)
    assert (package["onboardingState"], package["operationalState"]) == ("ONBOARDED", "ENABLED")
    assert (await world.call("GET", f"{where}/package_content", 200)).content == server.content
    assert "onboardingFailureDetails" not in package
    await asked(world, where, server.url("/ok"), 409)
    assert left_behind(world) == [f"{package['id']}.csar"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/status/404", 502, ("404 Not Found", "path")),
        ("/status/403", 502, ("403 Forbidden", "Give userName and password")),
        ("/status/503", 502, ("503 Service Unavailable", "later")),
        ("/status/204", 502, ("204 No Content", "200")),
        ("/private", 502, ("401 Unauthorized", "Give userName and password")),
        ("/hop/9", 502, ("redirects more than 5 times",)),
        ("/loop", 502, ("redirects more than 5 times",)),
        ("/metadata", 502, ("169.254.169.254", "never allowed")),
        ("/announced", 413, ("1000000 bytes", "max_package_bytes")),
        ("/endless", 413, ("1000000 bytes", "max_package_bytes")),
        ("/cut", 502, ("broke off after 1000 bytes", "Try again")),
        ("/packed", 502, ("gzip",)),
        ("/rubbish", 502, ("HTTP",)),
    ],
)
async def test_what_can_not_be_fetched_is_said_with_the_cure(
    world: World, server: PackageServer, path: str, status: int, words: tuple[str, ...]
) -> None:
    where = await created(world)
    await asked(world, where, server.url(f"{path}?token=in-the-query"))
    package = await settled(world, where)
    assert package["onboardingState"] == "CREATED"
    failure = package["onboardingFailureDetails"]
    assert failure["status"] == status
    assert failure["detail"].startswith("addressInformation: ")
    for word in words:
        assert word in failure["detail"]
    assert "secret of the server" not in failure["detail"]
    assert "in-the-query" not in failure["detail"]
    assert left_behind(world) == []
    await asked(world, where, server.url("/ok"))
    assert (await settled(world, where))["onboardingState"] == "ONBOARDED", "it can be asked for again"


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"this is no ZIP", "ZIP"), (b"", "ZIP"), (with_member(Raw(b"../../etc/cron.d/x", b"evil")), "..")],
)
async def test_what_is_fetched_is_checked_as_an_upload_is(
    world: World, server: PackageServer, content: bytes, words: str
) -> None:
    server.content = content
    where = await created(world)
    await asked(world, where, server.url("/ok"))
    package = await settled(world, where)
    assert package["onboardingState"] == "CREATED"
    assert package["onboardingFailureDetails"]["status"] == 422
    assert words in package["onboardingFailureDetails"]["detail"]
    assert left_behind(world) == []


@in_one_world(
    ("uri", "word"),
    [
        ("ftp://files.example/x.csar", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("nonsense", "scheme"),
        ("http://ada:secret@files.example/x", "own fields"),
        ("http://169.254.169.254/x", "link-local"),
        ("http://[::ffff:169.254.169.254]/x", "link-local"),
        ("http://files.example:22/x", "Port 22"),
        ("", "length"),
        (f"http://files.example/{'x' * 2048}", "length"),
    ],
)
async def test_an_address_that_can_not_be_used_is_refused_at_once(world: World, uri: str, word: str) -> None:
    where = await created(world)
    detail = (await asked(world, where, uri, 400)).json()["detail"]
    assert detail.startswith("addressInformation: ")
    assert word in detail
    assert "secret" not in detail
    assert await shown(world, where) == {**await shown(world, where), "onboardingState": "CREATED"}


@in_one_world(
    ("more", "field"),
    [
        ({"userName": "a:b", "password": "x"}, "userName"),
        ({"password": "x"}, "password"),
        ({"userName": 7}, "userName"),
        ({"userName": "a" * 256}, "userName"),
        ({"userName": "a", "password": "secret" * 99}, "password"),
    ],
)
async def test_a_body_that_is_wrong_is_refused_by_its_field(world: World, more: dict[str, Any], field: str) -> None:
    where = await created(world)
    detail = (await asked(world, where, "http://files.example/x", 400, **more)).json()["detail"]
    assert detail.startswith(f"{field}: ")
    assert "secret" not in detail
    await world.call("POST", f"{where}/package_content/upload_from_uri", 400, json={})
    await asked(world, f"{PACKAGES}/nobody", "http://files.example/x", 404)


async def test_loopback_is_refused_unless_it_is_allowed(database: Database, tmp_path: Path) -> None:
    async with a_world(database, tmp_path) as world:
        where = await created(world)
        for host in ("127.0.0.1", "[::1]"):
            assert "loopback" in (await asked(world, where, f"http://{host}:8080/x", 400)).json()["detail"]
        await asked(world, where, "http://localhost:8080/x")  # a name: known when it is resolved
        assert "loopback" in (await settled(world, where))["onboardingFailureDetails"]["detail"]


async def test_credentials_are_sent_where_they_were_meant_for_only(
    world: World, server: PackageServer, tmp_path: Path
) -> None:
    where = await created(world)
    await asked(world, where, server.url("/private"), userName=USER, password="wrong")
    detail = (await settled(world, where))["onboardingFailureDetails"]["detail"]
    assert "Correct userName and password" in detail
    with PackageServer(server.content).running() as other:
        server.elsewhere = other.url("/ok")
        await asked(world, where, server.url("/elsewhere"), userName=USER, password=PASSWORD)
        assert (await settled(world, where))["onboardingState"] == "ONBOARDED"
        assert server.asked[-1][1] is not None
        assert other.asked == [("/ok", None)]
    await world.call("PATCH", where, 200, json={"operationalState": "DISABLED"})
    await world.call("DELETE", where, 204)
    where = await created(world)
    await asked(world, where, server.url("/private"), userName=USER, password=PASSWORD)
    assert (await settled(world, where))["onboardingState"] == "ONBOARDED"


@pytest.mark.parametrize(
    ("path", "bounds", "words"),
    [
        ("/stall", DownloadLimits(idle_seconds=0.2), "nothing for 0.2 s, after 1000 bytes"),
        ("/silence", DownloadLimits(idle_seconds=0.2), "nothing for 0.2 s, after 0 bytes"),
        ("/silence", DownloadLimits(idle_seconds=30, total_seconds=0.2), "not done after 0.2 s"),
        ("/drops", DownloadLimits(idle_seconds=30, total_seconds=0.2), "not done after 0.2 s"),
    ],
)
async def test_a_server_that_stalls_is_not_waited_for(
    database: Database, tmp_path: Path, server: PackageServer, path: str, bounds: DownloadLimits, words: str
) -> None:
    async with a_world(database, tmp_path, onboarding=onboarding(database, tmp_path, bounds)) as world:
        where = await created(world)
        await asked(world, where, server.url(path))
        assert words in (await settled(world, where))["onboardingFailureDetails"]["detail"]
        assert left_behind(world) == []


async def test_a_port_that_nobody_listens_on(world: World, server: PackageServer) -> None:
    with PackageServer(b"").running() as gone:
        uri = gone.url("/ok")
    where = await created(world)
    await asked(world, where, uri)
    assert "does not answer" in (await settled(world, where))["onboardingFailureDetails"]["detail"]


async def test_the_server_must_be_vouched_for(
    world: World, server: PackageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority()
    pair = authority.vouch_for("127.0.0.1")
    (tmp_path / "server.pem").write_text(pair.certificate + pair.key)
    (tmp_path / "ca.pem").write_text(authority.certificate)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.pem")
    with PackageServer(server.content, tls).running() as secure:
        where = await created(world)
        await asked(world, where, secure.url("/ok"))
        assert "not believed" in (await settled(world, where))["onboardingFailureDetails"]["detail"]
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))  # now this machine trusts it
        await asked(world, where, secure.url("/ok"))
        assert (await settled(world, where))["onboardingState"] == "ONBOARDED"


async def test_of_several_at_once_one_is_taken(world: World, server: PackageServer) -> None:
    where = await created(world)
    path, body = f"{where}/package_content/upload_from_uri", {"addressInformation": server.url("/stall")}
    answers = await asyncio.gather(*(world.client.post(path, json=body) for _ in range(8)))
    assert Counter(answer.status_code for answer in answers) == {202: 1, 409: 7}
    server.go.set()
    assert (await settled(world, where))["onboardingState"] == "ONBOARDED"
    assert len(server.asked) == 1


async def test_a_shutdown_in_the_middle_leaves_it_as_it_was(world: World, server: PackageServer) -> None:
    where = await created(world)
    waiting = [await created(world) for _ in range(12)]  # more than are fetched at once
    for one in (where, *waiting):
        await asked(world, one, server.url("/stall"))
    await reached(server)
    await world.services.onboarding.close()
    for one in (where, *waiting):
        package = await shown(world, one)
        assert package["onboardingState"] == "CREATED"
        assert "was stopped" in package["onboardingFailureDetails"]["detail"]
    assert left_behind(world) == []
    server.go.set()
    await asked(world, where, server.url("/ok"))
    assert (await settled(world, where))["onboardingState"] == "ONBOARDED"


async def test_other_projects_can_not_ask(world: World, server: PackageServer) -> None:
    where = await created(world)
    headers = {}
    for role, project in (("reader", "default"), ("operator", "other"), ("operator", "default")):
        body = {"name": f"{role} of {project}", "role": role, "project": project}
        token = (await world.call("POST", "/slipway/v1/tokens", 201, json=body)).json()["token"]
        headers[role, project] = {"X-Auth-Token": token}
    path, body = f"{where}/package_content/upload_from_uri", {"addressInformation": server.url("/ok")}
    await world.call("POST", path, 403, json=body, headers=headers["reader", "default"])
    await world.call("POST", path, 404, json=body, headers=headers["operator", "other"])
    assert server.asked == []
    await world.call("POST", path, 202, json=body, headers=headers["operator", "default"])
    assert (await settled(world, where))["onboardingState"] == "ONBOARDED"


def test_a_source_does_not_show_its_password() -> None:
    assert "hush" not in repr(DownloadSource("http://files.example/", "ada", "hush"))
