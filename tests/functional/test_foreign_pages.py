"""Pages of strangers in a browser on this machine must not steer Slipway: neither by rebinding a name nor directly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from slipway.store.database import Database
from tests.functional.test_limits import Listening, listening

pytestmark = pytest.mark.sqlite_suffices

PACKAGES = "/vnfpkgm/v1/vnf_packages"
TOKEN = "X-Auth-Token: a-token-for-tests\r\n"
BASE_URL = "https://slipway.example"


@pytest.fixture
def database(sqlite_url: URL) -> Any:
    database = Database(sqlite_url)
    yield database
    database.close()


@pytest.fixture
async def open_server(database: Database, tmp_path: Path) -> AsyncIterator[Listening]:
    async with a_server(database, tmp_path, authenticator=None, base_url=BASE_URL) as server:
        yield server


@pytest.fixture
async def closed_server(database: Database, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Listening]:
    async with a_server(database, tmp_path_factory.mktemp("closed"), base_url=BASE_URL) as server:
        yield server


@asynccontextmanager
async def a_server(database: Database, directory: Path, **more: Any) -> AsyncIterator[Listening]:
    async with listening(database, directory, body_seconds=5.0, max_body_bytes=4096, **more) as server:
        yield server


async def asked(server: Listening, method: str, path: str, headers: str) -> tuple[int, Any]:
    body = "{}" if method in ("POST", "PATCH", "PUT") else ""
    more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return await server.told(f"{method} {path} HTTP/1.1\r\n{headers}{more}\r\n{body}")


OWN_NAMES = [
    "localhost", "localhost:9890", "LOCALHOST:1", "127.0.0.1:9890", "127.0.0.9", "[::1]:9890", "[::1]",
    "slipway.example", "Slipway.Example:443", "localhost.:9890",
]  # fmt: skip
FOREIGN_NAMES = [
    "evil.example", "evil.example:9890", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0:9890",
    "[2001:db8::1]:9890", "evil.example#localhost", "localhost@evil.example", "", "localhost:9890:1", "[::1",
    "::1", "2130706433",
]  # fmt: skip


async def test_without_authentication_this_machine_answers_by_its_own_names(open_server: Listening) -> None:
    for host in OWN_NAMES:
        assert (await asked(open_server, "GET", PACKAGES, f"Host: {host}\r\n"))[0] == 200, host
        assert (await asked(open_server, "POST", PACKAGES, f"Host: {host}\r\n"))[0] == 201, host


async def test_without_authentication_other_names_are_refused(open_server: Listening) -> None:
    for host in FOREIGN_NAMES:
        for method, path in (("GET", PACKAGES), ("POST", PACKAGES), ("GET", "/health")):
            status, problem = await asked(open_server, method, path, f"Host: {host}\r\n")
            assert status == 403, host
            assert "Host" in problem["detail"]
            assert "base_url" in problem["detail"]


async def test_a_second_host_header_and_none_at_all_are_refused_too(open_server: Listening) -> None:
    for headers in ("Host: localhost\r\nHost: evil.example\r\n", "Host: evil.example\r\nHost: localhost\r\n", ""):
        assert (await asked(open_server, "GET", PACKAGES, headers))[0] in (400, 403)


async def test_the_peers_own_api_refuses_in_its_own_shape(open_server: Listening) -> None:
    status, refused = await asked(open_server, "GET", "/v1.0/vims", "Host: evil.example\r\n")
    assert status == 403
    assert "Host" in refused["TackerError"]["message"]


async def test_with_tokens_any_name_leads_here(closed_server: Listening) -> None:
    assert (await asked(closed_server, "GET", PACKAGES, f"Host: anything.example\r\n{TOKEN}"))[0] == 200


FOREIGN = [
    "Origin: http://evil.example",
    "Origin: null",
    "Origin: http://localhost:3000",
    "Origin: https://slipway.example.evil.example",
    "Origin: https://slipway.example:8443",
    "Origin: http://localhost:9890\r\nOrigin: http://evil.example",
    "Sec-Fetch-Site: cross-site",
    "Origin: http://localhost:9890\r\nSec-Fetch-Site: cross-site",
]


async def test_what_a_foreign_page_sends_changes_nothing(open_server: Listening, closed_server: Listening) -> None:
    for more in FOREIGN:
        for method in ("POST", "PATCH", "PUT", "DELETE"):
            path = PACKAGES if method == "POST" else f"{PACKAGES}/1"
            for server, token in ((open_server, ""), (closed_server, TOKEN)):
                headers = f"Host: localhost:9890\r\n{token}{more}\r\n"
                status, problem = await asked(server, method, path, headers)
                assert status == 403, (method, more)
                assert "page" in problem["detail"]
    assert (await asked(closed_server, "GET", PACKAGES, f"Host: localhost\r\n{TOKEN}"))[1] == []


OWN = [
    "",
    "Origin: http://localhost:9890\r\n",
    "Origin: https://localhost:9890\r\nSec-Fetch-Site: same-origin\r\n",
    "Origin: https://slipway.example\r\n",
    "Origin: HTTPS://Slipway.Example\r\nSec-Fetch-Site: same-origin\r\n",
    "Sec-Fetch-Site: none\r\n",
]


async def test_own_pages_and_programs_may_change_things(open_server: Listening, closed_server: Listening) -> None:
    for more in OWN:
        for server, token in ((open_server, ""), (closed_server, TOKEN)):
            assert (await asked(server, "POST", PACKAGES, f"Host: localhost:9890\r\n{token}{more}"))[0] == 201, more


async def test_a_foreign_page_may_read_what_a_browser_does_not_show_it(closed_server: Listening) -> None:
    """No answer of Slipway allows other origins to look at it (CORS), so reading needs no refusal."""
    reader, writer = await closed_server.connect()
    writer.write(f"GET {PACKAGES} HTTP/1.1\r\nHost: x\r\n{TOKEN}Origin: http://evil.example\r\n\r\n".encode())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    assert b" 200 " in head
    assert b"access-control" not in head.lower()
    writer.close()
