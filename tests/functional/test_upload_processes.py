"""Whole processes that are killed or stopped while they fetch a package; and a password that must be nowhere."""

from __future__ import annotations

import base64
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from sqlalchemy.engine import URL

from slipway.package.build import build_package
from tests.databases import setting
from tests.functional.package_server import PackageServer
from tests.functional.processes import running
from tests.functional.rig import SAMPLE
from tests.functional.test_processes import wait_for

PACKAGES = "/vnfpkgm/v1/vnf_packages"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PackageServer]:
    with PackageServer(build_package(SAMPLE, tmp_path / "sample.csar").path.read_bytes()).running() as server:
        yield server


def fetch(client: httpx.Client, uri: str, where: str | None = None, **more: str) -> str:
    where = where or f"{PACKAGES}/{client.post(PACKAGES, json={}).json()['id']}"
    body = {"addressInformation": uri, **more}
    answer = client.post(f"{where}/package_content/upload_from_uri", json=body)
    assert answer.status_code == 202, answer.text
    return where


def state(client: httpx.Client, where: str) -> str:
    found: str = client.get(where).json()["onboardingState"]
    return found


def reason(client: httpx.Client, where: str) -> str:
    detail: str = client.get(where).json()["onboardingFailureDetails"]["detail"]
    return detail


def failed(client: httpx.Client, where: str) -> str:
    """Wait for it, and say why."""
    wait_for(lambda: state(client, where) == "CREATED")
    return reason(client, where)


def test_a_killed_process_leaves_a_package_that_says_so(tmp_path: Path, server: PackageServer) -> None:
    data = tmp_path / "data"
    with running("serve", data) as first, first.client() as client:
        where = fetch(client, server.url("/stall"))
        assert server.reached.wait(30)
        first.end(signal.SIGKILL)
    with running("serve", data) as second, second.client() as client:
        assert state(client, where) == "CREATED"
        assert "was stopped" in reason(client, where)
        assert list((data / "packages").iterdir()) == []
        server.go.set()
        fetch(client, server.url("/ok"), where)
        wait_for(lambda: state(client, where) == "ONBOARDED")


def test_a_stopped_process_does_not_wait_for_a_slow_server(tmp_path: Path, server: PackageServer) -> None:
    data = tmp_path / "data"
    with running("serve", data) as first:
        with first.client() as client:
            where = fetch(client, server.url("/stall"))
        assert server.reached.wait(30)
        assert first.end(signal.SIGTERM, within=30) == 0
    assert list((data / "packages").iterdir()) == [], "it was cleared away before the next start"
    with running("serve", data) as second, second.client() as client:
        assert "was stopped" in reason(client, where)


def test_of_two_processes_one_is_killed_and_the_other_goes_on(
    tmp_path: Path, server: PackageServer, postgresql_url: URL
) -> None:
    data = tmp_path / "data"
    url = setting(postgresql_url)
    with (
        running("api", data, database_url=url) as killed,
        running("api", data, database_url=url) as other,
        killed.client() as client,
        other.client() as survivor,
    ):
        lost = [fetch(client, server.url("/stall")) for _ in range(2)]
        kept = fetch(survivor, server.url("/stall"))
        wait_for(lambda: len(server.asked) == 3)
        assert survivor.delete(lost[0]).status_code == 409, "somebody is at it"
        killed.end(signal.SIGKILL)
        assert survivor.delete(lost[0]).status_code == 204, "nobody is at it any more"
        with running("api", data, database_url=url) as third, third.client() as newcomer:
            assert state(newcomer, lost[1]) == "CREATED"
            assert "was stopped" in reason(newcomer, lost[1])
            assert state(newcomer, kept) == "UPLOADING", "it belongs to a process that lives"
            server.go.set()
            wait_for(lambda: state(newcomer, kept) == "ONBOARDED")
            assert newcomer.get(f"{kept}/package_content").content == server.content


def test_the_password_is_nowhere(tmp_path: Path, server: PackageServer) -> None:
    canary = f"canary-{uuid4().hex}"
    data = tmp_path / "data"
    answers: list[str] = []
    with running("serve", data, log_level="debug") as process, process.client() as client:
        client.event_hooks["response"] = [lambda answer: answers.append(answer.read().decode(errors="replace"))]
        for path in ("/private", "/status/404", "/cut", "/metadata", "/rubbish"):
            where = fetch(client, server.url(path), userName="ada", password=canary)
            assert failed(client, where)
        refused = {"addressInformation": "ftp://x/", "userName": "a:b", "password": canary}
        assert client.post(f"{where}/package_content/upload_from_uri", json=refused).status_code == 400
        too_long = {"addressInformation": server.url("/ok"), "userName": "ada", "password": canary * 20}
        assert client.post(f"{where}/package_content/upload_from_uri", json=too_long).status_code == 400
        fetch(client, server.url("/ok"), where, userName="ada", password=canary)
        wait_for(lambda: state(client, where) == "ONBOARDED")
        client.get(f"{PACKAGES}?all_fields")
        process.end()
    assert any(given for _, given in server.asked), "it was sent at all"
    sent = base64.b64encode(f"ada:{canary}".encode())
    told = {file.name: file.read_bytes() for file in data.rglob("*") if file.is_file()}
    assert {"slipway.db", "serve.log"} <= told.keys()
    for place, content in (*told.items(), ("an answer", "\n".join(answers).encode())):
        assert canary.encode() not in content, f"the password is in {place}"
        assert sent not in content, f"the password is in {place}"
